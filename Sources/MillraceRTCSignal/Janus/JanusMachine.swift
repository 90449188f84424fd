internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON

/// A session with Janus as a pure state machine: creates it, attaches handles, matches transactions, keeps it alive, and ends it. What the
/// messages of the plugin mean is the plugin's own machine (`JanusPlugin`).
///
/// It has no socket, no clock and no thread: every input is legal at any time, and returns what to do, in order. Time never runs
/// backwards.
struct JanusMachine: Sendable {
  enum Input: Sendable {
    /// The link can carry requests.
    case opened
    case message(JanusMessage)
    /// Bytes that are no message; the text says why.
    case invalid(String)
    /// The link has failed.
    case failed(DialogError)
    case describe(Int, sdp: String)
    case restart(Int, sdp: String)
    case candidate(Int, String?)
    /// With a number, under which it is answered.
    case command(Int, DialogCommand)
    /// This side has given up a session; all of it.
    case endSession(Int), end
    case tick
  }

  enum Step: Sendable {
    case send(JanusRequest)
    /// Events of this session may come from now on.
    case listen(Int)
    case report(SignalEvent)
    case answer(Int, DialogError?)
    /// Everything is over: the link is to be closed.
    case close
  }

  private enum Phase { case opening, creating, running, ending, over }

  /// Janus forgets a session after 60 s without a sign of life. Source: Janus, `session_timeout`.
  private static let keepalive: Nanoseconds = 25_000_000_000
  /// In which what Janus holds is released.
  static let ending: Nanoseconds = 1_500_000_000
  /// Messages that are not valid, until the peer is taken for something else than Janus.
  private static let mostInvalid = 8

  private var phase = Phase.opening
  private var isReporting = true
  private var isLinkDead = false
  private var plugin: any JanusPlugin
  private let pluginName: JanusPluginName
  private let timeout: Nanoseconds
  private let apiSecret: String?
  private var token: String?
  private var session: Int?
  private var handles: [Int: JanusHandle] = [:]
  private var pending = JanusPending()
  private var nextKeepalive: Nanoseconds?
  private var endDeadline: Nanoseconds?
  private var invalidCount = 0
  private var time: Nanoseconds = 0
  private var steps: [Step] = []

  init(_ settings: JanusSettings) {
    plugin = settings.makePlugin()
    pluginName = settings.plugin
    timeout = Nanoseconds(settings.timeout) * 1_000_000
    apiSecret = settings.apiSecret
    token = settings.token
  }

  /// When to call with `tick`; nil: never.
  var deadline: Nanoseconds? {
    guard phase != .over else { return nil }
    if let endDeadline { return endDeadline }
    return [pending.deadline, nextKeepalive].compactMap { $0 }.min()
  }

  /// True once nothing will be asked for any more.
  var isOver: Bool { phase == .over }

  mutating func handle(_ input: Input, at now: Nanoseconds) -> [Step] {
    time = max(time, now)
    take(input)
    defer { steps = [] }
    return steps
  }

  private mutating func take(_ input: Input) {
    switch input {
    case .command(let number, let command): perform(number, command)
    case .end: end()
    case .failed(let error): linkFailed(error)
    case .tick: tick()
    case .opened: opened()
    case .message(let message): receive(message)
    case .invalid(let text): invalid(text)
    default:
      guard phase == .running else { return }
      takeForSession(input)
    }
  }

  private mutating func takeForSession(_ input: Input) {
    switch input {
    case .describe(let number, let sdp): describe(number, sdp, isRestart: false)
    case .restart(let number, let sdp): describe(number, sdp, isRestart: true)
    case .candidate(let number, let candidate): add(candidate, number)
    case .endSession(let number): endSession(number)
    default: break
    }
  }

  // MARK: Requests

  private mutating func request(
    _ kind: String, _ purpose: JanusPending.Purpose, handle: Int? = nil,
    _ members: KeyValuePairs<String, JSONValue?> = [:]
  ) {
    guard !isLinkDead else { return }
    let transaction = pending.add(purpose, until: time + timeout)
    var all: [JSONValue.Member] = [
      JSONValue.Member("janus", .string(kind)), JSONValue.Member("transaction", .string(transaction)),
    ]
    for (name, value) in members { if let value { all.append(JSONValue.Member(name, value)) } }
    if let apiSecret { all.append(JSONValue.Member("apisecret", .string(apiSecret))) }
    if let token { all.append(JSONValue.Member("token", .string(token))) }
    let json = JSONValue.object(all)
    steps.append(.send(JanusRequest(json: json, session: session, handle: handle)))
  }

