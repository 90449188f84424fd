internal import MillraceConformance
internal import MillraceCore
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// A session of the double: an avatar that is prepared, started and driven. On the network thread.
final class DoubleSession: @unchecked Sendable {
  enum State { case preparing, active, closed }
  /// What the avatar speaks now.
  enum Source { case none, text, voice }

  /// An error of the service, by code.
  struct Refusal {
    var code: Int
    var text: String
  }

  let id: String
  let user: String
  let driver: Int
  let isSession: Bool
  private(set) var state = State.preparing
  private let double: IVHDouble.Server
  private let clock = Clock(.realtime)

  private var isStarted = false
  private var isReplaced = false
  private var channel: WebSocket?
  /// Nil: nothing is published.
  private var picture: AvatarPublisher?
  private var isStalled = false
  /// Messages of the client so far.
  private var messages = 0

  // What is spoken.
  /// Number of what is spoken now; scheduled steps of older ones are skipped.
  private var step = 0
  private var source = Source.none
  private var isSpeaking = false
  private var turn = IVHScenario.Turn()
  private var round = ""
  private var speeches = 0
  private var reply = 0
  private var textAt: Nanoseconds?
  /// Parts of the text that is spoken which are still to be spoken; nil: it does not come in parts, or all of it was sent.
  private var parts: [Part]?
  /// It waits for the next part.
  private var isBetweenParts = false
  /// The part that is spoken is a sentence.
  private var isSentence = false

  /// A part of a text that comes in parts.
  private struct Part {
    var text: String
    /// A sentence by itself: the client waits for its end.
    var isSentence: Bool
    var isLast: Bool
  }

  // The voice.
  private var timing: VoicePace
  private var ear = DoubleEar(.pcm, rate: 16_000)
  private var sequence = 0
  private var isVoiceEnding = false
  /// `ReqId` of the present utterance, and of the last that has ended; session generation.
  private var utterance = "", endedUtterance = ""
  /// A fault has made the rest of the utterance silent.
  private var isVoiceLost = false
  /// Packets of the utterance that is recognised.
  private var recognised = 0
  /// What waits until the avatar begins to speak it.
  private var held: [Int16] = []

  init(_ double: IVHDouble.Server, id: String, user: String, driver: Int, isSession: Bool) {
    self.double = double
    self.id = id
    self.user = user
    self.driver = driver
    self.isSession = isSession
    timing = VoicePace(isSession: isSession)
  }

  // MARK: Life

  func prepare() {
    double.later(double.scenario.preparing) { [self] in
      if state == .preparing { state = .active }
    }
    if double.scenario.preparing == 0 { state = .active }
    if double.scenario.hasPicture { publish() }
    guard !isSession else { return }
    // Without a start the opening line comes by itself.
    double.later(10_000) { [self] in if state == .active && !isStarted { begin() } }
  }

  private var address: String { "\(double.scenario.stream)/\(id)" }

  private func publish() {
    let double = double
    picture = AvatarPublisher(
      to: address, width: double.scenario.width, height: double.scenario.height
    ) { double.violate("noPicture", $0) }
    let end = double.scenario.pictureEnds
    if end > 0 { double.later(end) { [self] in picture?.stop() } }
  }

  func status() -> IVHResponse {
    let number = state == .active ? 1 : state == .preparing ? 3 : 2
    var members = [
      JSONValue.Member("SessionId", .string(id)), JSONValue.Member("SessionStatus", .integer(number)),
    ]
    if state == .active {
      double.noteStream(address)
      members.append(JSONValue.Member("PlayStreamAddr", .string(address)))
    }
    if isSession {
      members.append(JSONValue.Member("IsSessionStarted", .bool(isStarted)))
      members.append(JSONValue.Member("ErrorCode", 0))
      if isReplaced { members.append(JSONValue.Member("CloseType", 5)) }
    } else {
      members.append(JSONValue.Member("SpeakStatus", isSpeaking ? "speak_start" : "speak_over"))
    }
    return IVHResponse(.object(members))
  }

  /// Nil: it is not answered.
  func start() -> IVHResponse? {
    guard state == .active else { return .refusal(isSession ? 110_014 : 110_006, "not active") }
    guard !isStarted else {
      double.violate("secondStart", "startsession came again")
      return .refusal(110_005, "started already")
    }
    if let fault = double.firstFault(at: .connecting), misbehave(fault) {
      return fault.kind == .hold || fault.kind == .stall
        ? nil : .refusal(fault.code ?? 100_000, "as the scenario requires")
    }
    begin()
    return IVHResponse()
  }

