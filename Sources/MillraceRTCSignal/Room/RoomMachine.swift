internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTCWire
internal import MillraceRoomWire

/// A member of a room as a pure state machine: logs in, joins, matches answers to requests, translates pushes and commands, and leaves.
/// `RoomSessions` handles what is said about sessions.
///
/// It has no socket, no clock and no thread: every input is legal at any time, and returns what to do, in order. Time never runs
/// backwards. An answer that was not asked for, or comes twice, is ignored; messages that are not valid end it when they are many.
struct RoomMachine: Sendable {
  enum Input: Sendable {
    /// The connection can carry requests.
    case opened
    /// A text frame; something that is no message, and why.
    case message([UInt8]), invalid(String)
    /// The connection is of no use; it has ended.
    case failed(DialogError), closed(WebSocketEnd)
    case describe(Int, sdp: String)
    case restart(Int, sdp: String)
    /// This side refuses the latest offer of a session that runs.
    case refuseOffer(Int)
    case candidate(Int, String?)
    /// With a number, under which it is answered.
    case command(Int, DialogCommand)
    /// A message beside sound and pictures.
    case data(RoomData, to: RoomName?)
    /// This side has given up a session; all of it.
    case endSession(Int), end
    case tick
  }

  enum Step: Sendable {
    case send([UInt8])
    case report(SignalEvent)
    case answer(Int, DialogError?)
    /// Everything is over: the connection is to be closed.
    case close
  }

  private enum Phase { case opening, loggingIn, joining, inRoom, ending, over }

  /// In which room and login are left.
  static let ending: Nanoseconds = 1_500_000_000
  /// Messages that are not valid, until the other side is taken for something else than a hub.
  private static let mostInvalid = 8

  private var phase = Phase.opening
  private var isReporting = true
  private var isLinkDead = false
  private let settings: RoomClientSettings
  private let commands: RoomCommands
  private let timeout: Nanoseconds
  private var sessions: any RoomSessions
  private var roster = RoomRoster()
  private var errors = RoomErrors()
  private var sequence = RoomSequence()
  private var pending = RoomPending()
  private var me: RoomName?
  private var role = RoomRole.host
  /// What the hub has published for this side.
  private var published: Set<RoomTrack> = []
  /// What this side wants: a viewer too has publications here.
  private(set) var wishes: RoomWishes
  private var invalidCount = 0
  private var endDeadline: Nanoseconds?
  private var time: Nanoseconds = 0
  private var steps: [Step] = []

  init(_ settings: RoomClientSettings, _ sessions: any RoomSessions) {
    self.settings = settings
    self.sessions = sessions
    commands = RoomCommands(isHub: sessions.isHub, media: settings.media, dataLabel: settings.dataLabel)
    wishes = settings.start
    timeout = Nanoseconds(settings.timeout) * 1_000_000
    errors.hide(settings.token)
  }

  /// When to call with `tick`; nil: never.
  var deadline: Nanoseconds? {
    guard phase != .over else { return nil }
    if let endDeadline { return endDeadline }
    return [pending.deadline, phase == .inRoom ? sessions.deadline : nil].compactMap { $0 }.min()
  }

  /// True once nothing will be asked for any more.
  var isOver: Bool { phase == .over }

  /// Requests that the hub has not answered, while the room is joined; nil: it is not.
  var unanswered: Int? { phase == .inRoom ? pending.count : nil }

  mutating func handle(_ input: Input, at now: Nanoseconds) -> [Step] {
    time = max(time, now)
    take(input)
    defer { steps = [] }
    return steps
  }

