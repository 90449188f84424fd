import Glibc
import MillraceCore

/// A TCP relay between a client and a local server, whose connections can be cut.
///
/// One thread per direction of each connection; they end with the connection. Programs that a test starts do not inherit its sockets,
/// which would keep a connection open after it was cut.
public final class Relay: Sendable {
  private struct State {
    /// How many bytes each of the next connections may pass to the client; then both sides are closed.
    var allowances: [Int] = []
    var isAway = false
    var sockets: [Int32] = []
    var connections = 0
  }

  /// The port for clients.
  public let port: Int
  private let target: Int
  private let descriptor: Int32
  private let state = Locked(State())

  /// - Parameters:
  ///   - target: the server's port.
  ///   - allowances: byte limits of the first connections; later ones are unlimited.
  public init(to target: Int, allowances: [Int] = []) {
    self.target = target
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    descriptor = listener
    var address = Self.address(0)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    var length = size
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        precondition(bind(listener, $0, size) == 0 && listen(listener, 16) == 0)
        getsockname(listener, $0, &length)
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    state.withLock { $0.allowances = allowances }
    precondition(DetachedThread.start("relay") { [self] in serve() } == 0)
  }

  /// Connections so far, including those closed at once.
  public var connections: Int { state.withLock { $0.connections } }

  /// Closes every connection; while `isAway`, new ones too.
  public func cut(isAway: Bool) {
    state.withLock { state in
      state.isAway = isAway
      // Under the lock no descriptor can be closed and reused.
      for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }
  }

  /// Accepts new connections again.
  public func comeBack() { state.withLock { $0.isAway = false } }

  /// Closes every connection, and listens no longer.
  public func stop() {
    cut(isAway: true)
    shutdown(descriptor, Int32(SHUT_RDWR))
  }

  private static func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = in_port_t(port).bigEndian
    return address
  }

  private func serve() {
    while case let client = accept(descriptor, nil, nil), client >= 0 {
      _ = fcntl(client, F_SETFD, FD_CLOEXEC)
      let (isAway, allowance) = state.withLock { state -> (Bool, Int) in
        state.connections += 1
        return (state.isAway, state.allowances.isEmpty ? .max : state.allowances.removeFirst())
      }
      var address = Self.address(target)
      let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      let isOpen = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
      guard !isAway, isOpen else {
        close(client)
        close(server)
        continue
      }
      state.withLock { $0.sockets += [client, server] }
      // Both stay open until both directions have ended, so that no descriptor is reused in between.
      let ends = Locked(0)
      for (from, to, most) in [(client, server, Int.max), (server, client, allowance)] {
        let refusal = DetachedThread.start("relay") { [self] in
          Self.pass(from, to, most)
          shutdown(from, Int32(SHUT_RDWR))
          shutdown(to, Int32(SHUT_RDWR))
          let isLast = ends.withLock { ends in
            ends += 1
            return ends == 2
          }
          guard isLast else { return }
          state.withLock { $0.sockets.removeAll { $0 == from || $0 == to } }
          close(from)
          close(to)
        }
        precondition(refusal == 0)
      }
    }
    close(descriptor)
  }

  private static func pass(_ from: Int32, _ to: Int32, _ most: Int) {
    var left = most
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while left > 0 {
      let count = recv(from, &buffer, min(buffer.count, left), 0)
      guard count > 0 else { return }
      left -= count
      var sent = 0
      while sent < count {
        let more = buffer.withUnsafeBytes {
          send(to, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
        }
        guard more > 0 else { return }
        sent += more
      }
    }
  }
}
