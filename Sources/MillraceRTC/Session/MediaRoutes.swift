internal import MillraceCore
internal import MillraceRTCWire

/// The media of one kind, and to which of them a packet belongs.
///
/// Where one medium receives, all packets are its own. Where several do, a packet belongs to the medium that its header names (RFC 9143
/// section 9.2), which is learnt for its source, or to the one whose description names its source; one of which nothing is known belongs to
/// none. No heap request for a packet.
struct MediaRoutes {
  /// Sources that are known at the same time: as many as a peer may have (`PeerSources`). Descriptions name half of them at most.
  static let most = 128
  /// A source that was silent for this long makes room for others: five intervals of reports (RFC 3550 section 6.3.5).
  private static let forgottenAfter: Nanoseconds = .milliseconds(25_000)

  private struct Route {
    var ssrc: UInt32
    var medium: Int
    /// The description names it: it is not forgotten.
    var isDescribed: Bool
    var heardAt: Nanoseconds
  }

  private struct Name {
    var mid: RTPMediaID
    var medium: Int
  }

  /// Media that receive.
  private(set) var receiving: [Int] = []
  /// Where packets are counted that no medium receives.
  private var first: Int?
  /// The header extension of the mid; nil: not agreed on.
  private var identifier: UInt8?
  private var names: [Name] = []
  private var routes: [Route] = []

  /// Adds a medium.
  mutating func add(_ media: AgreedMedia, as medium: Int, at now: Nanoseconds) {
    first = first ?? medium
    guard media.direction.receives else { return }
    receiving.append(medium)
    if let mid = media.mid, let number = media.identifiers.mid {
      names.append(Name(mid: mid, medium: medium))
      identifier = identifier ?? number
    }
    for ssrc in media.sources where place(of: ssrc) == nil && routes.count < Self.most / 2 {
      routes.append(Route(ssrc: ssrc, medium: medium, isDescribed: true, heardAt: now))
    }
    routes.reserveCapacity(receiving.count > 1 ? Self.most : 0)
  }

  /// The medium of a packet; nil: none.
  mutating func medium(of header: RTPHeader, in packet: Span<UInt8>, at now: Nanoseconds) -> Int? {
    guard receiving.count > 1 else { return receiving.isEmpty ? first : receiving[0] }
    if let identifier, let mid = header.mid(identifier, in: packet) {
      guard let medium = medium(named: mid) else { return nil }
      learn(header.ssrc, as: medium, at: now)
      return medium
    }
    guard let index = place(of: header.ssrc) else { return nil }
    routes[index].heardAt = now
    return routes[index].medium
  }

  /// Notes that a source belongs to a medium. Without room it is not noted.
  mutating func learn(_ ssrc: UInt32, as medium: Int, at now: Nanoseconds) {
    if let index = place(of: ssrc) {
      routes[index].medium = medium
      routes[index].heardAt = now
      return
    }
    let route = Route(ssrc: ssrc, medium: medium, isDescribed: false, heardAt: now)
    guard routes.count >= Self.most else { return routes.append(route) }
    guard let oldest = oldest(), now &- routes[oldest].heardAt >= Self.forgottenAfter else { return }
    routes[oldest] = route
  }

  /// Forgets a source that is over, unless the description names it.
  mutating func forget(_ ssrc: UInt32) {
    guard let index = place(of: ssrc), !routes[index].isDescribed else { return }
    routes.remove(at: index)
  }

  /// Sources that are known.
  var count: Int { routes.count }

  // By hand, as what follows: iterating an array, and so `firstIndex(where:)`, makes a heap request an element in debug builds.
  private func place(of ssrc: UInt32) -> Int? {
    for index in routes.indices where routes[index].ssrc == ssrc { return index }
    return nil
  }

  private func medium(named mid: RTPMediaID) -> Int? {
    for index in names.indices where names[index].mid == mid { return names[index].medium }
    return nil
  }

  /// The learnt source that was silent for longest.
  private func oldest() -> Int? {
    var oldest: Int?
    for index in routes.indices where !routes[index].isDescribed {
      if let place = oldest, routes[place].heardAt <= routes[index].heardAt { continue }
      oldest = index
    }
    return oldest
  }
}
