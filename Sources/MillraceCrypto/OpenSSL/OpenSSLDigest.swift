internal import CCrypto

/// A digest of OpenSSL, looked up once and kept as long as the process runs: the lookup costs more than the digest of a short message.
@safe
struct OpenSSLDigest: @unchecked Sendable {
  static let sha1 = OpenSSLDigest("SHA1")
  static let sha256 = OpenSSLDigest("SHA256")

  // OpenSSL changes nothing in it but a count of references, atomically.
  let pointer: OpaquePointer

  private init(_ name: String) {
    OpenSSL.prepare()
    guard let pointer = unsafe EVP_MD_fetch(nil, name, nil) else {
      fatalError("OpenSSL of this machine offers no \(name); check its configuration, openssl.cnf")
    }
    unsafe self.pointer = pointer
  }
}

/// A digest of bytes that arrive in pieces. One object is used from one thread at a time.
@safe
final class OpenSSLHash: @unchecked Sendable {
  private let context: OpaquePointer

  init(_ digest: OpenSSLDigest) {
    unsafe context = OpenSSL.require(EVP_MD_CTX_new())
    unsafe OpenSSL.require(EVP_DigestInit_ex2(context, digest.pointer, nil))
  }

  /// Makes one that continues independently.
  init(copying other: OpenSSLHash) {
    unsafe context = OpenSSL.require(EVP_MD_CTX_new())
    unsafe OpenSSL.require(EVP_MD_CTX_copy_ex(context, other.context))
  }

  deinit { unsafe EVP_MD_CTX_free(context) }

  func update(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer {
      unsafe OpenSSL.require(EVP_DigestUpdate(context, $0.baseAddress, $0.count))
    }
  }

  /// Returns the digest. Nothing can be added afterwards.
  func finish() -> [UInt8] {
    [UInt8](capacity: Int(EVP_MAX_MD_SIZE)) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, count in
        var written: UInt32 = 0
        unsafe OpenSSL.require(EVP_DigestFinal_ex(context, buffer.baseAddress, &written))
        count = Int(written)
      }
    }
  }
}
