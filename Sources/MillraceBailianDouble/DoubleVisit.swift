internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet

/// One connection of a client. On the thread of the sockets.
final class DoubleVisit: @unchecked Sendable {
  enum State: String {
    /// Start is due.
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

  // As Start asked for.
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

  // Of the user's sound.
  var ear = EnergyEar(rate: 16_000)
  var hasSentSpeech = false
  var hasHeardVoice = false
  var lastSound: Nanoseconds = 0
  /// Seconds without sound that was due, as many as this thread has seen pass: what it slept through is none of the client's.
  var quietLooks = 0
  /// Length of all sound that came, and when its beginning came at the earliest.
  var soundTime: Nanoseconds = 0
  var earliest: Nanoseconds?
  var isWatching = false
  var isFirstFrame = true

  // Of the reply.
  /// Counts replies: what was planned for an older one does not happen.
  var reply = 0
  var turn = BailianScenario.Turn()
  var hasEnded = false
  /// When the first frame of its sound was sent: nobody can have heard it before.
  var firstSent: Nanoseconds?
  /// RespondingStarted was said, and LocalRespondingStarted has not come.
  var isStartDue = false
  var crossings = Crossings()
  /// What the user said began the turn, and not a message.
  var isByVoice = false
  var lasts = 0
  var isStalled = false
  /// Number of the reply among all of the double.
  var number = 0
  var isFilm = false
  let clock = Clock(.realtime)
  /// The client has said Stop: nothing may come after it. What is on its way when this side ends the dialogue may.
  var hasStopped = false

  init(_ double: BailianDouble, _ socket: WebSocket) {
    self.double = double
    self.socket = socket
  }

  func hear(_ event: WebSocketEvent) {
    guard !isStalled else { return }
    switch event {
    case .opened, .drained: break
    case .text(let bytes): takeText(bytes)
    case .binary(let bytes): takeSound(bytes)
    case .closed:
      if state != .over && state != .fresh {
        double.note("# gone without Stop")
      }
      state = .over
      reply += 1
    }
  }

  func later(_ milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
    _ = NetLoop.shared.run(after: Nanoseconds(milliseconds) * 1_000_000, body)
  }

  // MARK: Saying

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

  /// Messages of a client that may be on their way while this side goes back to Listening by itself, and so come when they are wrong.
  /// A client is not accused of what it said before it can have known.
  struct Crossings {
    /// Of the reply that was cut off: LocalRespondingStarted, LocalRespondingEnded, and a RequestToSpeak that would have cut it off too.
    var start = false
    var end = false
    var request = false
  }

  /// Goes back to Listening though the client has not asked for it.
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
      hasHeardVoice = false
      quietLooks = 0
      watchSilence()
    }
  }

  /// The end, told in the header: 444 and its like.
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

  func tellError(_ code: Int, _ name: String, _ text: String) {
    say(
      "Error",
      [
        JSONValue.Member("error_code", .integer(code)), JSONValue.Member("error_name", .string(name)),
        JSONValue.Member("error_message", .string(text)),
      ])
  }
}