  private mutating func opened() {
    guard phase == .opening else { return }
    phase = .creating
    request("create", .create)
  }

  private mutating func attach(_ number: Int) {
    handles[number] = JanusHandle()
    request("attach", .attach(number), ["plugin": .string(pluginName.fullName)])
  }

  private mutating func detach(_ number: Int) {
    guard let handle = handles.removeValue(forKey: number), let id = handle.id else { return }
    request("detach", .detach, handle: id)
  }

  private mutating func perform(_ actions: [JanusAction]) {
    for action in actions where phase == .running {
      switch action {
      case .attach(let number): attach(number)
      case .detach(let number): detach(number)
      case .send(let number, let body, let description, let purpose):
        guard let id = handles[number]?.id, !pending.isFull else {
          refuse(number, purpose, RTCError.command.error("Janus does not take it now", scope: .command))
          continue
        }
        request(
          "message", .plugin(number, purpose), handle: id, ["body": body, "jsep": description?.json])
      case .report(let event):
        report(event)
        if case .offer(let session, _, _, _) = event { remoteKnown(session.number) }
      case .answer(let number, let error): steps.append(.answer(number, error))
      case .fail(let error): fail(error)
      }
    }
  }

  private mutating func report(_ event: SignalEvent) {
    if isReporting { steps.append(.report(event)) }
  }

  private mutating func extra(_ name: String, _ number: Int, _ members: [JSONValue.Member]) {
    report(
      .event(.extra(name: name, payload: .object([JSONValue.Member("session", .integer(number))] + members))))
  }

  // MARK: Sessions

  private mutating func describe(_ number: Int, _ sdp: String, isRestart: Bool) {
    guard var handle = handles[number], handle.id != nil, !handle.isEnded else { return }
    handle.awaitsAnswer = isOfferer(number)
    // A session that Janus offers is restarted by its new offer, not by one of this side.
    if isRestart && !isOfferer(number) {
      perform(plugin.handle(.restart(number, sdp: sdp)))
      return
    }
    handle.mid = JanusParts.firstMid(sdp)
    handle.isDescribed = true
    let waiting = handle.outgoing
    handle.outgoing = []
    handles[number] = handle
    perform(plugin.handle(isRestart ? .restart(number, sdp: sdp) : .describe(number, sdp: sdp)))
    for candidate in waiting { add(candidate, number) }
  }

  /// True where this side offers.
  private func isOfferer(_ number: Int) -> Bool {
    number == 0 && (pluginName == .echotest || pluginName == .audiobridge || pluginName == .videoroom)
  }

  private mutating func remoteKnown(_ number: Int) {
    guard let waiting = handles[number]?.incoming else { return }
    handles[number]?.isRemoteKnown = true
    handles[number]?.incoming = []
    for candidate in waiting { report(.candidate(SignalSessionID(number), candidate)) }
  }

  private mutating func add(_ candidate: String?, _ number: Int) {
    guard let handle = handles[number], let id = handle.id, !handle.isEnded, !pending.isFull else { return }
    guard handle.isDescribed else {
      if handle.outgoing.count < JanusHandle.mostCandidates { handles[number]?.outgoing.append(candidate) }
      return
    }
    var json: JSONValue = ["completed": true]
    if let candidate {
      json = ["sdpMid": .string(handle.mid), "sdpMLineIndex": 0, "candidate": .string(candidate)]
    }
    request("trickle", .trickle, handle: id, ["candidate": json])
  }

  private mutating func endSession(_ number: Int) {
    guard let handle = handles[number], !handle.isEnded else { return }
    if number == 0 {
      // The main handle is the membership in the room: only its connection is closed.
      handles[0]?.isEnded = true
      if let id = handle.id { request("hangup", .detach, handle: id) }
    } else {
      detach(number)
    }
    perform(plugin.handle(.ended(number)))
  }

  private mutating func perform(_ number: Int, _ command: DialogCommand) {
    guard phase == .running, handles[0]?.id != nil, !pending.isFull else {
      steps.append(
        .answer(number, RTCError.command.error("there is no session with Janus now", scope: .command)))
      return
    }
    if case .refreshAuth(let token?) = command {
      self.token = token
      steps.append(.answer(number, nil))
    } else {
      perform(plugin.handle(.command(number, command)))
    }
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
    guard phase == .creating || phase == .running else {
      if phase == .opening { close() }
      return
    }
    // Nothing is held, and nothing will be.
    guard session != nil || pending.awaitsSession else { return close() }
    phase = .ending
    endDeadline = time + Self.ending
    release()
  }

