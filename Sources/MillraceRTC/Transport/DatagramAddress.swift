internal import CRtcShim

/// An IP address and a port, of IPv4 or IPv6. Comparing and copying it does not allocate.
package struct DatagramAddress: Sendable, Hashable, CustomStringConvertible {
  /// Room for an address of IPv6 and the name of an interface, with a 0.
  private static let room = 64

  /// The 16 bytes of IPv6; those of IPv4 are the last 4.
  private let high: UInt64
  private let low: UInt64
  /// The interface of a link-local address; 0: none.
  private let scope: UInt32
  /// The port; 0 for a local address: any free one.
  package var port: UInt16
  /// It is one of IPv6.
  package let isIPv6: Bool

  /// Reads a literal IP address: "127.0.0.1", "::1", "fe80::1%eth0". Nil for a name, which has to be resolved before, and for anything
  /// else.
  package init?(host: String, port: UInt16) {
    // A text of C would end at a 0 within.
    guard !host.utf8.contains(0) else { return nil }
    var address = millrace_datagram_address()
    guard unsafe millrace_datagram_parse(host, port, &address) else { return nil }
    self.init(address)
  }

  init(_ address: millrace_datagram_address) {
    high = address.high
    low = address.low
    scope = address.scope
    port = address.port
    isIPv6 = address.is_ipv6
  }

  var system: millrace_datagram_address {
    millrace_datagram_address(high: high, low: low, scope: scope, port: port, is_ipv6: isIPv6)
  }

  /// The address without the port.
  package var host: String {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.room) { text -> String in
      guard let start = text.baseAddress else { return "" }
      unsafe text.initialize(repeating: 0)
      unsafe millrace_datagram_host(system, start, Self.room)
      return unsafe String(cString: start)
    }
  }

  /// "1.2.3.4:5", "[::1]:5".
  package var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
