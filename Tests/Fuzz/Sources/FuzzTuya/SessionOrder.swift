import MillraceDialog

/// What a session has asked for so far, and what may follow.
///
/// It sends only while there is a session; begins an event only where none is open, unless the cloud may have ended it; sends data and ends
/// only within the event that is open; ends the user's audio only where it has begun; and delivers and cancels only what has arrived.
struct SessionOrder {
  private var isConnected = false
  private var hasSession = false
  private var event: String?
  /// The cloud has said something that may end the event.
  private var mayBeOver = false
  private var hasVoice = false
  /// Audio was delivered that has been neither ended as an utterance nor cancelled.
  private var hasAudio = false
  private var canBeCancelled = false

  /// What an input says, before the session takes it.
  mutating func note(_ input: TuyaInput, _ session: TuyaSession) {
    switch input {
    case .lost: if session.phase != .waiting { isConnected = false }
    case .message(.connected): isConnected = isConnected || session.phase == .connecting
    // The cloud has closed the session.
    case .message(.sessionClosed): if session.phase != .waiting { leave() }
    case .message(.sessionAnswered(let status)):
      if session.phase != .waiting && status != .ok && status.rawValue != 0 { leave() }
    case .message(.event(let event)):
      let ends: Set<TuyaEventType> = [.end, .chatBreak, .serverTimeover]
      if ends.contains(event.type) { mayBeOver = true }
    default: break
    }
    if !isConnected { leave() }
  }

  private mutating func leave() {
    (hasSession, event, hasVoice) = (false, nil, false)
  }

  mutating func check(_ actions: [TuyaAction], of input: TuyaInput) {
    for action in actions { check(action, of: input) }
  }

  private mutating func check(_ action: TuyaAction, of input: TuyaInput) {
    switch action {
    case .send(let call):
      if !isConnected { fatalError("not connected when it sends \(call)") }
      check(call)
    case .connect, .disconnect:
      isConnected = false
      leave()
    case .deliver:
      if input != .audio { fatalError("\(input) carries no audio to deliver") }
      (hasAudio, canBeCancelled) = (true, true)
    case .deliverImage: if input != .image { fatalError("\(input) carries no image") }
    case .deliverFile(let path):
      guard case .message(.file(path, _, _)) = input else { fatalError("\(input) carries no file") }
    case .endUtterance:
      if !hasAudio { fatalError("an utterance without audio") }
      hasAudio = false
    case .cancelReply:
      if !canBeCancelled { fatalError("nothing of the reply was delivered") }
      (hasAudio, canBeCancelled) = (false, false)
    case .stream: fatalError("it has no streams")
    case .end, .post, .refuse, .answerLater, .useCredential: break
    }
  }

  private mutating func check(_ call: TuyaCall) {
    switch call {
    case .requestToken: return
    case .createSession(let creation):
      if hasSession { fatalError("a second session: \(creation)") }
      if !TuyaOrder.isID(creation.id) { fatalError("the session's id is not fit: \(creation.id)") }
      leave()
      hasSession = true
      return
    default: if !hasSession { fatalError("no session for \(call)") }
    }
    switch call {
    case .requestToken, .createSession: break
    case .closeSession: leave()
    case .startEvent(let id, _): begin(id)
    case .beginVoice(let id):
      if hasVoice { fatalError("the voice begins twice") }
      inEvent(id, call)
      hasVoice = true
    case .endVoice:
      if !hasVoice { fatalError("no voice that could end") }
      hasVoice = false
    case .endPayloads(let id, _, _): inEvent(id, call)
    case .endEvent(let id, _): end(id, call)
    // Also one that was sent completely, or that only the cloud has named.
    case .breakEvent(let id, _): if id == event { end(id, call) }
    case .event(_, let id, _, _): if !TuyaOrder.isID(id) { fatalError("the event's id is not fit: \(id)") }
    case .text, .image, .heldImage, .file: if event == nil { fatalError("no event for \(call)") }
    }
  }

  private mutating func begin(_ id: String) {
    if let event, !mayBeOver { fatalError("\(id) begins within \(event)") }
    if hasVoice { fatalError("\(id) begins while a voice goes on") }
    if !TuyaOrder.isID(id) { fatalError("the event's id is not fit: \(id)") }
    (event, mayBeOver) = (id, false)
  }

  private func inEvent(_ id: String, _ call: TuyaCall) {
    if event != id { fatalError("\(call) while \(event ?? "nothing") is open") }
  }

  private mutating func end(_ id: String, _ call: TuyaCall) {
    inEvent(id, call)
    if hasVoice { fatalError("\(call) while a voice goes on") }
    event = nil
  }
}
