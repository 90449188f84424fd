internal import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON

/// The replies.
extension DoubleSession {
  /// Opus frames in a packet.
  private static let framesPerPacket = 3

  /// Answers a round with the turn that has begun.
  /// - Parameter isSpoken: the user's words were recognised.
  func answer(_ round: String, isSpoken: Bool = false) {
    plan += 1
    self.round = round
    stage = .thinking
    number = double.nextReply()
    know(round)
    let isEarly = turn.fault?.kind == .outOfOrder
    if !isEarly { start(round) }
    if misbehave(at: .thinking) { return }
    guard !isSpoken || !turn.hears.isEmpty else {
      // Nothing was understood.
      return finish()
    }
    let hasSound = channels.receives[.audio] != nil && !turn.isSilent
    let plan = plan
    double.prepare(turn, number: number, format: hasSound ? format.format : nil, rate: format.rate) {
      [self] spoken in
      guard plan == self.plan, stage == .thinking else { return }
      switch spoken {
      case .success(let reply): respond(reply)
      case .failure(let problem):
        double.note("# \(problem)")
        fail()
      }
    }
  }

  private func respond(_ spoken: SpokenReply?) {
    stage = .responding
    var spoken = spoken
    if case .opusPackets = format.format, !double.scenario.isNumbered {
      let packets = spoken?.pieces ?? []
      spoken?.pieces = OpusFrames.constant(packets)
    }
    let parameters = format.parameters(
      isNumbered: double.scenario.isNumbered, frameBytes: spoken?.pieces.first?.count ?? 0)
    sayDocuments()
    if spoken != nil { send(.audio, .start, [], parameters) }
    if turn.fault?.kind == .outOfOrder {
      start(round)
      send(document: recognition(turn.hears, round, isLast: true), .end)
    }
    if misbehave(at: .responding) || breakWire() { return }
    askTools()
    sendAttachments()
    play(
      ReplyMessages(
        messages(of: spoken), milliseconds: spoken?.milliseconds ?? 0, speed: double.scenario.speed),
      plan: plan, hasSound: spoken != nil)
  }

  /// Several frames of Opus go into one packet; anything else is cut wherever it is.
  private func messages(of spoken: SpokenReply?) -> [[UInt8]] {
    let messages = spoken?.messages(chunk: double.scenario.chunk) ?? []
    guard case .opusPackets = format.format, !double.scenario.isNumbered else { return messages }
    return stride(from: 0, to: messages.count, by: Self.framesPerPacket).map {
      messages[$0..<min(messages.count, $0 + Self.framesPerPacket)].flatMap { $0 }
    }
  }

  private func play(_ messages: ReplyMessages, plan: Int, hasSound: Bool) {
    guard plan == self.plan, stage == .responding else { return }
    if messages.isHalfway {
      if misbehave(at: .midway) { return }
      if turn.breaks {
        send(.chatBreak, round)
        return silence()
      }
    }
    var messages = messages
    guard let (message, pause) = messages.next() else {
      if misbehave(at: .answered) { return }
      if hasSound { send(.audio, .end, []) }
      double.change { $0.turns += 1 }
      finish()
      if turn.sleeps { send(.eventSleep, events.first { $0.isLong }?.id ?? round) }
      return
    }
    send(.audio, .streaming, message)
    double.noteSent(message, of: number)
    let rest = messages
    double.later(pause) { [self] in play(rest, plan: plan, hasSound: hasSound) }
  }

  /// What the turn closes or breaks when its reply begins. True: it does not continue.
  private func breakWire() -> Bool {
    if let fault = turn.wire {
      connection.spoil(fault, CloudEvent(.start, session: id, id: round).packet(isV1: connection.isV1))
    }
    if turn.sessionState != 0 {
      if turn.sessionState == DoubleConnection.Code.tokenExpired { connection.desk.expire(token) }
      connection.report(state: turn.sessionState, of: id)
    }
    if turn.sessionClose != 0 { connection.close(self, turn.sessionClose) }
    if turn.close != 0 { connection.close(turn.close) }
    return turn.wire != nil || turn.sessionState != 0 || turn.sessionClose != 0 || turn.close != 0
  }
}
