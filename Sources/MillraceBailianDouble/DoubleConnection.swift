internal import MillraceConformance
internal import MillraceCore
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// A connection of a client. On the network thread.
final class DoubleConnection: @unchecked Sendable {
  enum State: String {
    /// Start is expected.
    case fresh
    case listening = "Listening"
    case thinking = "Thinking"
    case responding = "Responding"
    case over
  }

  enum Mode: String {
    case push2talk, tap2talk, duplex
  }

  let double: BailianDouble.Server
  let socket: WebSocket
  var state = State.fresh
  var task = ""
  let dialog = "double-\(UInt32.random(in: 1...UInt32.max))"
  var dialogID = ""

  // From Start.
  var mode = Mode.tap2talk
  var upRate = 16_000
  var isOpusUp = false
  var format = SpeechFormat.pcm
  var downRate = 24_000
  var hasAudio = true
  var hasDialogText = false
  var hasVideo = false

  // The user's audio.
  var ear = DoubleEar(.pcm, rate: 16_000)
  var hasSentSpeech = false
  var hasDetectedSpeech = false
  var timing = FrameTiming()
  /// Without expected audio.
  var quiet = QuietSeconds()
  var isWatching = false

  // The reply.
  /// Number of the current reply; scheduled steps of an older one are skipped.
  var reply = 0
  var turn = BailianScenario.Turn()
  var hasEnded = false
  /// When the first audio was sent: the client cannot have played it before.
  var firstSent: Nanoseconds?
  /// RespondingStarted was sent, and LocalRespondingStarted has not arrived.
  var isStartDue = false
  var crossings = Crossings<CrossingMessage>()
  /// The turn was started by speech, not by a message.
  var isByVoice = false
  var lasts = 0
  var isStalled = false
  /// The number of the reply among all of the double.
  var number = 0
  var isVideoOpen = false
  /// The client has played the answer to its request for the video channel.
  var isVideoAnswered = false
  let clock = Clock(.realtime)
  /// The client has sent Stop: nothing may follow. Messages on their way when this side ends the dialogue may.
  var hasStopped = false

  init(_ double: BailianDouble.Server, _ socket: WebSocket) {
    self.double = double
    self.socket = socket
  }

  func handle(_ event: WebSocketEvent) {
    guard !isStalled else { return }
    switch event {
    case .opened, .drained: break
    case .text(let bytes): takeText(bytes)
    case .binary(let bytes): takeAudio(bytes)
    case .closed:
      if state != .over && state != .fresh {
        double.note("# closed without Stop")
      }
      state = .over
      reply += 1
    }
  }

  // MARK: Sending

  func send(_ event: String, header: JSONValue, output: JSONValue?, usage: JSONValue? = nil) {
    guard state != .over || event == "task-finished" else { return }
    var members = header.members ?? []
    members.insert(JSONValue.Member("event", .string(event)), at: 0)
    members.append(JSONValue.Member("task_id", .string(task)))
    let message: JSONValue = [
      "header": .object(members), "payload": .object(["output": output, "usage": usage]),
    ]
    let times = turn.fault?.kind == .repeated && state != .fresh && state != .over ? 2 : 1
    for _ in 0..<times { _ = socket.send(text: message.text) }
  }

  func say(_ event: String, _ more: [JSONValue.Member] = []) {
    let members = [
      JSONValue.Member("event", .string(event)), JSONValue.Member("dialog_id", .string(dialogID)),
    ]
    send("result-generated", header: ["attributes": .object([])], output: .object(members + more))
    double.note("< \(event)")
  }

  /// What may be on its way for a reply that this side cuts off: LocalRespondingStarted, LocalRespondingEnded, RequestToSpeak.
  enum CrossingMessage {
    case started, ended, request
  }

  /// Returns to Listening although the client has not asked for it.
  func breakOff() {
    var messages: Set<CrossingMessage> = [.request]
    if isStartDue { messages.insert(.started) }
    if hasEnded { messages.insert(.ended) }
    crossings.expect(messages)
    isStartDue = false
    enter(.listening)
  }

  func enter(_ next: State) {
    state = next
    send(
      "result-generated", header: ["attributes": .object([])],
      output: [
        "event": "DialogStateChanged", "dialog_id": .string(dialogID), "state": .string(next.rawValue),
      ])
    double.note("< \(next.rawValue)")
    if next == .listening {
      reply += 1
      hasSentSpeech = false
      hasDetectedSpeech = false
      quiet.reset()
      isVideoAnswered = isVideoOpen
      watchSilence()
    }
  }

  /// Ends the session with an error in the header, such as 444.
  func fail(_ code: Int, _ name: String, _ text: String) {
    send(
      "result-generated",
      header: [
        "status_code": .integer(code), "status_name": .string(name), "status_message": .string(text),
      ], output: ["event": "Error", "dialog_id": .string(dialogID)])
    double.note("< Error \(code)")
    state = .over
    reply += 1
    socket.close(code: 1007, reason: name)
  }

  func sendError(_ code: Int, _ name: String, _ text: String) {
    say(
      "Error",
      [
        JSONValue.Member("error_code", .integer(code)), JSONValue.Member("error_name", .string(name)),
        JSONValue.Member("error_message", .string(text)),
      ])
  }
}
