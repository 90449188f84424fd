import Glibc

@testable import MillraceBench

/// A UDP socket at one end of a link, which waits a minute at most.
final class LinkEnd {
  let port: Int
  private let descriptor: Int32

  init() throws {
    (descriptor, port) = try LocalSocket.datagrams()
    LinkEnd.limitWaits(of: descriptor)
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8], to port: Int) { LocalSocket.send(bytes, from: descriptor, to: port) }

  /// The next datagram and the port from which it came; nil: there was none within the minute.
  func receive() -> (bytes: [UInt8], port: Int)? {
    let most = 4_096
    var buffer = [UInt8](repeating: 0, count: most)
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let count = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        recvfrom(descriptor, &buffer, most, 0, $0, &length)
      }
    }
    guard count >= 0 else { return nil }
    return (Array(buffer.prefix(count)), Int(UInt16(bigEndian: address.sin_port)))
  }

  /// True when no socket of this machine has the port: the system refuses what is sent there. Afterwards the end has that one peer.
  func isRefused(by port: Int) -> Bool {
    var target = LocalSocket.address(port)
    let isConnected = withUnsafePointer(to: &target) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    var byte: UInt8 = 0
    guard isConnected else { return false }
    let isFailed =
      Glibc.send(descriptor, &byte, 1, 0) < 0 || recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) < 0
    return isFailed && errno == ECONNREFUSED
  }

  /// Lets no call on a socket wait for longer than a minute.
  static func limitWaits(of descriptor: Int32) {
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }
}

/// Waits until a condition holds, a minute at most; false: it does not.
func isReached(_ condition: () -> Bool) -> Bool {
  let end = seconds() + 60
  while !condition() {
    guard seconds() < end else { return false }
    usleep(200)
  }
  return true
}