  private mutating func take(_ input: Input) {
    switch input {
    case .opened: opened()
    case .message(let bytes): receive(bytes)
    case .invalid(let text): invalid(text)
    case .failed(let error): linkFailed(error)
    case .closed(let end): linkFailed(errors.error(end, of: settings.url.authority))
    case .command(let number, let command): perform(number, command)
    case .end: end()
    case .tick: tick()
    case .describe(let number, let sdp): ofSession(.describe(number, sdp: sdp))
    case .restart(let number, let sdp): ofSession(.restart(number, sdp: sdp))
    case .refuseOffer(let number): ofSession(.refuse(number))
    case .candidate(let number, let candidate): ofSession(.candidate(number, candidate))
    case .endSession(let number): ofSession(.ended(number))
    case .data(let data, let peer):
      guard phase == .inRoom else { return }
      request(.data(data, to: peer), .ask(command: nil, nil))
    }
  }

  // MARK: Requests

  private mutating func request(_ operation: RoomOperation, _ purpose: RoomPurpose) {
    guard !isLinkDead else { return }
    let isLeaving = phase == .ending
    guard isLeaving || !pending.isFull else {
      let error = RTCError.command.error("too much waits for the hub; try again later", scope: .command)
      return refused(purpose, error)
    }
    let id = sequence.next()
    let bytes = RoomRequest(id, operation).bytes
    guard bytes.count <= RoomLimits.messageBytes else {
      let text = "the message has \(bytes.count) bytes; a hub takes \(RoomLimits.messageBytes) at most"
      return refused(purpose, RTCError.tooLarge.error(text))
    }
    pending.add(id, purpose, until: time + limit(of: purpose))
    steps.append(.send(bytes))
  }

  /// The time for an answer. Before a hub describes its side of a session, it looks for candidates.
  private func limit(of purpose: RoomPurpose) -> Nanoseconds {
    guard case .description = purpose, sessions.isHub else { return timeout }
    return timeout + .milliseconds(Int64(RoomClientSettings.describing))
  }

  private mutating func opened() {
    guard phase == .opening, let login = settings.login else { return }
    phase = .loggingIn
    request(.login(login), .login)
  }

  private mutating func ofSession(_ input: RoomSessionInput) {
    guard phase == .inRoom else { return }
    for action in sessions.handle(input, at: time) where phase == .inRoom {
      switch action {
      case .describe(let session, let number, let description, let peer):
        request(.sdp(description, to: peer), .description(session, number: number))
      case .candidate(let candidate, let peer): request(.candidate(candidate, to: peer), .minor)
      case .report(let event): report(event)
      case .fail(let error): fail(error)
      }
    }
  }

  private mutating func report(_ event: SignalEvent) {
    if isReporting { steps.append(.report(event)) }
  }

  private mutating func tell(_ event: DialogEvent) { report(.event(event)) }

  private mutating func tell(_ error: DialogError) { tell(.error(RoomErrors.passing(error))) }

  // MARK: Commands

  private mutating func perform(_ number: Int, _ command: DialogCommand) {
    guard let login = settings.login,
      phase == .inRoom || phase == .joining && RoomCommands.isOutsideRooms(command)
    else {
      let error = RTCError.command.error("the room is not joined now", scope: .command)
      return steps.append(.answer(number, error))
    }
    if case .refreshAuth(let token) = command { errors.hide(token) }
    do throws(DialogError) {
      let plan = try commands.plan(command, login, roster)
      for (place, wish) in plan.requests.enumerated() {
        request(wish.operation, .ask(command: place == 0 ? number : nil, wish.effect))
      }
    } catch {
      steps.append(.answer(number, RoomErrors.passing(error)))
    }
  }

  private mutating func apply(_ effect: RoomEffect) {
    wishes.apply(effect)
    switch effect {
    case .role(let role): take(role)
    case .subscription(let subscription): roster.apply(subscription)
    case .publication(let publication):
      let track = publication.track
      let isChange =
        publication.isOn ? published.insert(track).inserted : published.remove(track) != nil
      if isChange {
        tell(.track(RoomWords.track(publication), publication.isOn ? .published : .unpublished))
      }
    }
  }