  private func begin() {
    isStarted = true
    let opening = double.scenario.opening
    guard !opening.isEmpty else { return }
    // The channel of the session generation is opened after the start.
    double.later(isSession ? 100 : 0) { [self] in
      guard state == .active, source == .none else { return }
      var turn = IVHScenario.Turn()
      turn.says = opening
      speak(turn, id: "opening")
    }
  }

  /// The same user has begun another session.
  func replace() {
    isReplaced = true
    send([
      "Header": ["Code": 110_022, "Message": "the same user has begun another session"],
      "Payload": .object([] as [JSONValue.Member]),
    ])
    double.noteReported(.kicked(.replaced, text: "the same user has begun another session"))
    close()
  }

  func endPicture() { picture?.stop() }

  func close() {
    state = .closed
    step += 1
    channel?.close(code: 1000)
    channel = nil
    picture?.stop()
  }

  // MARK: The channel

  /// Why a channel cannot be opened now.
  var refusalOfChannel: (status: Int, text: String)? {
    guard state == .active else { return (403, "the session is not active") }
    guard !isSession || isStarted else { return (403, "the session was not started") }
    if isStalled {
      // It has not noticed that the client has given the channel up.
      channel?.cancel()
      channel = nil
    }
    if channel != nil {
      double.violate("secondChannel", "a session has one channel")
      return (409, "the session has a channel")
    }
    return nil
  }

  func open(_ socket: WebSocket) {
    channel = socket
    isStalled = false
    watchSilence()
  }

  func handle(_ event: WebSocketEvent, of socket: WebSocket) {
    guard socket === channel else { return }
    switch event {
    case .opened: if let fault = double.firstFault(at: .listening) { _ = misbehave(fault) }
    case .text(let bytes): if !isStalled { take(bytes) }
    case .binary: double.violate("binary", "all messages of the channel are text")
    case .drained: break
    case .closed:
      channel = nil
      // Nothing more of a voice comes; a text is spoken to its end.
      if source == .voice { silenceVoice() }
      if state == .active { double.note("# the channel was closed") }
    }
  }

  /// Closes the channel when nothing comes for too long.
  private func watchSilence() {
    let limit = double.scenario.idle
    guard limit > 0 else { return }
    messages += 1
    let count = messages
    double.later(limit) { [self] in
      guard count == messages, let channel else { return }
      double.violate("idle", "no message for \(limit) ms")
      channel.close(code: 1001)
    }
  }

