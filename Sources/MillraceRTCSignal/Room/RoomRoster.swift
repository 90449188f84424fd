internal import MillraceDialog
internal import MillraceJSON
internal import MillraceRoomWire

/// The other peers of a room, what this side has subscribed to of them, and the events of both.
struct RoomRoster: Sendable {
  /// Peers that are kept at most; further ones are not reported.
  static let most = 4_096

  private var members: [RoomName: RoomMember] = [:]
  /// Tracks of all, also of those who will join.
  private var all: Set<RoomTrack> = []
  /// Peers for whom it is the other way round.
  private var exceptions: [RoomTrack: Set<RoomName>] = [:]

  func contains(_ peer: RoomName) -> Bool { members[peer] != nil }

  // MARK: Peers

  /// Takes those who are in the room already.
  mutating func begin(_ present: [RoomMember]) -> [DialogEvent] {
    present.flatMap { take(RoomPeerChange(.joined, $0)) }
  }

  /// Takes a change, and returns what is to be reported of it.
  mutating func take(_ change: RoomPeerChange) -> [DialogEvent] {
    let member = change.member
    let known = members[member.peer]
    if case .left(let reason) = change.kind {
      guard members.removeValue(forKey: member.peer) != nil else { return [] }
      for track in RoomTrack.allCases { exceptions[track]?.remove(member.peer) }
      return [Self.event(.left, member, reason: reason.rawValue)]
    }
    guard let known else {
      guard members.count < Self.most else { return [] }
      members[member.peer] = member
      return [Self.event(.joined, member)]
    }
    members[member.peer] = member
    var events: [DialogEvent] = []
    if known.role != member.role {
      events.append(
        .extra(
          name: "peerRole",
          payload: [
            "peer": .string(member.peer.rawValue), "role": .string(RoomWords.role(member.role)),
          ]))
    }
    if known.isMuted != member.isMuted { events.append(Self.event(.muted, member)) }
    if known.tracks != member.tracks { events.append(Self.event(.tracks, member)) }
    return events
  }

  private static func event(
    _ change: DialogPeer.Change, _ member: RoomMember, reason: String? = nil
  ) -> DialogEvent {
    let hasLeft = change == .left
    let audio = member.tracks.contains(.audio) && !(change == .muted && member.isMuted)
    return .peer(
      DialogPeer(
        member.peer.rawValue, change, name: member.name.isEmpty ? member.user.rawValue : member.name,
        sendsAudio: hasLeft ? nil : audio, sendsVideo: hasLeft ? nil : member.tracks.contains(.video),
        reason: reason))
  }

  // MARK: Subscriptions

  /// Whether a track of a peer is received.
  func receives(_ track: RoomTrack, of peer: RoomName) -> Bool {
    all.contains(track) != (exceptions[track]?.contains(peer) ?? false)
  }

  /// Takes what the hub has done. Without a peer, what was said about single ones no longer counts.
  mutating func apply(_ subscription: RoomSubscription) {
    let track = subscription.track
    guard let peer = subscription.peer else {
      exceptions[track] = nil
      if subscription.isOn { all.insert(track) } else { all.remove(track) }
      return
    }
    guard contains(peer) else { return }
    if subscription.isOn == all.contains(track) {
      exceptions[track]?.remove(peer)
    } else {
      exceptions[track, default: []].insert(peer)
    }
  }

  /// The requests that subscribe to a track of those who will join, and change nothing for those who are there.
  func forNewOnes(_ track: RoomTrack, isOn: Bool) -> [RoomSubscription] {
    let others = members.keys.filter { receives(track, of: $0) != isOn }.sorted()
    return [RoomSubscription(track, isOn: isOn)]
      + others.map { RoomSubscription(track, isOn: !isOn, peer: $0) }
  }
}

/// Words of the wire in those of the dialog vocabulary.
enum RoomWords {
  static func role(_ role: RoomRole) -> String {
    switch role {
    case .host: "speaker"
    case .viewer: "viewer"
    }
  }

  /// Nil: a room has no such role.
  static func role(_ word: String) -> RoomRole? {
    word == "speaker" ? .host : RoomRole(rawValue: word)
  }

  static func track(_ track: RoomTrack) -> DialogTrack {
    switch track {
    case .audio: .audio
    case .video: .video
    case .data: .data
    }
  }

  static func track(_ publication: RoomPublication) -> DialogTrack {
    publication.source == .screen ? .screen : track(publication.track)
  }

  static func track(_ track: DialogTrack) -> RoomTrack {
    switch track {
    case .audio: .audio
    case .video, .screen: .video
    case .data: .data
    }
  }

  static func call(_ change: RoomCallChange) -> DialogCall {
    let kind: DialogCall.Change
    switch change.kind {
    case .incoming: kind = .incoming
    case .ringing: kind = .ringing
    case .accepted: kind = .accepted
    case .rejected: kind = .rejected
    case .busy: kind = .busy
    case .ended: kind = change.reason == "elsewhere" ? .elsewhere : .ended
    }
    return DialogCall(
      change.call.rawValue, kind, by: change.user?.rawValue,
      media: RoomTrack.allCases.filter { change.media.contains($0) }.map { track($0) }, message: change.text,
      isAccepted: kind == .elsewhere ? true : nil, reason: change.reason)
  }
}
