package import MillraceRoomWire

/// What a member wants of a room: as its settings say at first, and as commands have changed it since. Another attempt begins with it.
package struct RoomWishes: Sendable, Hashable {
  /// What it wants to be; nil: the highest role it may have.
  package var role: RoomRole?
  /// What it publishes as a host.
  package var publications: [RoomTrack: RoomPublication]
  /// Tracks of all others, also of those who will join.
  package var all: Set<RoomTrack>
  /// Peers for whom it is the other way round.
  package var exceptions: [RoomTrack: Set<RoomName>] = [:]

  init(role: RoomRole?, publish: Set<RoomTrack>, subscribe: Set<RoomTrack>) {
    self.role = role
    publications = [:]
    for track in publish { publications[track] = RoomPublication(track, isOn: true) }
    all = subscribe
  }

  /// Those of some members for whom it is the other way round: as many as may be asked for at once.
  func exceptions(to track: RoomTrack, among members: [RoomMember]) -> [RoomName] {
    guard let peers = exceptions[track], !peers.isEmpty else { return [] }
    return Array(members.lazy.map(\.peer).filter { peers.contains($0) }.prefix(RoomCommands.mostAtOnce))
  }

  /// Takes what the hub has done.
  mutating func apply(_ effect: RoomEffect) {
    switch effect {
    case .role(let role): self.role = role
    case .publication(let publication):
      publications[publication.track] = publication.isOn ? publication : nil
    case .subscription(let subscription): apply(subscription)
    }
  }

  /// Without a peer, what was said about single ones no longer counts.
  private mutating func apply(_ subscription: RoomSubscription) {
    let track = subscription.track
    guard let peer = subscription.peer else {
      exceptions[track] = nil
      if subscription.isOn { all.insert(track) } else { all.remove(track) }
      return
    }
    if subscription.isOn == all.contains(track) {
      exceptions[track]?.remove(peer)
    } else if exceptions[track, default: []].count < RoomRoster.most {
      exceptions[track, default: []].insert(peer)
    }
  }

  /// Forgets peers that are not among these members.
  mutating func keep(_ members: [RoomMember]) {
    let peers = Set(members.map(\.peer))
    for track in RoomTrack.allCases { exceptions[track]?.formIntersection(peers) }
  }

  /// Nobody returns under the id of one who has left.
  mutating func forget(_ peer: RoomName) {
    for track in RoomTrack.allCases { exceptions[track]?.remove(peer) }
  }
}