  /// The hub has withdrawn all of a viewer; what was wanted is published again by a host.
  private mutating func take(_ role: RoomRole) {
    guard role != self.role else { return }
    self.role = role
    tell(.role(RoomWords.role(role)))
    switch role {
    case .viewer:
      for track in RoomTrack.allCases where published.contains(track) { unpublished(track) }
      published = []
    case .host:
      for track in RoomTrack.allCases {
        if let publication = wishes.publications[track] { publish(publication) }
      }
    }
  }

  private mutating func unpublished(_ track: RoomTrack) {
    let word = wishes.publications[track].map { RoomWords.track($0) } ?? RoomWords.track(track)
    tell(.track(word, .unpublished))
  }

  private mutating func publish(_ publication: RoomPublication) {
    request(.publish(publication), .ask(command: nil, .publication(publication)))
  }

  // MARK: The end

  private mutating func fail(_ error: DialogError) {
    guard phase != .ending, phase != .over else { return }
    report(.closed(error))
    end()
  }

  private mutating func linkFailed(_ error: DialogError) {
    guard phase != .over else { return }
    isLinkDead = true
    if phase != .ending { report(.closed(error)) }
    close()
  }

  private mutating func end() {
    isReporting = false
    refuseCommands()
    switch phase {
    case .opening: close()
    case .loggingIn, .joining, .inRoom:
      let hasRoom = phase == .inRoom
      phase = .ending
      endDeadline = time + Self.ending
      if hasRoom, me != nil { request(.leave, .minor) }
      request(.logout, .logout)
    case .ending, .over: break
    }
  }

  private mutating func refuseCommands() {
    for number in pending.takeCommands() {
      steps.append(.answer(number, RTCError.ended.error("the room has been left", scope: .command)))
    }
  }

  private mutating func close() {
    refuseCommands()
    isReporting = false
    phase = .over
    steps.append(.close)
  }

  private mutating func tick() {
    guard phase != .over else { return }
    if let endDeadline {
      if time >= endDeadline { close() }
      return
    }
    for purpose in pending.takeExpired(at: time) {
      let text = "the hub did not answer within \(limit(of: purpose) / 1_000_000) ms"
      refused(purpose, RTCError.signalTimeout.error(text))
    }
    if let due = sessions.deadline, due <= time { ofSession(.tick) }
  }

  // MARK: Answers

  private mutating func receive(_ bytes: [UInt8]) {
    guard phase != .opening, phase != .over else { return }
    do throws(RoomReadProblem) {
      switch try RoomHubMessage(parsing: bytes) {
      case .answer(let answer): answered(answer)
      case .push(let push): pushed(push)
      }
    } catch {
      guard let id = error.id, let purpose = pending.take(id) else { return invalid(error.text) }
      refused(purpose, Self.badAnswer(error.text))
    }
  }

  private static func badAnswer(_ text: String) -> DialogError {
    RTCError.badAnswer.error("an answer of the hub is not valid: \(JanusErrors.cut(text))")
  }

  private mutating func invalid(_ text: String) {
    guard phase != .opening, phase != .ending, phase != .over else { return }
    invalidCount += 1
    guard invalidCount < Self.mostInvalid else {
      return fail(
        RTCError.badAnswer.error("the server is no hub: \(JanusErrors.cut(text)); check the URL"))
    }
    tell(RTCError.badAnswer.error("a message of the hub is not valid: \(JanusErrors.cut(text))"))
  }

  private mutating func answered(_ answer: RoomAnswer) {
    guard let purpose = pending.take(answer.id) else { return }
    switch answer.result {
    case .success: done(purpose, answer)
    case .failure(let problem): refused(purpose, errors.error(problem))
    }
  }

