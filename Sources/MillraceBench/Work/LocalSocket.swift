import Glibc

/// Sockets of this machine, for relays between what is measured.
enum LocalSocket {
  /// A port of the loopback interface.
  static func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = in_port_t(port).bigEndian
    return address
  }

  /// A UDP socket on a free port.
  static func datagrams() throws -> (descriptor: Int32, port: Int) {
    try bound(to: socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
  }

  /// A TCP socket on a free port that listens.
  static func listener() throws -> (descriptor: Int32, port: Int) {
    let made = try bound(to: socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    guard listen(made.descriptor, 16) == 0 else {
      close(made.descriptor)
      throw MeasurementProblem("cannot listen on a port of this machine (errno \(errno))")
    }
    return made
  }

  /// A connection to a port; -1: nobody listens there.
  static func connection(to port: Int) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard connects(descriptor, to: address(port)) else {
      close(descriptor)
      return -1
    }
    var on: Int32 = 1
    unsafe setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    return descriptor
  }

  /// A port of TCP that was free a moment ago.
  static func freePort() throws -> Int {
    let made = try listener()
    close(made.descriptor)
    return made.port
  }

  /// Waits until somebody listens on a port, at most ten seconds.
  static func waitForListener(_ port: Int) throws {
    let end = seconds() + 10
    while seconds() < end {
      let descriptor = connection(to: port)
      if descriptor >= 0 {
        close(descriptor)
        return
      }
      pause(0.005)
    }
    throw MeasurementProblem("nothing listens on port \(port) after ten seconds")
  }

  /// The address from which this machine reaches others; nil: it has none but loopback. Nothing is sent.
  static var machineAddress: String? {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var remote = address(9)
    // An address of documentation (RFC 5737); connecting a UDP socket only chooses a route.
    remote.sin_addr.s_addr = UInt32(0xC000_0201).bigEndian
    guard connects(descriptor, to: remote), let local = local(descriptor) else { return nil }
    let number = UInt32(bigEndian: local.sin_addr.s_addr)
    guard number >> 24 != 127, number != 0 else { return nil }
    return "\(number >> 24).\(number >> 16 & 0xFF).\(number >> 8 & 0xFF).\(number & 0xFF)"
  }

  /// Sends a datagram to a port of loopback. One that cannot be sent is lost.
  static func send(_ bytes: [UInt8], from descriptor: Int32, to port: Int) {
    var target = address(port)
    _ = unsafe withUnsafePointer(to: &target) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe sendto(descriptor, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  private static func connects(_ descriptor: Int32, to target: sockaddr_in) -> Bool {
    var target = target
    return unsafe withUnsafePointer(to: &target) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private static func bound(to descriptor: Int32) throws -> (descriptor: Int32, port: Int) {
    var address = address(0)
    let isBound = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isBound, let local = local(descriptor) else {
      close(descriptor)
      throw MeasurementProblem("cannot bind a port of this machine (errno \(errno))")
    }
    return (descriptor, Int(UInt16(bigEndian: local.sin_port)))
  }

  private static func local(_ descriptor: Int32) -> sockaddr_in? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isKnown = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &length) == 0
      }
    }
    return isKnown ? address : nil
  }
}
