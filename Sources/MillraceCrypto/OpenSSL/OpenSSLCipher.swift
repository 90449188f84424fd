internal import CCrypto

/// A cipher of OpenSSL, looked up once and kept as long as the process runs.
@safe
struct OpenSSLCipher: @unchecked Sendable {
  static let aes128CBC = OpenSSLCipher("AES-128-CBC")
  static let aes192CBC = OpenSSLCipher("AES-192-CBC")
  static let aes256CBC = OpenSSLCipher("AES-256-CBC")
  static let aes128GCM = OpenSSLCipher("AES-128-GCM")
  static let aes192GCM = OpenSSLCipher("AES-192-GCM")
  static let aes256GCM = OpenSSLCipher("AES-256-GCM")
  static let chaCha20 = OpenSSLCipher("ChaCha20")
  static let chaCha20Poly1305 = OpenSSLCipher("ChaCha20-Poly1305")

  /// A direction.
  enum Direction: Int32 {
    case decrypt = 0
    case encrypt = 1
  }

  private let name: String
  // OpenSSL changes nothing in it but a count of references, atomically. Nil: its configuration leaves the cipher out.
  fileprivate let pointer: OpaquePointer?

  private init(_ name: String) {
    OpenSSL.prepare()
    self.name = name
    unsafe pointer = unsafe EVP_CIPHER_fetch(nil, name, nil)
    ERR_clear_error()
  }

  /// Returns the cipher.
  /// - Throws: `library` when OpenSSL of this machine does not offer it.
  func checked() throws(CryptoError) -> OpenSSLCipher {
    guard unsafe pointer != nil else {
      throw CryptoError(
        .library, "OpenSSL of this machine offers no \(name); check its configuration, openssl.cnf")
    }
    return self
  }

  /// Passes a message through a cipher that does not authenticate.
  ///
  /// - Parameter pads: whether the last block is filled, when encrypting.
  func apply(
    _ direction: Direction, to message: Span<UInt8>, key: SecretKey, iv: Span<UInt8>, pads: Bool = false
  ) throws(OpenSSLFailure) -> [UInt8] {
    let run = try Run(self, direction, key, iv)
    unsafe try run.check(EVP_CIPHER_CTX_set_padding(run.context, pads ? 1 : 0))
    var output = try run.pass(message, room: message.count + Int(EVP_MAX_BLOCK_LENGTH))
    try run.finish(&output)
    return output
  }

  /// Encrypts a message, and returns it with its tag behind it.
  func seal(
    _ message: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, data: Span<UInt8>, tagBytes: Int
  ) throws(OpenSSLFailure) -> [UInt8] {
    let run = try Run(self, .encrypt, key, nonce)
    try run.authenticate(data)
    var output = try run.pass(message, room: message.count + tagBytes)
    try run.finish(&output)
    var tag = [UInt8](repeating: 0, count: tagBytes)
    try run.control(EVP_CTRL_AEAD_GET_TAG, &tag)
    output += tag
    return output
  }

  /// Decrypts what has its tag behind it. Nothing is returned of what is not authentic.
  func open(
    _ sealed: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, data: Span<UInt8>, tagBytes: Int
  ) throws(OpenSSLFailure) -> [UInt8] {
    let run = try Run(self, .decrypt, key, nonce)
    let length = sealed.count - tagBytes
    var tag = [UInt8](capacity: tagBytes) { output in
      for index in length..<sealed.count { output.append(sealed[index]) }
    }
    try run.control(EVP_CTRL_AEAD_SET_TAG, &tag)
    try run.authenticate(data)
    var output = try run.pass(sealed.extracting(first: length), room: length)
    do {
      try run.finish(&output)
    } catch {
      for index in output.indices { output[index] = 0 }
      throw error
    }
    return output
  }
}

/// A call of OpenSSL failed; the text is its own.
struct OpenSSLFailure: Error {
  var reason: String
}

/// One message on its way through a cipher.
@safe
private final class Run {
  // Lengths are of C's type `int`.
  private static let piece = 1 << 30

  let context: OpaquePointer

  init(
    _ cipher: OpenSSLCipher, _ direction: OpenSSLCipher.Direction, _ key: SecretKey, _ iv: Span<UInt8>
  ) throws(OpenSSLFailure) {
    unsafe context = OpenSSL.require(EVP_CIPHER_CTX_new())
    unsafe try check(EVP_CipherInit_ex2(context, cipher.pointer, nil, nil, direction.rawValue, nil))
    if unsafe Int(EVP_CIPHER_CTX_get_iv_length(context)) != iv.count {
      unsafe try check(
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(clamping: iv.count), nil))
    }
    let result = unsafe key.withBytes { key in
      unsafe iv.withUnsafeBufferPointer { iv in
        unsafe EVP_CipherInit_ex2(context, nil, key.baseAddress, iv.baseAddress, direction.rawValue, nil)
      }
    }
    try check(result)
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  func check(_ result: Int32) throws(OpenSSLFailure) {
    if result != 1 { throw OpenSSLFailure(reason: OpenSSL.takeReason()) }
  }

  func control(_ command: Int32, _ tag: inout [UInt8]) throws(OpenSSLFailure) {
    let result = unsafe tag.withUnsafeMutableBytes {
      unsafe EVP_CIPHER_CTX_ctrl(context, command, Int32($0.count), $0.baseAddress)
    }
    try check(result)
  }

  func authenticate(_ data: Span<UInt8>) throws(OpenSSLFailure) {
    var rest = data
    while !rest.isEmpty {
      let piece = rest.extracting(first: Self.piece)
      var written: Int32 = 0
      let result = unsafe piece.withUnsafeBufferPointer {
        unsafe EVP_CipherUpdate(context, nil, &written, $0.baseAddress, Int32($0.count))
      }
      try check(result)
      rest = rest.extracting(droppingFirst: piece.count)
    }
  }

  func pass(_ message: Span<UInt8>, room: Int) throws(OpenSSLFailure) -> [UInt8] {
    var result: Int32 = 1
    let output = [UInt8](capacity: room) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, count in
        var rest = message
        while !rest.isEmpty, result == 1, let start = buffer.baseAddress {
          let piece = rest.extracting(first: Self.piece)
          var written: Int32 = 0
          result = unsafe piece.withUnsafeBufferPointer {
            unsafe EVP_CipherUpdate(context, start + count, &written, $0.baseAddress, Int32($0.count))
          }
          count += Int(written)
          rest = rest.extracting(droppingFirst: piece.count)
        }
      }
    }
    try check(result)
    return output
  }

  func finish(_ output: inout [UInt8]) throws(OpenSSLFailure) {
    var last = [UInt8](repeating: 0, count: Int(EVP_MAX_BLOCK_LENGTH))
    var written: Int32 = 0
    let result = unsafe last.withUnsafeMutableBufferPointer {
      unsafe EVP_CipherFinal_ex(context, $0.baseAddress, &written)
    }
    try check(result)
    output += last.prefix(Int(written))
  }
}
