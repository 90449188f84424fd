internal import MillraceCore

/// Where the packets of a peer may come from, and where those to it go. Pure: addresses and times come in.
///
/// - Not symmetric: packets go to the address that was given, and come from any port of its host; where none was given, from anywhere.
/// - Symmetric: packets go to where valid ones come from (RFC 4961), as they have to behind a NAT. The first valid source is kept; another
///   takes its place only after a silence, so that nobody can hijack the stream by sending to this port.
struct AddressLatch: Sendable {
  /// How long the peer may be silent before another address takes its place: a pause of speech without packets is shorter, and a NAT that
  /// has forgotten a mapping gives another port at once.
  static let patience: Nanoseconds = .milliseconds(3_000)

  private let isSymmetric: Bool
  /// Where packets go; nil: not known yet.
  private(set) var target: DatagramAddress?
  /// A valid packet has come: of others none are taken while more follow.
  private(set) var isLatched = false
  private var heardAt: Nanoseconds = 0

  init(_ target: DatagramAddress?, isSymmetric: Bool) {
    self.target = target
    self.isSymmetric = isSymmetric
  }

  /// False: a packet from this address is not the peer's, whatever it says.
  func admits(_ source: DatagramAddress, at now: Nanoseconds) -> Bool {
    guard isSymmetric else { return target.map { source.hasHost(of: $0) } ?? true }
    return !isLatched || source == target || now &- heardAt >= Self.patience
  }

  /// Notes a packet of an address that was admitted; the packet is valid. True: packets go to another address from now on.
  mutating func note(_ source: DatagramAddress, at now: Nanoseconds) -> Bool {
    guard isSymmetric else { return false }
    (isLatched, heardAt) = (true, now)
    guard source != target else { return false }
    target = source
    return true
  }
}

extension DatagramAddress {
  /// True where the ports alone may differ.
  func hasHost(of other: DatagramAddress) -> Bool {
    var same = self
    same.port = other.port
    return same == other
  }

  /// The port after this one, where RTCP goes (RFC 3550 section 11); nil after the last.
  package var next: DatagramAddress? {
    guard port > 0, port < .max else { return nil }
    var next = self
    next.port = port + 1
    return next
  }
}