  private mutating func done(_ purpose: RoomPurpose, _ answer: RoomAnswer) {
    if purpose == .logout { return close() }
    guard phase != .ending, phase != .over else { return }
    do throws(RoomError) {
      switch purpose {
      case .login:
        _ = try answer.payload(RoomLoggedIn.self)
        guard phase == .loggingIn, let join = settings.join else { return }
        phase = .joining
        request(.join(join), .join)
      case .join: enter(try answer.payload(RoomJoined.self))
      case .description(let session, let number):
        var description: RoomDescription?
        if sessions.isHub { description = try answer.payload(RoomDescription.self) }
        ofSession(.taken(session, number: number, description))
      case .ask(let command, let effect):
        if let command { steps.append(.answer(command, nil)) }
        if let effect { apply(effect) }
      case .minor, .logout: break
      }
    } catch {
      refused(purpose, Self.badAnswer(error.text))
    }
  }

  /// A request was refused, or not answered in time.
  private mutating func refused(_ purpose: RoomPurpose, _ error: DialogError) {
    if purpose == .logout { return close() }
    guard phase != .ending, phase != .over else { return }
    switch purpose {
    case .login, .join: fail(error)
    case .description(let session, let number):
      ofSession(.refused(session, number: number, error))
    case .ask(let command?, _): steps.append(.answer(command, RoomErrors.passing(error)))
    case .ask(nil, _): tell(error)
    case .minor, .logout: break
    }
  }

  private mutating func enter(_ room: RoomJoined) {
    guard phase == .joining else { return }
    guard room.room.rawValue == settings.room else {
      let text = "asked for the room \"\(settings.room)\", and the hub says \"\(room.room)\""
      return fail(RTCError.badAnswer.error(text))
    }
    phase = .inRoom
    me = room.peer
    role = room.role
    tell(.conversationStarted(id: room.room.rawValue))
    tell(.extra(name: "joined", payload: Self.payload(room)))
    tell(.role(RoomWords.role(room.role)))
    for event in roster.begin(room.peers) { tell(event) }
    wishes.keep(room.peers)
    publishFirst(room)
    subscribeFirst(room)
    // Behind these requests: places are given to those who are subscribed to.
    ofSession(.joined(room))
  }

  private static func payload(_ room: RoomJoined) -> JSONValue {
    .object([
      "room": .string(room.room.rawValue), "peer": .string(room.peer.rawValue),
      "rights": .array(
        RoomRight.allCases.filter { room.rights.contains($0) }.map { .string($0.rawValue) }),
      "media": room.media.map { .string($0.rawValue) },
    ])
  }

  private static func payload(_ file: RoomFile, _ id: RoomName, _ peer: RoomName) -> JSONValue {
    .object([
      "peer": .string(peer.rawValue), "id": .string(id.rawValue), "name": .string(file.name),
      "bytes": .integer(file.bytes), "type": file.type.map { .string($0) },
    ])
  }

  private mutating func publishFirst(_ room: RoomJoined) {
    for track in [RoomTrack.audio, .video] where settings.sends(track) {
      // The hub forwards nothing before it has published it; the other side of a session takes what is wanted at once.
      if sessions.isHub || wishes.publications[track] == nil { unpublished(track) }
    }
    let wanted = RoomTrack.allCases.compactMap { wishes.publications[$0] }
    guard !wanted.isEmpty, room.role == .host else { return }
    guard room.rights.contains(.publish) else {
      let text = "the token does not allow to publish; nothing that is sent reaches others"
      return tell(RTCError.command.error(text, scope: .command))
    }
    for publication in wanted { publish(publication) }
  }

  /// In a room that mixes everybody is heard all the same.
  private mutating func subscribeFirst(_ room: RoomJoined) {
    guard sessions.isHub, room.media == .forward else { return }
    for track in RoomTrack.allCases {
      let receives =
        switch track {
        case .audio: settings.media.audio.receives
        case .video: settings.media.video.receives
        case .data: true
        }
      guard receives else { continue }
      if wishes.all.contains(track) { subscribe(RoomSubscription(track, isOn: true)) }
      // Those of an attempt before this one who are still there.
      for peer in wishes.exceptions(to: track, among: room.peers) {
        subscribe(RoomSubscription(track, isOn: !wishes.all.contains(track), peer: peer))
      }
    }
  }