  /// Gives back what Janus holds; without a session id it is done when that arrives.
  private mutating func release() {
    guard session != nil else { return }
    if let leaveRequest = plugin.leaveRequest, let id = handles[0]?.id {
      request("message", .leave, handle: id, ["body": leaveRequest])
    }
    for number in handles.keys.sorted(by: >) { detach(number) }
    request("destroy", .destroy)
  }

  private mutating func refuseCommands() {
    for number in pending.takeCommands() {
      steps.append(.answer(number, RTCError.ended.error("the session with Janus has ended", scope: .command)))
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
    for purpose in pending.expired(at: time) {
      refused(
        purpose,
        RTCError.signalTimeout.error("Janus did not answer within \(timeout / 1_000_000) ms"))
    }
    guard phase == .running, let due = nextKeepalive, time >= due else { return }
    nextKeepalive = time + Self.keepalive
    request("keepalive", .keepalive)
  }

  // MARK: Messages

  private mutating func invalid(_ text: String) {
    guard phase == .creating || phase == .running else { return }
    invalidCount += 1
    guard invalidCount < Self.mostInvalid else {
      return fail(
        RTCError.badAnswer.error("the server is not Janus: \(text); check the address"))
    }
    report(
      .event(
        .error(
          RTCError.badAnswer.error(
            "a message of Janus is not valid: \(text)", reaction: .continue, scope: .command))))
  }

  private mutating func receive(_ message: JanusMessage) {
    guard phase != .opening, phase != .over else { return }
    if let session, let theirs = message.session, theirs != session { return }
    let purpose = pending.purpose(message.transaction)
    switch message.kind {
    case .ack: acknowledged(message, purpose)
    case .success: succeeded(message, purpose)
    case .error:
      pending.remove(message.transaction)
      let refusal = message.refusal ?? JanusMessage.Refusal(code: 0, reason: "")
      let error = JanusErrors.error(of: nil, code: refusal.code, reason: refusal.reason)
      if refusal.code == JanusErrors.unknownSession {
        lost(error)
      } else if let purpose {
        refused(purpose, error)
      } else {
        report(.event(.error(Self.passing(error))))
      }
    case .event: event(message, purpose)
    case .timeout:
      lost(RTCError.network.error("Janus ended the session because it received nothing for too long"))
    case .unknown: report(.event(.unknown(message.json)))
    case .keepalive: break
    case .trickle, .webrtcup, .media, .slowlink, .hangup, .detached:
      guard phase == .running, let number = number(of: message.sender) else { return }
      ofConnection(message, number)
    }
  }

  /// An error that ends nothing.
  private static func passing(_ error: DialogError) -> DialogError {
    var error = error
    (error.reaction, error.scope) = (.continue, .command)
    return error
  }

  /// The session is not there any more: nothing is left to be released.
  private mutating func lost(_ error: DialogError) {
    if phase != .ending { report(.closed(error)) }
    close()
  }

  private func number(of id: Int?) -> Int? {
    guard let id else { return nil }
    return handles.first { $0.value.id == id }?.key
  }

  private mutating func acknowledged(_ message: JanusMessage, _ purpose: JanusPending.Purpose?) {
    switch purpose {
    // The answer is an event that follows.
    case .plugin?, .create?, .attach?, nil: break
    case .keepalive?, .trickle?, .detach?, .leave?: pending.remove(message.transaction)
    case .destroy?: close()
    }
  }

  private mutating func succeeded(_ message: JanusMessage, _ purpose: JanusPending.Purpose?) {
    switch purpose {
    case .create?:
      guard let id = message.id else { return invalid("a new session without an id") }
      pending.remove(message.transaction)
      session = id
      guard phase == .creating else { return release() }
      phase = .running
      nextKeepalive = time + Self.keepalive
      steps.append(.listen(id))
      attach(0)
    case .attach(let number)?:
      guard let id = message.id else { return invalid("a new handle without an id") }
      pending.remove(message.transaction)
      attached(number, id)
    case .plugin?: event(message, purpose)
    case .destroy?: close()
    case .keepalive?, .trickle?, .detach?, .leave?, nil: pending.remove(message.transaction)
    }
  }

  private mutating func attached(_ number: Int, _ id: Int) {
    guard phase == .running else { return }
    guard handles[number] != nil else {
      // Given up meanwhile.
      return request("detach", .detach, handle: id)
    }
    handles[number]?.id = id
    perform(plugin.handle(.attached(number)))
  }

  /// A message of the plugin, unasked or as an answer.
  private mutating func event(_ message: JanusMessage, _ purpose: JanusPending.Purpose?) {
    pending.remove(message.transaction)
    guard phase == .running else { return }
    let answered: (number: Int, purpose: JanusPurpose)?
    if case .plugin(let number, let purpose)? = purpose {
      answered = (number, purpose)
    } else {
      answered = nil
    }
    guard let data = message.data, let number = answered?.number ?? number(of: message.sender),
      handles[number] != nil
    else {
      if case .command(let command)? = answered?.purpose {
        let error = RTCError.command.error("the session of this command has ended", scope: .command)
        steps.append(.answer(command, error))
      }
      return
    }
    if let code = data["error_code"] {
      let error = JanusErrors.error(
        of: pluginName, code: code.integer ?? 0, reason: data["error"]?.string ?? "")
      guard let answered else { return report(.event(.error(Self.passing(error)))) }
      return refused(.plugin(answered.number, answered.purpose), error)
    }
    if case .command(let command)? = answered?.purpose { steps.append(.answer(command, nil)) }
    perform(plugin.handle(.event(number, data, message.description)))
    guard let description = message.description, description.kind == .answer,
      handles[number]?.awaitsAnswer == true, handles[number]?.isEnded == false
    else { return }
    handles[number]?.awaitsAnswer = false
    report(.answer(SignalSessionID(number), sdp: description.sdp))
    remoteKnown(number)
  }

  /// A request was refused, or not answered in time.
  private mutating func refused(_ purpose: JanusPending.Purpose, _ error: DialogError) {
    switch purpose {
    case .create, .keepalive: fail(error)
    case .destroy: close()
    case .trickle, .detach, .leave: break
    case .attach(let number):
      if number == 0 { fail(error) } else { refuse(number, .join, error) }
    case .plugin(let number, let purpose): refuse(number, purpose, error)
    }
  }

  private mutating func refuse(_ number: Int, _ purpose: JanusPurpose, _ error: DialogError) {
    guard phase == .running else { return }
    switch purpose {
    case .command(let command):
      steps.append(.answer(command, Self.passing(error)))
      perform(plugin.handle(.refused(number, purpose, error)))
    case .other: break
    case .join where number == 0: fail(error)
    case .describe where !plugin.survivesRefusal(of: number): fail(error)
    case .join, .describe: perform(plugin.handle(.refused(number, purpose, error)))
    }
  }

  // MARK: The connection

  private mutating func ofConnection(_ message: JanusMessage, _ number: Int) {
    let detail = ["type", "mid", "receiving", "uplink", "lost", "nacks", "media"].compactMap { name in
      message.json[name].map { JSONValue.Member(name, $0) }
    }
    switch message.kind {
    case .trickle: candidates(message.candidates, number)
    case .webrtcup, .media, .slowlink: extra(message.kind.rawValue, number, detail)
    case .hangup:
      let reason = JanusErrors.cut(message.json["reason"]?.string ?? "")
      extra("hangup", number, [JSONValue.Member("reason", .string(reason))])
      hungUp(number)
    case .detached where number == 0:
      fail(RTCError.network.error("Janus has detached the handle"))
    case .detached:
      handles[number] = nil
      report(.sessionEnded(SignalSessionID(number)))
      perform(plugin.handle(.hungUp(number)))
    default: break
    }
  }

  private mutating func candidates(_ candidates: [String?], _ number: Int) {
    guard let handle = handles[number], !handle.isEnded else { return }
    guard !handle.isRemoteKnown else {
      for candidate in candidates { report(.candidate(SignalSessionID(number), candidate)) }
      return
    }
    let room = max(0, JanusHandle.mostCandidates - handle.incoming.count)
    handles[number]?.incoming += candidates.prefix(room)
  }

  /// Janus has closed the connection of a session. The main handle lives on.
  private mutating func hungUp(_ number: Int) {
    guard let handle = handles[number], !handle.isEnded, handle.isDescribed || handle.isRemoteKnown else {
      return
    }
    if number == 0 { handles[0]?.isEnded = true } else { detach(number) }
    report(.sessionEnded(SignalSessionID(number)))
    perform(plugin.handle(.hungUp(number)))
  }
}
