internal import MillraceCore
internal import MillraceDialog
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

  let double: BailianDouble
  let socket: WebSocket
  var state = State.fresh
  var task = ""
  let dialog = "double-\(UInt32.random(in: 1...UInt32.max))"
  var dialogID = ""

  // From Start.
  var mode = Mode.tap2talk
  var upRate = 16_000
  var isOpusUp = false
  var isOggUp = false
  var pagesUp = OggReader()
  var form = SpokenReply.Form.pcm
  var downRate = 24_000
  var hasAudio = true
  var hasDialogText = false
  var hasVideo = false

  // The user's audio.
  var detector = EnergyDetector(rate: 16_000)
  var hasSentSpeech = false
  var hasDetectedSpeech = false
  var lastAudio: Nanoseconds = 0
  /// Seconds without expected audio, as counted by this thread: time in which it was suspended is not the client's fault.
  var quietSeconds = 0
  /// Duration of all audio received, and the earliest arrival of its beginning.
  var audioTime: Nanoseconds = 0
  var earliest: Nanoseconds?
  var isWatching = false
  var isFirstFrame = true

  // The reply.
  /// Number of the current reply; scheduled steps of an older one are skipped.
  var reply = 0
  var turn = BailianScenario.Turn()
  var hasEnded = false
  /// When the first audio was sent: the client cannot have played it before.
  var firstSent: Nanoseconds?
  /// RespondingStarted was sent, and LocalRespondingStarted has not arrived.
  var isStartDue = false
  var crossings = Crossings()
  /// The turn was started by speech, not by a message.
  var isByVoice = false
  var lasts = 0
  var isStalled = false
  /// The number of the reply among all of the double.
  var number = 0
  var isVideoOpen = false
  let clock = Clock(.realtime)
  /// The client has sent Stop: nothing may follow. Messages on their way when this side ends the dialogue may.
  var hasStopped = false

  init(_ double: BailianDouble, _ socket: WebSocket) {
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

  func later(_ milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
    _ = NetLoop.shared.run(after: Nanoseconds(milliseconds) * 1_000_000, body)
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

  /// Messages of a client that may be on their way when this side returns to Listening by itself, and so arrive when they are wrong. They
  /// are not violations: the client could not have known.
  struct Crossings {
    /// For the reply that was cut off: LocalRespondingStarted, LocalRespondingEnded, and a RequestToSpeak.
    var start = false
    var end = false
    var request = false
  }

  /// Returns to Listening although the client has not asked for it.
  func breakOff() {
    crossings = Crossings(start: isStartDue, end: hasEnded, request: true)
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
      quietSeconds = 0
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