  private mutating func subscribe(_ subscription: RoomSubscription) {
    request(.subscribe(subscription), .ask(command: nil, .subscription(subscription)))
  }

  // MARK: Pushes

  private mutating func pushed(_ push: RoomPush) {
    guard phase == .loggingIn || phase == .joining || phase == .inRoom else { return }
    switch push {
    case .call(let change):
      tell(.call(RoomWords.call(change)))
      guard let room = change.room else { return }
      tell(
        .extra(
          name: "callRoom",
          payload: ["call": .string(change.call.rawValue), "room": .string(room.rawValue)]))
    case .authWillExpire(let milliseconds): tell(.authWillExpire(inMilliseconds: milliseconds))
    case .error(let problem): tell(errors.error(problem))
    case .unknown: tell(.unknown(push.json))
    default: if phase == .inRoom { pushedInRoom(push) }
    }
  }

  private mutating func pushedInRoom(_ push: RoomPush) {
    switch push {
    case .peer(let change):
      guard change.member.peer != me else { return }
      for event in roster.take(change) { tell(event) }
      if case .left = change.kind { wishes.forget(change.member.peer) }
      ofSession(.peer(change))
    case .slot(let slot):
      report(.slot(mid: slot.mid, track: RoomWords.track(slot.track), peer: slot.peer?.rawValue))
    case .sdp(let description, let peer): ofSession(.remote(description, from: peer))
    case .candidate(let candidate, let peer): ofSession(.remoteCandidate(candidate, from: peer))
    case .keyFrame: report(.wantsKeyFrame)
    case .speaking(let levels):
      tell(
        .speaking(
          levels.map {
            DialogLevel(peer: $0.peer == me ? nil : $0.peer.rawValue, decibels: Double($0.level))
          }))
    case .control(let command, let peer):
      tell(
        .command(
          name: command["command"]?.string ?? "",
          payload: ["peer": .string(peer.rawValue), "command": command]))
    case .data(let data, let peer): received(data, from: peer)
    case .message(let text, let peer):
      tell(
        .extra(name: "message", payload: ["peer": .string(peer.rawValue), "text": .string(text)]))
    case .file(let file, let id, let peer): tell(.extra(name: "file", payload: Self.payload(file, id, peer)))
    case .kicked(let reason, let text): kicked(reason, text)
    case .call, .authWillExpire, .error, .unknown: break
    }
  }

  private mutating func received(_ data: RoomData, from peer: RoomName) {
    switch data.content {
    case .text(let text):
      report(.data(label: data.label, Array(text.utf8), isText: true, from: peer.rawValue))
    case .bytes(let bytes): report(.data(label: data.label, bytes, isText: false, from: peer.rawValue))
    }
  }

  /// This side is out of the room; only the login is left to be given back.
  private mutating func kicked(_ reason: RoomKickReason, _ text: String?) {
    me = nil
    let words = text.map { ": \(errors.shown($0))" } ?? ""
    func leave(_ kick: KickReason, _ error: DialogError) {
      tell(.kicked(kick, text: error.text))
      fail(error)
    }
    switch reason {
    case .replaced:
      leave(
        .replaced,
        RTCError.duplicate.error(
          "the user has joined the room from elsewhere\(words); joining again would remove that one",
          reaction: .refuse))
    case .removed:
      leave(.removed, RTCError.ended.error("removed from the room\(words)", reaction: .refuse))
    case .ended: leave(.ended, RTCError.ended.error("the room has ended\(words)"))
    case .expired:
      tell(.authExpired)
      var error = RTCError.authFailed.error("the token has expired\(words); use a new \"token\"")
      error.detail = RoomErrorName.tokenExpired.rawValue
      leave(.other, error)
    }
  }
}
