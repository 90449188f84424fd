internal import MillraceRoomWire

/// What a member receives: a track of all but some peers, or of some peers only.
struct RoomSubscriptions: Sendable, Hashable {
  /// Tracks of all, also of those who will join.
  private var all: Set<RoomTrack> = []
  /// Peers for whom it is the other way round.
  private var exceptions: [RoomTrack: Set<RoomName>] = [:]

  func includes(_ track: RoomTrack, of peer: RoomName) -> Bool {
    all.contains(track) != (exceptions[track]?.contains(peer) ?? false)
  }

  /// Without a peer it is for all, and what was said about single peers no longer counts.
  mutating func apply(_ subscription: RoomSubscription) {
    let track = subscription.track
    guard let peer = subscription.peer else {
      exceptions[track] = nil
      if subscription.isOn { all.insert(track) } else { all.remove(track) }
      return
    }
    if subscription.isOn == all.contains(track) {
      forget(peer, track)
    } else {
      exceptions[track, default: []].insert(peer)
    }
  }

  /// Forgets a peer that has left.
  mutating func forget(_ peer: RoomName) {
    for track in RoomTrack.allCases { forget(peer, track) }
  }

  private mutating func forget(_ peer: RoomName, _ track: RoomTrack) {
    exceptions[track]?.remove(peer)
    if exceptions[track]?.isEmpty == true { exceptions[track] = nil }
  }
}
