internal import Glibc

/// The system has no port for a double.
public struct NoPort: Error, Hashable, CustomStringConvertible {
  /// The system's number for it (`errno`).
  public let code: Int32
  public var description: String {
    "no port of this machine can be listened at: \(unsafe String(cString: strerror(code)))"
  }
}

/// A port of this machine that takes connections and never says a word: for doubles whose script is mute.
@safe
public final class MutePort: Sendable {
  private let descriptor: Int32
  /// Which one the system chose.
  public let port: Int

  /// Begins to listen, or tells why the system has no port for it.
  public init() throws(NoPort) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw NoPort(code: errno) }
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
    guard isThere else {
      let code = errno
      close(descriptor)
      throw NoPort(code: code)
    }
    self.descriptor = descriptor
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  deinit { close(descriptor) }
}
