internal import MillraceCore
internal import MillraceRoomWire

/// A member's place in a room.
struct RoomSeat: Sendable {
  let connection: RoomConnectionID
  let room: RoomName
  /// As the others see it.
  fileprivate(set) var member: RoomMember
  /// What it may do, and how long.
  fileprivate(set) var grant: RoomGrant
  fileprivate var source: RoomVideoSource?
  fileprivate var subscriptions = RoomSubscriptions()
  /// Bytes it has sent to others, bytes that were for it alone, and what it has changed for all to see; see `RateLimit`.
  fileprivate var sent: Nanoseconds = 0
  fileprivate var received: Nanoseconds = 0
  fileprivate var changes: Nanoseconds = 0

  init(_ connection: RoomConnectionID, _ member: RoomMember, in room: RoomName, _ grant: RoomGrant) {
    self.connection = connection
    self.room = room
    self.member = member
    self.grant = grant
  }

  /// Throws where a new token does not allow what the member is and does at present.
  func check(_ grant: RoomGrant) throws(RoomError) {
    guard grant.opens(room) else { throw RoomError(.badToken, "the token is another room's") }
    guard grant.allows(member.role) else {
      throw RoomError(.forbidden, "the token does not allow to be a host; become a viewer first")
    }
    guard grant.rights.contains(.publish) || member.tracks.isEmpty else {
      throw RoomError(.forbidden, "the token does not allow to publish; publish nothing first")
    }
  }
}

/// The rooms of a hub, who is in them, and what goes on among them.
///
/// A request that is refused has changed nothing, and nobody was told anything.
struct RoomTable: Sendable {
  private struct Room: Sendable {
    /// In the order in which they joined.
    var peers: [RoomName] = []
    var users: [RoomName: RoomName] = [:]
    /// Bytes that were for all; see `RateLimit`.
    var passed: Nanoseconds = 0
  }

  /// Roles taken and tracks published by one member: each is told to all others. Giving them up is free, so that nobody who mutes
  /// is refused.
  private static let changing = RateLimit(every: 200_000_000, burst: 20)
  /// The most bytes of a candidate for the hub. The longest that RFC 8839 (section 5.1) has in practice takes some 200.
  private static let candidateBytes = 1_024

  private let settings: RoomHubSettings
  private let passing: PassingLimits
  private var rooms: [RoomName: Room] = [:]
  private var seats: [RoomName: RoomSeat] = [:]

  init(_ settings: RoomHubSettings) {
    self.settings = settings
    passing = PassingLimits(settings)
  }

  var count: Int { rooms.count }
  var memberCount: Int { seats.count }
  var names: [RoomName] { rooms.keys.sorted() }

  subscript(peer: RoomName) -> RoomSeat? { seats[peer] }

  func contains(room: RoomName) -> Bool { rooms[room] != nil }

  /// The peer that a user is in a room.
  func peer(of user: RoomName, in room: RoomName) -> RoomName? { rooms[room]?.users[user] }

  /// The members of a room, except one, in the order in which they joined.
  func members(of room: RoomName, except peer: RoomName? = nil) -> [RoomMember] {
    peers(of: room, except: peer).compactMap { seats[$0]?.member }
  }

  func connections(of room: RoomName, except peer: RoomName? = nil) -> [RoomConnectionID] {
    peers(of: room, except: peer).compactMap { seats[$0]?.connection }
  }

  private func peers(of room: RoomName, except peer: RoomName?) -> [RoomName] {
    (rooms[room]?.peers ?? []).filter { $0 != peer }
  }

  // MARK: Coming and going

  /// Throws `roomFull` or `tooManyRooms` where there is no place for one more, or for one who replaces another.
  func checkPlace(in room: RoomName, replaces: Bool) throws(RoomError) {
    guard let present = rooms[room] else {
      guard rooms.count < settings.rooms else {
        throw RoomError(.tooManyRooms, "the hub has \(settings.rooms) rooms, as many as it can have")
      }
      return
    }
    guard present.peers.count - (replaces ? 1 : 0) < settings.membersPerRoom else {
      throw RoomError(.roomFull, "the room has \(settings.membersPerRoom) members, as many as it can have")
    }
  }

  /// Gives a member its seat, and tells the others.
  mutating func enter(_ seat: RoomSeat, _ output: inout RoomOutput) {
    let (room, member) = (seat.room, seat.member)
    if rooms[room] == nil { output.append(.roomBegan(room)) }
    rooms[room, default: Room()].peers.append(member.peer)
    rooms[room]?.users[member.user] = member.peer
    seats[member.peer] = seat
    output.append(.joined(member, room: room, connection: seat.connection))
    tell(RoomPeerChange(.joined, member), &output)
  }

