import Foundation
import MillraceCore

/// A TCP server that a test scripts byte by byte, to do what no proper peer does.
public final class RawServer: Sendable {
  /// The port the system chose.
  public let port: Int
  private let descriptor: Int32
  private let accepted = Locked<[Int32]>([])

  /// - Parameter script: runs with each connection on a thread of its own; the connection is closed when it returns.
  public init(_ script: @escaping @Sendable (RawConnection) -> Void) throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
    }
    guard bound == 0, listen(listener, 16) == 0 else { throw POSIXError(.EADDRINUSE) }
    var length = size
    withUnsafeMutablePointer(to: &address) {
      _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    descriptor = listener
    Thread.detachNewThread { [self] in
      while true {
        let next = accept(listener, nil, nil)
        guard next >= 0 else { return }
        _ = fcntl(next, F_SETFD, FD_CLOEXEC)
        accepted.withLock { $0.append(next) }
        Thread.detachNewThread {
          let connection = RawConnection(next)
          script(connection)
          connection.close()
        }
      }
    }
  }

  /// Connections accepted so far.
  public var count: Int { accepted.withLock(\.count) }

  /// Accepts no more connections.
  public func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

/// A TCP connection of raw bytes. An exit test's process does not inherit it, which would keep it open after `close`. Reads time out after
/// ten minutes, as a machine that runs all tests at once may be slow.
public final class RawConnection: Sendable {
  private let descriptor: Int32

  /// Takes over a connected socket.
  public init(_ descriptor: Int32) {
    self.descriptor = descriptor
    var limit = timeval(tv_sec: 600, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  /// Connects to a loopback port.
  /// - Parameter buffer: the size of the receive buffer in bytes, approximately; nil: the system's default.
  public convenience init(port: Int, buffer: Int32? = nil) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if var buffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer, socklen_t(MemoryLayout<Int32>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = in_port_t(port).bigEndian
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard status == 0 else { throw POSIXError(.ECONNREFUSED) }
    self.init(descriptor)
  }

  /// Returns false when the peer closed the connection before everything was sent.
  @discardableResult
  public func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// Sends a text in UTF-8.
  public func send(_ text: String) { send(Array(text.utf8)) }

  /// The next bytes; nil at the end or after ten minutes.
  public func read(_ most: Int = 65_536) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: most)
    let count = recv(descriptor, &bytes, most, 0)
    return count > 0 ? Array(bytes.prefix(count)) : nil
  }

  /// Exactly `count` bytes; fewer at the end.
  public func read(exactly count: Int) -> [UInt8] {
    var result: [UInt8] = []
    while result.count < count, let more = read(count - result.count) { result += more }
    return result
  }

  /// Everything up to and including an empty line.
  public func readHead() -> String {
    var text = ""
    while !text.hasSuffix("\r\n\r\n"), let byte = read(1) { text += String(decoding: byte, as: UTF8.self) }
    return text
  }

  /// Discards what arrives, and returns true when the peer closes the connection.
  public func isClosed() -> Bool {
    while read() != nil {}
    return true
  }

  /// Answers a WebSocket handshake as a server should.
  public func answerHandshake() {
    let head = readHead()
    let key = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key:") }
    let value = key.map { $0.dropFirst(18).trimmingCharacters(in: .whitespaces) } ?? ""
    send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \(acceptKey(value))\r\n\r\n"
    )
  }

  /// Sends a client's handshake and returns the response head.
  public func handshake() -> String {
    send(
      "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    return readHead()
  }

  /// The next frame, unmasked; nil at the end.
  public func readFrame() -> (opcode: UInt8, payload: [UInt8])? {
    let head = read(exactly: 2)
    guard head.count == 2 else { return nil }
    var length = Int(head[1] & 0x7F)
    if length == 126 { length = read(exactly: 2).reduce(0) { $0 << 8 | Int($1) } }
    if length == 127 { length = read(exactly: 8).reduce(0) { $0 << 8 | Int($1) } }
    let mask = head[1] & 0x80 != 0 ? read(exactly: 4) : [0, 0, 0, 0]
    let payload = read(exactly: length)
    return (head[0] & 0x0F, payload.indices.map { payload[$0] ^ mask[$0 % 4] })
  }

  /// Half-closes: nothing more is sent, but reading continues.
  public func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Makes `close` a reset instead of an end.
  public func resetOnClose() {
    var now = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
  }

  /// Closes the connection.
  public func close() { Glibc.close(descriptor) }
}

/// A WebSocket frame as bytes; a client's must be masked.
public func frame(
  _ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, isMasked: Bool = false, reserved: UInt8 = 0
) -> [UInt8] {
  var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | reserved | opcode]
  let mask: UInt8 = isMasked ? 0x80 : 0
  switch payload.count {
  case 0...125: bytes.append(mask | UInt8(payload.count))
  case 126...65_535: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
  default: bytes += [mask | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
  }
  guard isMasked else { return bytes + payload }
  let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
  return bytes + key + payload.indices.map { payload[$0] ^ key[$0 % 4] }
}

/// RFC 6455 section 4.2.2.
private func acceptKey(_ key: String) -> String {
  Data(sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))).base64EncodedString()
}

/// RFC 3174.
private func sha1(_ message: [UInt8]) -> [UInt8] {
  var bytes = message + [0x80]
  while bytes.count % 64 != 56 { bytes.append(0) }
  bytes += (0..<8).map { UInt8(truncatingIfNeeded: (message.count * 8) >> (56 - 8 * $0)) }
  var h: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
  func rotate(_ value: UInt32, _ count: UInt32) -> UInt32 { value << count | value >> (32 - count) }
  for start in stride(from: 0, to: bytes.count, by: 64) {
    var w = (0..<16).map { i in (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[start + i * 4 + $1]) } }
    for i in 16..<80 { w.append(rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1)) }
    var (a, b, c, d, e) = (h[0], h[1], h[2], h[3], h[4])
    for i in 0..<80 {
      let f: UInt32
      let k: UInt32
      switch i {
      case 0..<20: (f, k) = (b & c | ~b & d, 0x5A82_7999)
      case 20..<40: (f, k) = (b ^ c ^ d, 0x6ED9_EBA1)
      case 40..<60: (f, k) = (b & c | b & d | c & d, 0x8F1B_BCDC)
      default: (f, k) = (b ^ c ^ d, 0xCA62_C1D6)
      }
      (a, b, c, d, e) = (rotate(a, 5) &+ f &+ e &+ k &+ w[i], a, rotate(b, 30), c, d)
    }
    h = zip(h, [a, b, c, d, e]).map { $0 &+ $1 }
  }
  return h.flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
}