  private func take(_ bytes: [UInt8]) {
    watchSilence()
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      double.violate("noJSON", "\(error)")
      return
    }
    guard json["Header"]?.members != nil, let payload = json["Payload"] else {
      return double.violate("noEnvelope", "a frame lacks Header or Payload")
    }
    if payload["SessionId"]?.string != id { double.violate("wrongSession", "a frame names another session") }
    if let refusal = take(payload) {
      send([
        "Header": ["Code": .integer(refusal.code), "Message": .string(refusal.text)],
        "Payload": .object(["SessionId": .string(id), "ReqId": payload["ReqId"]]),
      ])
    }
  }

  // MARK: Texts and voice

  /// Takes a command of the channel, or of a request. Returns why it is refused, or nil.
  func take(_ payload: JSONValue) -> Refusal? {
    let command = payload["Command"]?.string ?? ""
    let data = payload["Data"] ?? .null
    let request = payload["ReqId"]?.string ?? ""
    if isSession && request.utf8.count != 32 { double.violate("noRequestID", "\(command) has no ReqId") }
    guard !isSession || isStarted else { return Refusal(code: 110_016, text: "not started") }
    switch command {
    case "SEND_HEARTBEAT":
      if data["Text"]?.string != "PING" { double.violate("wrongHeartbeat", "its Text is PING") }
      double.note("> PING")
    case "SEND_TEXT": return takeText(data, request)
    case "SEND_STREAMTEXT" where isSession: return takePart(data, request)
    case "SEND_AUDIO": return takeAudio(data, request)
    default:
      double.violate("wrongCommand", "\"\(command)\"")
      return Refusal(code: 100_002, text: "Command")
    }
    return nil
  }

  /// Milliseconds by which texts may be closer than a second.
  private static let textTolerance: Int64 = 800

  private func takeText(_ data: JSONValue, _ request: String) -> Refusal? {
    let text = data["Text"]?.string ?? ""
    let isForced = data["Interrupt"]?.bool ?? false
    double.note(text.isEmpty ? "> interrupt" : "> text")
    guard text.utf8.count <= 4_000 else { return Refusal(code: 110_001, text: "the text is too long") }
    guard !text.isEmpty else { return interrupt(isForced: isForced) }
    if isSession {
      let now = clock.now
      let due = textAt.map { $0 + .milliseconds(1_000) } ?? 0
      // A text may reach a busy machine late, and the next one in time.
      if now + .milliseconds(Self.textTolerance) < due {
        double.violate("textsTooClose", "less than 1 s between texts")
      }
      textAt = max(now, due)
    }
    guard source != .voice else {
      double.violate("textDuringVoice", "a text while a voice drives the avatar")
      return Refusal(code: 110_015, text: "a voice drives the avatar")
    }
    if isSpeaking && turn.isUninterruptible && !isForced {
      push(["Type": 7, "Text": .string(text)])
      return nil
    }
    if source == .text { end(.interrupted) }
    answer(text, request)
    return nil
  }

  private func takePart(_ data: JSONValue, _ request: String) -> Refusal? {
    let number = data["Seq"]?.integer ?? 0
    let text = data["Text"]?.string ?? ""
    guard text.utf8.count <= 1_000 else { return Refusal(code: 110_001, text: "the part is too long") }
    if text.isEmpty && data["Interrupt"]?.bool == true { return interrupt(isForced: true) }
    double.note("> part \(number)")
    if number == 1 {
      if source == .text { end(.interrupted) }
      sequence = 0
    }
    sequence += 1
    if number != sequence { double.violate("wrongSequence", "part \(number) instead of \(sequence)") }
    let part = Part(
      text: text, isSentence: data["IsSentence"]?.bool ?? false, isLast: data["IsFinal"]?.bool ?? false)
    guard number > 1 else {
      answer(text, request)
      // What a scenario says is not what was sent.
      parts = turn.says == text && !part.isLast ? [] : nil
      isSentence = part.isSentence
      return nil
    }
    parts?.append(part)
    if isBetweenParts { nextPart() }
    return nil
  }

  /// A part was spoken.
  private func nextPart() {
    if isSentence && !isBetweenParts { state("SentenceOver") }
    guard let part = parts?.first else {
      if parts == nil { return end(.client) }
      if isSentence && !isBetweenParts { state("SentenceNext") }
      isBetweenParts = true
      return
    }
    isBetweenParts = false
    isSentence = part.isSentence
    parts = part.isLast ? nil : Array(parts?.dropFirst() ?? [])
    turn.says = part.text
    guard !part.text.isEmpty else { return nextPart() }
    prepare { [self] sound in
      if isSentence { state("SentenceStart") }
      saySpeech()
      utter(sound)
    }
  }

  private func interrupt(isForced: Bool) -> Refusal? {
    guard isSession || isForced || !turn.isUninterruptible || !isSpeaking else {
      return nil
    }
    if !isSession && isForced {
      let isRefused = isSpeaking && turn.refusesForce
      push([
        "Type": 1, "Text": "", "InterruptResult": isRefused ? 2 : 1,
        "InterruptMessage": isRefused ? "as the scenario requires" : "",
      ])
      if isRefused { return nil }
    }
    guard source == .text else { return nil }
    guard isSpeaking else {
      double.violate("earlyInterruption", "a text was interrupted before it began")
      return nil
    }
    double.observer.interrupted?()
    end(.interrupted)
    return nil
  }

  private func takeAudio(_ data: JSONValue, _ request: String) -> Refusal? {
    guard let audio = Base64.decode(data["Audio"]?.string ?? "") else {
      double.violate("noBase64", "Audio is not Base64")
      return Refusal(code: 100_002, text: "Audio")
    }
    let isLast = data["IsFinal"]?.bool ?? false
    guard source != .text || driver == 1 else {
      double.violate("voiceDuringText", "a voice while a text is spoken")
      return Refusal(code: 110_015, text: "a text is spoken")
    }
    if isSession {
      if request != utterance { beginUtterance(request) }
      sequence += 1
      if data["Seq"]?.integer != sequence { double.violate("wrongSequence", "Seq is not \(sequence)") }
      if isLast && !audio.isEmpty { double.violate("fullLast", "the last packet is empty") }
    }
    if !audio.isEmpty {
      double.noteReceived(audio)
      double.note(ear.hear(audio))
      if let problem = timing.take(audio.count, isLast: isLast, at: clock.now) {
        double.violate(problem.name, problem.text)
        if problem.isFatal { return Refusal(code: 110_001, text: problem.text) }
      }
      if let delay = timing.delay { double.note(delay: delay) }
    }
    // What the client has sent before it could know of the end.
    guard !isSession || utterance != endedUtterance else { return nil }
    guard driver != 1 else {
      recognise(isLast: isLast)
      return nil
    }
    if source == .none && !audio.isEmpty { beginVoice(request) }
    hold(audio)
    if isLast { endVoice(isCut: data["Interrupt"]?.bool == true) }
    return nil
  }

  /// What is heard while texts drive the avatar comes back as text: half of it after half a second, and all of it at the end.
  private func recognise(isLast: Bool) {
    guard !isSession else { return }
    let hears = double.scenario.turns[0].hears
    recognised += 1
    if isLast {
      recognised = 0
      push(["Type": 1, "Text": .string(hears)])
    } else if recognised == 5 {
      push(["Type": 1, "Text": .string(String(hears.prefix(hears.count / 2)))])
    }
  }

  /// Another `ReqId`: what is left of the utterance before, such as that of a channel that was lost, is forgotten.
  private func beginUtterance(_ request: String) {
    utterance = request
    sequence = 0
    guard source == .voice else { return }
    silenceVoice()
    timing.begin()
  }

  private func silenceVoice() {
    step += 1
    source = .none
    isSpeaking = false
    picture?.voice.stop()
  }

  private func beginVoice(_ request: String) {
    source = .voice
    isVoiceEnding = false
    isVoiceLost = false
    step += 1
    reply = double.nextReply()
    turn = double.nextTurn()
    round = nextRound(request)
    held = []
    let plan = step
    if misbehave(at: .thinking) {
      isVoiceLost = true
      return
    }
    // The picture shows the voice in real time; the lead absorbs a late packet.
    double.later(max(turn.thinks, picture == nil ? 0 : Self.voiceLead)) { [self] in
      guard plan == step, source == .voice else { return }
      beginSpeakingVoice()
    }
  }

  private func beginSpeakingVoice() {
    begun()
    isVoiceLost = misbehave(at: .responding)
  }

  /// Milliseconds of voice that an avatar with a picture waits for.
  private static let voiceLead = 320

  private func hold(_ audio: [UInt8]) {
    guard let voice = picture?.voice, source == .voice, !isVoiceLost else { return }
    held += Self.samples(audio)
    guard isSpeaking else { return }
    voice.speak(held)
    held = []
  }

  private static func samples(_ bytes: [UInt8]) -> [Int16] {
    stride(from: 0, to: bytes.count - 1, by: 2).map {
      Int16(truncatingIfNeeded: Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8)
    }
  }

  private func endVoice(isCut: Bool) {
    timing.begin()
    guard source == .voice else { return }
    if isCut { return end(.interrupted) }
    isVoiceEnding = true
    if isSpeaking, !isVoiceLost { isVoiceLost = misbehave(at: .midway) }
    let plan = step
    double.later(turn.thinks + 50) { [self] in
      guard plan == step, source == .voice, !isVoiceLost else { return }
      if !isSpeaking { beginSpeakingVoice() }
      // It is over when the rest of it was spoken.
      let rest = picture.map { $0.voice.waiting * 1_000 / AvatarVoice.rate } ?? 0
      double.later(rest) { [self] in
        guard plan == step, source == .voice, !isVoiceLost, !misbehave(at: .answered) else { return }
        end(.client)
      }
    }
  }

  // MARK: Speaking

  private enum End: Int { case client = 1, timeout, interrupted }

  private func nextRound(_ request: String) -> String {
    speeches += 1
    return isSession ? request : String(speeches)
  }

  private func answer(_ text: String, _ request: String) {
    var next = double.nextTurn()
    if !double.scenario.isNumbered && double.scenario.turns.count == 1 && next.says == IVHScenario.Turn().says
    {
      next.says = text
    }
    if !isSession { push(["Type": 1, "Text": .string(text)]) }
    speak(next, id: request)
  }

  private func speak(_ next: IVHScenario.Turn, id request: String) {
    turn = next
    source = .text
    step += 1
    reply = double.nextReply()
    round = nextRound(request)
    parts = nil
    isSentence = false
    isBetweenParts = false
    if isSession { state("WaitingTextStart") }
    if misbehave(at: .thinking) { return }
    prepare { [self] in say($0) }
  }

  /// Synthesises what is to be said next; nil: there is no voice.
  private func prepare(_ body: @escaping @Sendable (SpokenReply?) -> Void) {
    let plan = step
    let format: SpeechFormat? = picture == nil ? nil : .pcm
    double.prepare(turn, number: reply, format: format, rate: AvatarVoice.rate) { [self] result in
      guard plan == step else { return }
      switch result {
      case .success(let sound): body(sound)
      case .failure(let problem):
        double.violate("noVoice", problem.description)
        body(nil)
      }
    }
  }

  private func say(_ sound: SpokenReply?) {
    held = (sound?.pieces ?? []).flatMap(Self.samples)
    begun()
    if misbehave(at: .responding) { return }
    wait(for: sound)
  }

  /// A further part of a text.
  private func utter(_ sound: SpokenReply?) {
    picture?.voice.speak((sound?.pieces ?? []).flatMap(Self.samples))
    wait(for: sound)
  }

  /// Ends what is spoken when it was spoken.
  private func wait(for sound: SpokenReply?) {
    let words = turn.says.split(separator: " ").count
    let whole = sound?.milliseconds ?? Int(Double(words * 300) / double.scenario.speed)
    let plan = step
    double.later(whole / 2) { [self] in
      guard plan == step, !misbehave(at: .midway) else { return }
      double.later(whole - whole / 2) { [self] in
        guard plan == step, !misbehave(at: .answered) else { return }
        nextPart()
      }
    }
  }

  /// Puts a state of the avatar into its picture, with what is spoken from there on.
  private func show(_ status: String) {
    let message: JSONValue = ["sei_data": "", "status_data": ["STATUS": .string(status)]]
    picture?.voice.mark(message.text)
  }

  private func begun() {
    isSpeaking = true
    if let voice = picture?.voice {
      if double.scenario.flashes { voice.flash() }
      show(source == .voice ? "AudioStart" : "TextStart")
      double.noteSent(
        held.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }, of: reply)
      voice.speak(held)
      held = []
    }
    if source == .text { saySpeech() }
    if isSession { state(source == .voice ? "AudioStart" : "TextStart") } else { state("speak_start") }
    double.note("< start")
  }

  /// Several parts in the place of the whole.
  private func sayParts() {
    let parts = turn.says.split(separator: " ")
    for (index, part) in parts.enumerated() {
      let isLast = index + 1 == parts.count
      push(
        .object(
          [
            JSONValue.Member("Type", 4), JSONValue.Member("Text", .string(part + (isLast ? "" : " "))),
            JSONValue.Member("Final", .bool(isLast)),
          ] + roundMember))
    }
  }

  private func saySpeech() {
    if isSession && !turn.reasons.isEmpty {
      push(
        .object([JSONValue.Member("Type", 5), JSONValue.Member("Text", .string(turn.reasons))] + roundMember))
    }
    if isSession && turn.comesInParts { return sayParts() }
    var members: [JSONValue.Member] = [
      JSONValue.Member("Type", 2), JSONValue.Member("Text", .string(turn.says)),
      JSONValue.Member("TextPro", .string(turn.marks.isEmpty ? turn.says : turn.marks)),
      JSONValue.Member("TextDisplay", .string(turn.display.isEmpty ? turn.says : turn.display)),
      JSONValue.Member("Uninterrupt", .bool(turn.isUninterruptible)),
      JSONValue.Member("Muted", .bool(turn.isMuted)),
      JSONValue.Member("ChatStatus", turn.isScriptOver ? 4 : 1),
    ]
    if let kind = turn.interaction?["type"]?.string {
      let content = turn.interaction?["content"] ?? .null
      members.append(JSONValue.Member("InteractionType", .string(kind)))
      members.append(JSONValue.Member("InteractionContent", .string(content.string ?? content.text)))
    }
    push(.object(members + roundMember))
    noteGates(isOn: true)
    noteMedia()
  }

  private func noteMedia() {
    let kinds: [String: DialogMedia.Kind] = ["Image": .image, "Video": .video]
    guard let kind = turn.interaction?["type"]?.string.flatMap({ kinds[$0] }),
      let url = turn.interaction?["content"]?["url"]?.string
    else { return }
    var media = DialogMedia(kind, url: url)
    media.round = round
    double.noteReported(.media(media))
  }

  private func noteGates(isOn: Bool) {
    if turn.isUninterruptible { double.noteReported(.gate(.uninterruptible, isOn: isOn, round: round)) }
    if turn.isMuted { double.noteReported(.gate(.muted, isOn: isOn, round: round)) }
  }

  private func end(_ kind: End) {
    let wasVoice = source == .voice
    if wasVoice { endedUtterance = utterance }
    parts = nil
    isBetweenParts = false
    source = .none
    step += 1
    guard isSpeaking || isSession else { return }
    let wasSpeaking = isSpeaking
    isSpeaking = false
    if kind == .interrupted { picture?.voice.stop() }
    if wasSpeaking { show(wasVoice ? "AudioOver" : "TextOver") }
    if isSession {
      let members = [
        JSONValue.Member("Type", 3), JSONValue.Member("SpeakStatus", wasVoice ? "AudioOver" : "TextOver"),
        JSONValue.Member("FinalType", .integer(kind.rawValue)),
      ]
      push(.object(members + roundMember))
    } else {
      state("speak_over")
    }
    if wasSpeaking { noteGates(isOn: false) }
    if kind == .client { double.change { $0.turns += 1 } }
    double.note("< over")
  }

  // MARK: Sending

  private var roundMember: [JSONValue.Member] {
    [
      isSession
        ? JSONValue.Member("ReqId", .string(round)) : JSONValue.Member("SpeechId", .integer(Int(round) ?? 0))
    ]
  }

  private func state(_ word: String) {
    push(
      .object([JSONValue.Member("Type", 3), JSONValue.Member("SpeakStatus", .string(word))] + roundMember))
  }

  private func push(_ payload: JSONValue) {
    let members = [JSONValue.Member("SessionId", .string(id))] + (payload.members ?? [])
    let times = turn.fault?.kind == .repeated && source != .none ? 2 : 1
    for _ in 0..<times {
      send(["Header": ["Code": 0, "Message": ""], "Payload": .object(members)])
    }
  }

  private func send(_ message: JSONValue) {
    guard !isStalled, let channel else { return }
    _ = channel.send(text: message.text)
  }

  // MARK: Faults

  private func misbehave(at place: ServiceFault.Place) -> Bool {
    guard let fault = turn.fault, fault.place == place else { return false }
    return misbehave(fault)
  }

  /// Performs a fault. True when what was going on does not continue.
  private func misbehave(_ fault: ServiceFault) -> Bool {
    switch fault.kind {
    case .hold: return true
    case .stall:
      isStalled = true
      channel?.pause()
    case .drop: channel?.cancel()
    case .kick:
      if fault.reason == .replaced { replace() } else { close() }
    case .expire:
      double.expireKeys()
      channel?.cancel()
    case .error:
      push([
        "Type": isSession ? 9 : 5, "ErrorCode": .integer(fault.code ?? -111_005),
        "ErrorMsg": "as the scenario requires",
      ])
      if source != .none { end(.interrupted) }
    case .fail:
      send(["Header": ["Code": .integer(fault.code ?? -111_002), "Message": "as the scenario requires"]])
      channel?.close(code: 1011)
    case .oversized:
      _ = channel?.send(
        text: #"{"Header":{},"Payload":{"Type":2,"Text":""# + String(repeating: "a", count: 2 << 20) + #""}}"#
      )
    case .malformed:
      _ = channel?.send(text: #"{"Header":{},"Payload":{"Type":2,"Text":""# + ServiceFault.userText)
      return false
    case .unknown:
      let payload: JSONValue = ["SessionId": .string(id), "Type": 77, "Why": .string(ServiceFault.userText)]
      send(["Header": ["Code": 0], "Payload": payload])
      double.noteUnknown(payload)
      return false
    case .repeated, .outOfOrder: return false
    }
    return true
  }
}