  /// Takes a member's seat, and tells the others.
  /// - Parameter keepsRoom: the room stays when it was the last member, for the next comes at once.
  mutating func leave(
    _ peer: RoomName, _ reason: RoomLeaveReason, keepsRoom: Bool, _ output: inout RoomOutput
  ) -> RoomSeat? {
    guard let seat = seats[peer] else { return nil }
    tell(RoomPeerChange(.left(reason), seat.member), &output)
    seats[peer] = nil
    rooms[seat.room]?.peers.removeAll { $0 == peer }
    rooms[seat.room]?.users[seat.member.user] = nil
    for other in peers(of: seat.room, except: nil) { seats[other]?.subscriptions.forget(peer) }
    output.append(.left(peer, room: seat.room))
    if !keepsRoom, rooms[seat.room]?.peers.isEmpty == true {
      rooms[seat.room] = nil
      output.append(.roomEnded(seat.room))
    }
    return seat
  }

  /// Ends a room. Its members are not told one by one that the others have left.
  mutating func end(_ room: RoomName, _ output: inout RoomOutput) -> [RoomSeat] {
    guard let ended = rooms.removeValue(forKey: room) else { return [] }
    let left = ended.peers.compactMap { seats.removeValue(forKey: $0) }
    for seat in left { output.append(.left(seat.member.peer, room: room)) }
    output.append(.roomEnded(room))
    return left
  }

  /// Tells all but the peer itself.
  private func tell(_ change: RoomPeerChange, _ output: inout RoomOutput) {
    let peer = change.member.peer
    guard let room = seats[peer]?.room else { return }
    output.push(.peer(change), to: connections(of: room, except: peer))
  }

  // MARK: Roles and rights

  mutating func renew(_ grant: RoomGrant, of peer: RoomName) { seats[peer]?.grant = grant }

  func require(_ right: RoomRight, of peer: RoomName) throws(RoomError) {
    guard seats[peer]?.grant.rights.contains(right) == true else {
      throw RoomError(.forbidden, "this member does not have the right \(right.rawValue)")
    }
  }

  /// Another peer of the same room.
  func other(_ other: RoomName, than peer: RoomName) throws(RoomError) -> RoomSeat {
    guard other != peer, let seat = seats[other], seat.room == seats[peer]?.room else {
      throw RoomError(.notFound, "no other peer of this room has this id")
    }
    return seat
  }

  private mutating func setRole(
    _ role: RoomRole, of peer: RoomName, at now: Nanoseconds, _ output: inout RoomOutput
  ) throws(RoomError) {
    guard let seat = seats[peer], seat.member.role != role else { return }
    guard seat.grant.allows(role) else {
      throw RoomError(.forbidden, "the token does not allow the role \(role.rawValue)")
    }
    if role == .host { try countChange(of: peer, at: now) }
    if role == .viewer { withdrawAll(seat.member, &output) }
    seats[peer]?.member.role = role
    output.append(.role(peer, role))
    tellOf(peer, .role, &output)
  }

  private mutating func countChange(of peer: RoomName, at now: Nanoseconds) throws(RoomError) {
    guard var seat = seats[peer] else { return }
    if let wait = Self.changing.take(&seat.changes, at: now) {
      throw RoomError.tooMany("changes of this member", after: wait)
    }
    seats[peer] = seat
  }

  private mutating func withdrawAll(_ member: RoomMember, _ output: inout RoomOutput) {
    for track in RoomTrack.allCases where member.tracks.contains(track) {
      output.append(.publishing(member.peer, RoomPublication(track, isOn: false)))
    }
    seats[member.peer]?.member.tracks = []
    seats[member.peer]?.source = nil
  }

  private func tellOf(_ peer: RoomName, _ kind: RoomPeerChange.Kind, _ output: inout RoomOutput) {
    guard let member = seats[peer]?.member else { return }
    tell(RoomPeerChange(kind, member), &output)
  }

  // MARK: Tracks

  private mutating func publish(
    _ publication: RoomPublication, by peer: RoomName, at now: Nanoseconds, _ output: inout RoomOutput
  ) throws(RoomError) {
    guard let seat = seats[peer] else { return }
    guard seat.member.role == .host else {
      throw RoomError(.forbidden, "a viewer publishes nothing; become a host first")
    }
    if publication.isOn { try require(.publish, of: peer) }
    guard publication.source == nil || publication.track == .video else {
      throw RoomError(.badPayload, "\"payload.source\" is for video only")
    }
    let (track, isOn) = (publication.track, publication.isOn)
    let isChange = seat.member.tracks.contains(track) != isOn
    let isOtherSource = isOn && track == .video && seat.source != publication.source
    guard isChange || isOtherSource else { return }
    if isOn { try countChange(of: peer, at: now) }
    if isOn { seats[peer]?.member.tracks.insert(track) } else { seats[peer]?.member.tracks.remove(track) }
    if track == .video { seats[peer]?.source = isOn ? publication.source : nil }
    output.append(.publishing(peer, publication))
    // The others are told which tracks there are, but not what a video shows.
    if isChange { tellOf(peer, .tracks, &output) }
  }

