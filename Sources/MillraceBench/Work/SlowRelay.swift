import CMillraceSys
import Glibc
import MillraceCore
import Synchronization

/// A TCP relay between clients and a double on this machine, whose way up is as slow as a line of so many bits per second. It keeps as
/// little as it can: what does not fit the line waits at the client.
final class SlowRelay: Sendable {
  /// The port for clients.
  let port: Int
  private let target: Int
  private let bitsPerSecond: Double
  private let listener: Int32
  private let isOver = Atomic<Bool>(false)
  private let sockets = Locked<[Int32]>([])
  /// Bytes that have gone up.
  private let carried = Atomic<Int>(0)

  /// Bytes of a piece: at 3 Mbit/s a piece takes 2.7 ms.
  private static let pieceBytes = 1_024
  /// What the system may keep of the way up, which doubles this number.
  private static let bufferBytes: Int32 = 2_048

  /// - Parameters:
  ///   - target: the double's port.
  ///   - bitsPerSecond: the rate of the way up, over all connections together.
  init(to target: Int, bitsPerSecond: Double) throws {
    self.target = target
    self.bitsPerSecond = bitsPerSecond
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var size = Self.bufferBytes
    // Accepted sockets inherit it.
    unsafe setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    var address = Self.address(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = listener
    let isOpen = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, length) == 0 && listen(descriptor, 16) == 0
          && getsockname(descriptor, $0, &length) == 0
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    guard isOpen else { throw MeasurementProblem("no port for a relay (errno \(errno))") }
    let code = DetachedThread.start("relay") { [self] in serve() }
    guard code == 0 else { throw MeasurementProblem("no thread for a relay (errno \(code))") }
  }

  /// Bytes that have gone up so far.
  var bytesUp: Int { carried.load(ordering: .relaxed) }

  /// Closes every connection, and listens no longer.
  func stop() {
    isOver.store(true, ordering: .relaxed)
    shutdown(listener, Int32(SHUT_RDWR))
    sockets.withLock { for socket in $0 { shutdown(socket, Int32(SHUT_RDWR)) } }
  }

  private static func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = in_port_t(port).bigEndian
    return address
  }

  private func serve() {
    while case let client = accept(listener, nil, nil), client >= 0 {
      var address = Self.address(target)
      let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      let isOpen = unsafe withUnsafePointer(to: &address) {
        unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
      guard isOpen, !isOver.load(ordering: .relaxed) else {
        close(client)
        close(server)
        continue
      }
      // A piece is passed on at once, not when the one before it was acknowledged.
      var on: Int32 = 1
      unsafe setsockopt(server, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
      sockets.withLock { $0 += [client, server] }
      let ends = Locked(0)
      let end: @Sendable () -> Void = { [self] in
        shutdown(client, Int32(SHUT_RDWR))
        shutdown(server, Int32(SHUT_RDWR))
        let isLast = ends.withLock { ends in
          ends += 1
          return ends == 2
        }
        guard isLast else { return }
        sockets.withLock { $0.removeAll { $0 == client || $0 == server } }
        close(client)
        close(server)
      }
      for isUp in [true, false] {
        let code = DetachedThread.start("relay") { [self] in
          pass(isUp ? client : server, isUp ? server : client, isUp: isUp)
          end()
        }
        // Without its thread a direction has ended, and the client notices.
        if code != 0 { end() }
      }
    }
    close(listener)
  }

  private func pass(_ from: Int32, _ to: Int32, isUp: Bool) {
    var buffer = [UInt8](repeating: 0, count: isUp ? Self.pieceBytes : 65_536)
    var free = millrace_monotonic_ns()
    while true {
      let count = unsafe recv(from, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      if isUp {
        // A line carries the bits of a piece one after the other: it arrives when the last of them has.
        free = max(free, millrace_monotonic_ns()) + Int64(Double(count) * 8e9 / bitsPerSecond)
        pause(Double(free - millrace_monotonic_ns()) / 1e9)
        carried.add(count, ordering: .relaxed)
      }
      var sent = 0
      while sent < count {
        let more = unsafe buffer.withUnsafeBytes {
          unsafe send(to, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
        }
        guard more > 0 else { return }
        sent += more
      }
    }
  }
}
