internal import Glibc
internal import MillraceRTC

/// The IP addresses of this machine, loopback included. Asks the system at each call; allocates.
enum LocalAddresses {
  /// Addresses that a message lists.
  static let mostShown = 16
  /// Room for an address of IPv6 and the name of an interface, with a 0.
  private static let room = 64

  /// All of them, in the order of the system; none when it does not tell.
  static func all() -> [DatagramAddress] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard unsafe getifaddrs(&first) == 0 else { return [] }
    defer { unsafe freeifaddrs(first) }
    var addresses: [DatagramAddress] = []
    var next = unsafe first
    while let entry = unsafe next {
      if let address = unsafe address(of: entry), !addresses.contains(address) { addresses.append(address) }
      unsafe next = entry.pointee.ifa_next
    }
    return addresses
  }

  /// True when a text is one of some addresses. The zone of a link-local address may be left out.
  static func contains(_ text: String, among own: [DatagramAddress]) -> Bool {
    guard let wanted = DatagramAddress(host: text, port: 0) else { return false }
    return own.contains { $0 == wanted || $0.host.prefix { $0 != "%" } == wanted.host }
  }

  /// Nil for an interface without an IP address.
  private static func address(of entry: UnsafeMutablePointer<ifaddrs>) -> DatagramAddress? {
    guard let address = unsafe entry.pointee.ifa_addr else { return nil }
    let family = unsafe Int32(address.pointee.sa_family)
    let length: Int
    switch family {
    case AF_INET: length = MemoryLayout<sockaddr_in>.size
    case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
    default: return nil
    }
    let text = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: room) { text -> String? in
      guard let start = text.baseAddress else { return nil }
      unsafe text.initialize(repeating: 0)
      let status = unsafe getnameinfo(
        address, socklen_t(length), start, socklen_t(room), nil, 0, NI_NUMERICHOST)
      guard status == 0 else { return nil }
      return unsafe String(cString: start)
    }
    return text.flatMap { DatagramAddress(host: $0, port: 0) }
  }
}
