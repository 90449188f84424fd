internal import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// One connection of a bot. On the network thread.
final class BackendConnection: @unchecked Sendable {
  private static let rate = 16_000
  /// More than the node accepts by default.
  private static let oversized = 1 << 20

  private let double: Backend.Server
  private let socket: WebSocket
  /// Number of the current reply; scheduled steps of an older one are skipped.
  private var generation = 0
  private var isStalled = false
  private var isOver = false
  private var hasBegun = false
  private var turn = Backend.Server.Scenario.Turn()
  private var ear = DoubleEar(.pcm, rate: BackendConnection.rate)

  init(_ double: Backend.Server, _ socket: WebSocket) {
    self.double = double
    self.socket = socket
  }

  func handle(_ event: WebSocketEvent) {
    switch event {
    case .opened: begin()
    case .text(let bytes): if !isStalled { take(bytes) }
    case .binary(let bytes):
      double.noteReceived(bytes)
      double.note(ear.hear(bytes))
    case .drained: break
    case .closed(let end):
      isOver = true
      generation += 1
      if end.code == 1000 { double.change { $0.stops += 1 } }
    }
  }

  private func begin() {
    if misbehave(double.firstFault(at: .connecting)) { return }
    double.later(double.scenario.delay) { [self] in
      hasBegun = true
      say(.conversationStarted(id: "backend"))
      say(.state(.listening))
      _ = misbehave(double.firstFault(at: .listening))
    }
  }

  private func take(_ bytes: [UInt8]) {
    do {
      guard case .command(let command, _)? = try DialogControl.read(try JSONValue(parsing: bytes)) else {
        return
      }
      double.note("> \(command.name)")
      switch command {
      case .ask: answer()
      case .interrupt:
        generation += 1
        double.observer.interrupted?()
        say(.interrupted(by: .user))
        if hasBegun { say(.state(.listening)) }
      default: break
      }
    } catch {
      double.violate("noCommand", "\(error)")
    }
  }

  // MARK: Replies

  private func answer() {
    generation += 1
    let generation = generation
    turn = double.nextTurn()
    let number = double.nextReply()
    say(.state(.thinking))
    if misbehave(at: .thinking) { return }
    double.prepare(turn, number: number, format: .pcm, rate: Self.rate) { [self] spoken in
      guard generation == self.generation else { return }
      respond(spoken, of: number)
    }
  }

  private func respond(_ spoken: Result<SpokenReply?, SynthesisError>, of number: Int) {
    let reply: SpokenReply
    switch spoken {
    case .success(let made?): reply = made
    case .success(nil): return fail("there is no audio to send")
    case .failure(let error): return fail("\(error)")
    }
    say(.state(.responding))
    say(.replyStarted(round: nil))
    if misbehave(at: .responding) { return }
    let messages = reply.messages(chunk: double.scenario.chunk)
    let pace = ReplyMessages(messages, milliseconds: reply.milliseconds, speed: double.scenario.speed)
    send(pace, of: number, generation)
  }

  /// There is no reply: the client learns why, and may continue.
  private func fail(_ problem: String) {
    double.note("# \(problem)")
    say(
      .error(
        DialogError(
          vendor: "websocket", category: .tts, reaction: .continue, scope: .reply, text: problem)))
    say(.state(.listening))
  }

  private func send(_ messages: ReplyMessages, of number: Int, _ generation: Int) {
    guard generation == self.generation, !isStalled, !isOver else { return }
    if messages.isHalfway && misbehave(at: .midway) { return }
    var messages = messages
    guard let (message, pause) = messages.next() else {
      if misbehave(at: .answered) { return }
      say(.replyEnded(round: nil, utterances: 0))
      return say(.state(.listening))
    }
    if socket.send(message, isText: false) { double.noteSent(message, of: number) }
    let rest = messages
    double.later(pause) { [self] in send(rest, of: number, generation) }
  }

  // MARK: Sending

  private func say(_ event: DialogEvent) {
    guard !isStalled && !isOver else { return }
    if case .state(let state) = event {
      double.note("< \(state.rawValue)")
    } else {
      double.note("< \(event.name)")
    }
    _ = socket.send(text: event.json.text)
  }

  /// Applies the turn's fault if this is its place. True when the turn does not continue.
  private func misbehave(at place: ServiceFault.Place) -> Bool {
    misbehave(turn.fault?.place == place ? turn.fault : nil)
  }

  /// True when the connection does not continue.
  private func misbehave(_ fault: ServiceFault?) -> Bool {
    guard let fault else { return false }
    switch fault.kind {
    case .stall:
      isStalled = true
      // Pings are answered on a lower layer, unless reading is paused.
      socket.pause()
    case .drop: socket.cancel()
    case .expire:
      double.expireKeys()
      socket.cancel()
    case .fail: socket.close(code: 1011, reason: "as the script says")
    case .oversized: _ = socket.send([UInt8](repeating: 0x20, count: Self.oversized - 1), isText: true)
    case .malformed:
      _ = socket.send(text: #"{"event":""# + ServiceFault.userText)
      return false
    case .unknown:
      let message: JSONValue = ["event": "astonished", "why": .string(ServiceFault.userText)]
      _ = socket.send(text: message.text)
      double.noteUnknown(message)
      return false
    case .hold, .repeated, .outOfOrder, .error, .kick: break
    }
    return true
  }
}
