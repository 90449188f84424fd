package import MillraceCore
package import MillraceRoomWire

/// A hub of open rooms: who is connected, logged in, in which room and in which call, and what they may do. It speaks the wire
/// `millrace-room.1` of Documentation/room.md.
///
/// It has no socket, no media, no clock and no randomness. The layer above tells what happens, with the time, then carries out what
/// `takeActions` returns, in that order, and calls `run` when `deadline` has come. It refuses binary frames, sends pings, closes what was
/// not heard for too long, and has checked origin and TLS before `connect`.
///
/// Bad input of any kind costs its connection at most. What a connection, a member, a room or a call had is forgotten when it goes; what
/// each may have is limited by `RoomHubSettings` and by the wire. A request costs time in proportion to the members of its room. Not for
/// several threads at once.
package struct RoomHub: Sendable {
  /// Close codes (RFC 6455 section 7.4.1, and IANA's registry): the hub stops; there are too many connections.
  private static let goingAwayCode: UInt16 = 1001
  static let tryAgainLaterCode: UInt16 = 1013
  /// How often an id is asked for until one is free. Random ids are free at once.
  private static let idAttempts = 8
  private static let stopText = "the hub stops"

  private let settings: RoomHubSettings
  private let makeID: @Sendable (RoomIDKind) -> RoomName
  private var sessions: SessionTable
  private var rooms: RoomTable
  private var offers: OfferTable
  private var calls: CallTable
  private var speaking = SpeakingTable()
  private var files: RoomFileTable
  private var output = RoomOutput()
  private var isStopping = false

  /// Creates a hub without connections.
  /// - Parameters:
  ///   - settings: without a `problem`.
  ///   - makeID: returns a new id, of at least 64 random bits.
  package init(_ settings: RoomHubSettings, makeID: @escaping @Sendable (RoomIDKind) -> RoomName) {
    self.settings = settings
    self.makeID = makeID
    sessions = SessionTable(settings)
    rooms = RoomTable(settings)
    offers = OfferTable(settings)
    calls = CallTable(settings)
    files = RoomFileTable(settings.files)
  }

  /// What is to be carried out, in this order. Empty afterwards.
  package mutating func takeActions() -> [RoomAction] { output.takeAll() }

  // MARK: Connections

  /// A connection is open. If there are too many it is closed at once, and nothing is kept of it.
  /// - Parameter address: of the other end without its port, for the limits of an address.
  package mutating func connect(_ connection: RoomConnectionID, address: String, at time: RoomInstant) {
    run(at: time)
    guard !isStopping else {
      return output.append(.close(connection, code: Self.goingAwayCode, text: Self.stopText))
    }
    guard sessions[connection] == nil else { return }
    guard !sessions.insert(connection, address: address) else { return }
    let text = "too many connections; try again later"
    output.append(.close(connection, code: Self.tryAgainLaterCode, text: text))
  }

  /// A text frame has arrived.
  package mutating func take(_ bytes: [UInt8], from connection: RoomConnectionID, at time: RoomInstant) {
    run(at: time)
    let wait = sessions.pace(bytes.count, connection, at: time.now)
    switch sessions.read(bytes, from: connection, at: time.now) {
    case .nothing: break
    case .tooLong:
      let text = "a message may have up to \(RoomLimits.messageBytes) bytes"
      shut(connection, RoomLimits.tooLongCode, text)
    case .noRequest(let error, let isLast):
      output.push(.error(error), to: connection)
      if isLast { shut(connection, RoomLimits.policyCode, "too many messages that are no requests") }
    case .refused(let id, let error): output.answer(RoomAnswer(id, error), to: connection)
    case .request(let request): carryOut(request, of: connection, at: time)
    }
    guard wait > 0, !isStopping, sessions[connection]?.isShut == false else { return }
    output.append(.pause(connection, wait))
  }

  /// A connection is closed, by either end; `quit` where the other end said so, else `dropped`.
  package mutating func disconnect(
    _ connection: RoomConnectionID, reason: RoomLeaveReason, at time: RoomInstant
  ) {
    run(at: time)
    sessions.shut(connection)
    logOut(connection, reason)
    sessions.remove(connection, at: time.now)
  }

  /// Closes a connection of which nothing more is read.
  private mutating func shut(_ connection: RoomConnectionID, _ code: UInt16, _ text: String) {
    sessions.shut(connection)
    logOut(connection, .dropped)
    output.append(.close(connection, code: code, text: text))
  }

  // MARK: Time

  /// When `run` is due; nil: not before something else happens.
  package var deadline: Nanoseconds? {
    let parts = [
      calls.deadline, offers.deadline, sessions.deadline, speaking.deadline, files.deadline,
    ]
    return isStopping ? nil : parts.compactMap { $0 }.min()
  }

  /// Does what is due. All functions that take the time do it first.
  package mutating func run(at time: RoomInstant) {
    guard !isStopping else { return }
    sessions.run(at: time)
    calls.run(at: time.now, &output)
    files.run(at: time.now)
    while let offer = offers.popDue(at: time.now) { giveUp(offer) }
    while let (connection, expiry) = sessions.popDue(at: time.now) { follow(expiry, of: connection) }
    while let (room, levels) = speaking.popDue(at: time.now) { tell(levels, in: room) }
  }

  private mutating func follow(_ expiry: SessionTable.Expiry, of connection: RoomConnectionID) {
    switch expiry {
    case .ahead(let nanoseconds):
      output.push(.authWillExpire(inMilliseconds: Int(nanoseconds / 1_000_000)), to: connection)
    case .over:
      guard let peer = sessions[connection]?.peer else { return }
      expel(peer, .expired, .expired)
    }
  }

  // MARK: Requests

  private mutating func carryOut(
    _ request: RoomRequest, of connection: RoomConnectionID, at time: RoomInstant
  ) {
    let start = output.count
    do throws(RoomError) {
      guard let answer = try perform(request, of: connection, at: time) else { return }
      output.answer(answer, to: connection, before: start)
    } catch {
      output.answer(RoomAnswer(request.id, error), to: connection)
    }
  }

  /// Nil: the answer comes later.
  private mutating func perform(
    _ request: RoomRequest, of connection: RoomConnectionID, at time: RoomInstant
  ) throws(RoomError) -> RoomAnswer? {
    guard !isStopping else { throw RoomError(.closing, Self.stopText) }
    if case .login(let login) = request.operation {
      return RoomAnswer(request.id, try logIn(login, connection, at: time))
    }
    let user = try sessions.user(of: connection)
    let end = RoomCallEnd(connection: connection, user: user.name, displayName: user.displayName)
    switch request.operation {
    case .logout: logOut(connection, .quit)
    case .join(let wanted):
      return RoomAnswer(request.id, try join(wanted, as: user, connection, at: time))
    case .call(let wanted):
      let id = try newID(.call)
      let targets = sessions.reachable(wanted.user, at: time.now)
      guard !user.grant.isOver(at: time.now) else { throw RoomGrant.over }
      try sessions.countCall(of: connection, at: time.now)
      try calls.begin(id, from: end, wanted, at: targets, now: time.now, &output)
      return RoomAnswer(request.id, RoomCalling(id))
    case .answerCall(let answer):
      let room = try newID(.room)
      try calls.answer(answer, by: end, room: room, &output)
    case .hangUp(let call, let reason): try calls.hangUp(call, by: end, reason: reason, &output)
    default:
      guard let peer = sessions[connection]?.peer else {
        throw RoomError(.notInRoom, "join a room first")
      }
      return try perform(request, in: peer, at: time)
    }
    return RoomAnswer(request.id)
  }

  /// What only a member of a room can ask for.
  private mutating func perform(
    _ request: RoomRequest, in peer: RoomName, at time: RoomInstant
  ) throws(RoomError) -> RoomAnswer? {
    switch request.operation {
    case .leave: _ = vacate(peer, .quit)
    case .kick(let other, let text):
      try rooms.require(.kick, of: peer)
      let seat = try rooms.other(other, than: peer)
      guard settings.reserved[seat.member.user] == nil else {
        throw RoomError(.forbidden, "this member is the hub's own participant, and stays")
      }
      expel(seat.member.peer, .removed, .kicked, text: text)
    case .close(let text):
      try rooms.require(.close, of: peer)
      if let room = rooms[peer]?.room { end(room, text: text) }
    case .sdp(let description, nil):
      try offer(description, OfferTable.Offer(peer: peer, request: request.id), at: time)
      return nil
    case .role(let role):
      try rooms.perform(request.operation, by: peer, at: time.now, &output)
      return RoomAnswer(request.id, RoomRoleChanged(role))
    case .file(let file):
      return RoomAnswer(request.id, try ticket(for: file, of: peer, at: time))
    default: try rooms.perform(request.operation, by: peer, at: time.now, &output)
    }
    return RoomAnswer(request.id)
  }

  // MARK: Coming and going

  private mutating func logIn(
    _ login: RoomLogin, _ connection: RoomConnectionID, at time: RoomInstant
  ) throws(RoomError) -> RoomLoggedIn {
    let seat = sessions[connection]?.peer.flatMap { rooms[$0] }
    let grant = try sessions.logIn(login, connection, seat: seat, at: time)
    if let seat { rooms.renew(grant, of: seat.member.peer) }
    let rest = grant.unixEnd.map { Int($0 - time.unixMilliseconds) }
    return RoomLoggedIn(login.user, expiresInMilliseconds: rest)
  }

  private mutating func logOut(_ connection: RoomConnectionID, _ reason: RoomLeaveReason) {
    guard let session = sessions[connection], let user = session.user else { return }
    if let peer = session.peer { _ = vacate(peer, reason) }
    let end = RoomCallEnd(connection: connection, user: user.name, displayName: user.displayName)
    calls.leave(end, reason: reason, &output)
    sessions.logOut(connection)
  }

  private mutating func join(
    _ wanted: RoomJoin, as user: RoomUser, _ connection: RoomConnectionID, at time: RoomInstant
  ) throws(RoomError) -> RoomJoined {
    let grant = try sessions.grant(for: wanted, connection, at: time)
    let room = wanted.room
    let present = rooms.peer(of: user.name, in: room)
    guard present == nil || !settings.keepsFirst else {
      throw RoomError(.duplicate, "the user is in this room already")
    }
    try rooms.checkPlace(in: room, replaces: present != nil)
    let peer = try newID(.peer)
    try sessions.enter(connection, as: peer, grant)
    if let present { expel(present, .replaced, .replaced, keepsRoom: true) }
    let role = wanted.role ?? grant.role
    let member = RoomMember(peer, user: user.name, name: user.displayName, role: role)
    rooms.enter(RoomSeat(connection, member, in: room, grant), &output)
    return RoomJoined(
      peer, room: room, role: role, rights: grant.rights, peers: rooms.members(of: room, except: peer),
      media: settings.media, servers: settings.servers)
  }

  private func newID(_ kind: RoomIDKind) throws(RoomError) -> RoomName {
    for _ in 0..<Self.idAttempts {
      let id = makeID(kind)
      let isTaken =
        switch kind {
        case .peer: rooms[id] != nil
        case .call: calls.contains(id)
        case .room: rooms.contains(room: id)
        case .file: files.contains(id)
        }
      if !isTaken { return id }
    }
    throw RoomError(.tooManyRequests, "the hub has found no free id", afterMilliseconds: 1_000)
  }

  /// Takes a member out of its room; its connection stays.
  private mutating func vacate(
    _ peer: RoomName, _ reason: RoomLeaveReason, keepsRoom: Bool = false
  ) -> RoomSeat? {
    guard let seat = rooms.leave(peer, reason, keepsRoom: keepsRoom, &output) else { return nil }
    release(seat)
    return seat
  }

  private mutating func expel(
    _ peer: RoomName, _ reason: RoomKickReason, _ leaveReason: RoomLeaveReason, text: String? = nil,
    keepsRoom: Bool = false
  ) {
    // Before the answers to its offers: a member that is out for good does not take them for failures.
    if let seat = rooms[peer] { output.push(.kicked(reason, text: text), to: seat.connection) }
    _ = vacate(peer, leaveReason, keepsRoom: keepsRoom)
  }

  /// Forgets what a member had in its room. Its offers get their answers, unless nobody reads them.
  private mutating func release(_ seat: RoomSeat) {
    let requests = offers.removeAll(of: seat.member.peer)
    files.leave(seat.member.peer)
    if !rooms.contains(room: seat.room) {
      speaking.remove(seat.room)
      files.end(seat.room)
    }
    sessions.leave(seat.connection)
    guard sessions[seat.connection]?.isShut == false else { return }
    let error =
      isStopping
      ? RoomError(.closing, Self.stopText) : RoomError(.notInRoom, "the member is no longer in the room")
    for request in requests { output.answer(RoomAnswer(request, error), to: seat.connection) }
  }

  // MARK: Rooms

  /// Ends a room for everybody: members get `kicked` with the reason `ended`.
  package mutating func end(_ room: RoomName, text: String? = nil) {
    for seat in rooms.end(room, &output) {
      output.push(.kicked(.ended, text: text), to: seat.connection)
      release(seat)
    }
  }

  /// Ends all rooms and calls, and closes all connections: the close code says that it is the hub that ends, not the rooms, so that members
  /// try again later. What still arrives is refused with `closing`.
  package mutating func stop() {
    guard !isStopping else { return }
    isStopping = true
    for room in rooms.names {
      for seat in rooms.end(room, &output) { release(seat) }
    }
    calls.removeAll()
    for connection in sessions.ids {
      output.append(.close(connection, code: Self.goingAwayCode, text: Self.stopText))
    }
  }

  /// A member, as the others see it; nil: it is in no room any more.
  package func member(_ peer: RoomName) -> RoomMember? { rooms[peer]?.member }

  /// How much the hub holds.
  package var counts: RoomHubCounts {
    var counts = RoomHubCounts()
    sessions.addCounts(to: &counts)
    counts.rooms = rooms.count
    counts.members = rooms.memberCount
    counts.calls = calls.count
    counts.offers = offers.count
    counts.speakingRooms = speaking.count
    counts.files = files.count
    counts.fileBytes = files.byteCount
    return counts
  }

  // MARK: Files

  private mutating func ticket(
    for file: RoomFile, of peer: RoomName, at time: RoomInstant
  ) throws(RoomError) -> RoomFileTicket {
    guard let seat = rooms[peer] else { throw RoomError(.notInRoom, "join a room first") }
    guard seat.member.role == .host else {
      throw RoomError(.forbidden, "a viewer shares nothing; become a host first")
    }
    try rooms.require(.publish, of: peer)
    try files.check(file, of: peer, in: seat.room)
    let id = try newID(.file)
    let ticket = try newID(.file)
    files.announce(file, as: id, by: ticket, of: peer, in: seat.room, at: time.now)
    return RoomFileTicket(id, ticket: ticket.rawValue, path: "\(RoomWire.filesPath)/\(id)")
  }

  /// Begins to take the content of a file.
  /// - Parameters:
  ///   - ticket: as the client shows it.
  ///   - length: how many bytes it says will come; nil: it does not say.
  ///   - address: where they come from, without its port.
  package mutating func beginUpload(
    _ ticket: String, length: Int?, from address: String, at time: RoomInstant
  ) throws(RoomFileRefusal) -> RoomUpload {
    run(at: time)
    return try files.begin(ticket, length: length, from: address, at: time.now)
  }

  /// Takes the next bytes of a file; false: nobody waits for them any more.
  package mutating func takeUpload(_ bytes: [UInt8], of file: RoomName) -> Bool {
    files.take(bytes, of: file)
  }

  /// The content of a file is complete: the others of the room learn of it. False: nobody waits for it any more.
  package mutating func endUpload(of file: RoomName, at time: RoomInstant) -> Bool {
    run(at: time)
    guard let shared = files.finish(file), let seat = rooms[shared.peer] else { return false }
    let others = rooms.connections(of: seat.room, except: shared.peer)
    output.push(.file(shared.file, id: file, from: shared.peer), to: others)
    return true
  }

  /// The rest of a file does not come; after its end this does nothing.
  package mutating func abandonUpload(of file: RoomName) { files.abandon(file) }

  /// A file whose content is complete; nil: there is none, or no longer.
  package func file(_ id: RoomName) -> RoomFile? { files.file(id) }

  /// A piece of the content of a file, from 0 on, and empty behind the last; nil: the file has gone.
  package func piece(_ index: Int, of file: RoomName) -> [UInt8]? { files.piece(index, of: file) }

  // MARK: Media

  private mutating func offer(
    _ description: RoomDescription, _ offer: OfferTable.Offer, at time: RoomInstant
  ) throws(RoomError) {
    try rooms.requireMedia()
    guard description.isOffer else {
      throw RoomError(.badOffer, "the hub makes no offers; an answer is for a peer: send \"to\"")
    }
    if let seat = rooms[offer.peer] { try sessions.countOffer(of: seat.connection, at: time.now) }
    try offers.insert(offer, at: time.now)
    output.append(.offer(offer.peer, sdp: description.sdp, request: offer.request))
  }

  /// Answers an offer to the hub, with a description, `badOffer` or `noCommonCodec`; false: it no longer waits, and the session that was
  /// made for it is of no use.
  @discardableResult
  package mutating func answerOffer(
    _ peer: RoomName, request: Int, _ result: Result<String, RoomError>
  ) -> Bool {
    guard let seat = rooms[peer], offers.remove(OfferTable.Offer(peer: peer, request: request)) else {
      return false
    }
    let answer =
      switch result {
      case .success(let sdp): RoomAnswer(request, RoomDescription(.answer, sdp))
      case .failure(let error): RoomAnswer(request, error)
      }
    output.answer(answer, to: seat.connection)
    return true
  }

  private mutating func giveUp(_ offer: OfferTable.Offer) {
    guard let seat = rooms[offer.peer] else { return }
    let text = "the hub has not answered the offer within \(settings.offerSeconds) s"
    let error = RoomError(.tooManyRequests, text, afterMilliseconds: 1_000)
    output.answer(RoomAnswer(offer.request, error), to: seat.connection)
    output.append(.withdrawn(offer.peer, request: offer.request))
  }

  /// Whether a member has subscribed to a track of another. With `mix` it hears all others all the same.
  package func receives(_ peer: RoomName, _ track: RoomTrack, of other: RoomName) -> Bool {
    rooms.receives(peer, track, of: other)
  }

  /// Tells a member whose packets a medium of its session carries from now on.
  package mutating func assign(_ slot: RoomSlot, to peer: RoomName) { tell(peer, .slot(slot)) }

  /// Asks a member for a picture from which a decoder can begin. How often is up to the layer above.
  package mutating func wantKeyFrame(of peer: RoomName) { tell(peer, .keyFrame) }

  private mutating func tell(_ peer: RoomName, _ push: RoomPush) {
    guard let seat = rooms[peer] else { return }
    output.push(push, to: seat.connection)
  }

  /// Notes whether the sound of a member is withheld, and tells the others when that changes.
  package mutating func setMuted(_ isMuted: Bool, _ peer: RoomName) {
    rooms.setMuted(isMuted, peer, &output)
  }

  /// Takes who speaks in a room, in any order and as often as it is known. Members are told of changes, every 200 ms at most.
  package mutating func speak(_ levels: [RoomLevel], in room: RoomName, at time: RoomInstant) {
    run(at: time)
    guard rooms.contains(room: room) else { return }
    let levels = rooms.present(levels, in: room).sorted { $0.peer < $1.peer }
    if let changed = speaking.take(levels, in: room, at: time.now) { tell(changed, in: room) }
  }

  private mutating func tell(_ levels: [RoomLevel], in room: RoomName) {
    output.push(.speaking(rooms.present(levels, in: room)), to: rooms.connections(of: room))
  }
}
