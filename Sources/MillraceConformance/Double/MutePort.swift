internal import Glibc

/// A port of this machine that takes connections and never says a word: for doubles whose script is mute.
@safe
public final class MutePort: Sendable {
  private let descriptor: Int32
  public let port: Int

  /// Begins to listen; nil: the system has no port left. (`deinit` closes the descriptor then, too.)
  public init?() {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.descriptor = descriptor
    guard descriptor >= 0 else {
      port = 0
      return nil
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isThere = unsafe withUnsafeMutablePointer(to: &address) { place in
      unsafe place.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        // The system answers the handshake of TCP for as many as the queue holds; nobody ever takes them out.
        unsafe bind(descriptor, generic, length) == 0 && listen(descriptor, 128) == 0
          && getsockname(descriptor, generic, &length) == 0
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    guard isThere else { return nil }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }
}
