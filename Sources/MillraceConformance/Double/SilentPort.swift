internal import Glibc

/// The system has no port for a double.
public struct PortError: Error, Hashable, CustomStringConvertible {
  /// The system's error code (`errno`).
  public let code: Int32
  public var description: String {
    "cannot listen on a port of this machine: \(unsafe String(cString: strerror(code)))"
  }
}

/// A loopback port that accepts connections and never answers, for doubles with a mute script.
@safe
public final class SilentPort: Sendable {
  private let descriptor: Int32
  /// The port the system chose.
  public let port: Int

  /// Starts listening, or throws why the system has no port.
  public init() throws(PortError) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw PortError(code: errno) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        // The system completes the TCP handshake for as many connections as the queue holds; none is ever accepted.
        unsafe bind(descriptor, generic, length) == 0 && listen(descriptor, 128) == 0
          && getsockname(descriptor, generic, &length) == 0
      }
    }
    guard isListening else {
      let code = errno
      close(descriptor)
      throw PortError(code: code)
    }
    self.descriptor = descriptor
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  deinit { close(descriptor) }
}