  private mutating func subscribe(
    _ subscription: RoomSubscription, by peer: RoomName, _ output: inout RoomOutput
  ) throws(RoomError) {
    try requireMedia()
    if let publisher = subscription.peer { _ = try other(publisher, than: peer) }
    seats[peer]?.subscriptions.apply(subscription)
    output.append(.subscription(peer, subscription))
  }

  /// Throws `noMedia` where the hub carries messages only.
  func requireMedia() throws(RoomError) {
    guard settings.media != nil else {
      throw RoomError(.noMedia, "this hub only carries messages; with \"to\" a session is between two peers")
    }
  }

  /// Whether a member has subscribed to a track of another.
  func receives(_ peer: RoomName, _ track: RoomTrack, of other: RoomName) -> Bool {
    guard let seat = seats[peer], other != peer, seats[other]?.room == seat.room else { return false }
    return seat.subscriptions.includes(track, of: other)
  }

  /// Notes whether a member's sound is withheld, and tells the others when that changes.
  mutating func setMuted(_ isMuted: Bool, _ peer: RoomName, _ output: inout RoomOutput) {
    guard let seat = seats[peer], seat.member.isMuted != isMuted else { return }
    seats[peer]?.member.isMuted = isMuted
    tellOf(peer, .tracks, &output)
  }

  // MARK: Messages

  /// Carries out what is between the members of a room. Throws `unknownOp` for anything else.
  mutating func perform(
    _ operation: RoomOperation, by peer: RoomName, at now: Nanoseconds, _ output: inout RoomOutput
  ) throws(RoomError) {
    switch operation {
    case .role(let role): try setRole(role, of: peer, at: now, &output)
    case .publish(let publication): try publish(publication, by: peer, at: now, &output)
    case .subscribe(let subscription): try subscribe(subscription, by: peer, &output)
    case .candidate(let candidate, nil): try add(candidate, of: peer, &output)
    case .candidate(let candidate, let other):
      try pass(.candidate(candidate, from: peer), from: peer, to: other, at: now, &output)
    case .sdp(let description, .some(let other)):
      try pass(.sdp(description, from: peer), from: peer, to: other, at: now, &output)
    case .control(let command, let other):
      try pass(.control(command, from: peer), from: peer, to: other, at: now, &output)
    case .data(let data, let other):
      try pass(.data(data, from: peer), from: peer, to: other, at: now, &output)
    case .message(let text, let other):
      try pass(.message(text, from: peer), from: peer, to: other, at: now, &output)
    default: throw RoomError(.unknownOp, "this hub does not know the operation")
    }
  }

  /// A candidate of the peer for its session with the hub.
  private func add(
    _ candidate: RoomCandidate, of peer: RoomName, _ output: inout RoomOutput
  ) throws(RoomError) {
    try requireMedia()
    guard (candidate.candidate?.utf8.count ?? 0) <= Self.candidateBytes else {
      throw RoomError(
        .badPayload, "\"payload.candidate\" for the hub must have at most \(Self.candidateBytes) bytes")
    }
    output.append(.candidate(peer, candidate))
  }

  /// Passes a message on to one other peer, or to all others.
  private mutating func pass(
    _ message: RoomPush, from peer: RoomName, to target: RoomName?, at now: Nanoseconds,
    _ output: inout RoomOutput
  ) throws(RoomError) {
    guard let sender = seats[peer] else { return }
    let receivers: [RoomConnectionID]
    if let target {
      receivers = [try other(target, than: peer).connection]
    } else {
      receivers = connections(of: sender.room, except: peer)
    }
    guard !receivers.isEmpty else { return }
    let bytes = message.bytes
    try charge(bytes.count + PassingLimits.overhead, sender, to: target, at: now)
    output.send(bytes, to: receivers)
  }

  /// Counts bytes from a sender to one peer, or to all in its room. Throws `tooManyRequests`.
  private mutating func charge(
    _ cost: Int, _ sender: RoomSeat, to target: RoomName?, at now: Nanoseconds
  ) throws(RoomError) {
    var sent = sender.sent
    if let wait = passing.ofMember.take(cost, &sent, at: now) {
      throw RoomError.tooMany("bytes of messages from this member", after: wait)
    }
    if let target {
      var received = seats[target]?.received ?? 0
      if let wait = passing.toMember.take(cost, &received, at: now) {
        throw RoomError.tooMany("bytes of messages for this peer", after: wait)
      }
      seats[target]?.received = received
    } else {
      var passed = rooms[sender.room]?.passed ?? 0
      if let wait = passing.toRoom.take(cost, &passed, at: now) {
        throw RoomError.tooMany("bytes of messages in this room", after: wait)
      }
      rooms[sender.room]?.passed = passed
    }
    seats[sender.member.peer]?.sent = sent
  }

  /// Who of these is in a room, in the same order.
  func present(_ levels: [RoomLevel], in room: RoomName) -> [RoomLevel] {
    levels.filter { seats[$0.peer]?.room == room }
  }
}
