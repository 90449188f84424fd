internal import MillraceConformance
internal import MillraceCore
internal import MillraceDoubles
internal import MillraceJSON

/// The client's data.
extension DoubleSession {
  func take(_ media: CloudMedia, _ parameters: StreamParameters?) {
    guard channels.sends[media.channel] == media.kind else {
      return double.violate(
        "wrongKind", "\(media.kind.rawValue) on data id \(media.channel), which carries other data")
    }
    guard let index = event(for: media) else {
      return double.violate("dataWithoutEvent", "\(media.kind.rawValue) came outside of an event")
    }
    if let problem = events[index].take(media, parameters) { return double.violate(problem) }
    switch media.kind {
    case .audio: hear(media.data, index)
    case .image: notePicture(media.data.count, isFirst: media.flag.hasParameters)
    case .text where events[index].isLong && (media.flag == .onlyOne || media.flag == .end):
      // Nothing ends a question within a long event.
      bargeIn()
      turn = double.nextTurn()
      answer(nextRound(events[index].id))
    case .text, .file, .video: break
    }
  }

  /// The event that data belongs to: its packet does not say.
  private func event(for media: CloudMedia) -> Int? {
    events.firstIndex { $0.openChannels.contains(media.channel) } ?? events.indices.last
  }

  private func notePicture(_ bytes: Int, isFirst: Bool) {
    let now = Clock(.realtime).now
    let keeps = double.scenario.keeps
    // A picture may come in parts.
    pictureBytes = (isFirst ? 0 : pictureBytes) + bytes
    let size = pictureBytes
    double.change { report in
      if isFirst { report.pictures += 1 }
      report.largestPicture = max(report.largestPicture, size)
      if isFirst && keeps { report.pictureTimes.append(now) }
    }
  }

  // MARK: Sound

  private func hear(_ bytes: [UInt8], _ index: Int) {
    guard !bytes.isEmpty, var ear = events[index].ear else { return }
    // Samples at 1 kHz: a frame of Opus has only a duration.
    double.note(
      delay: events[index].timing.delay(
        ofSamples: ear.milliseconds(of: bytes), rate: 1_000, at: Clock(.realtime).now))
    let heard = ear.hear(bytes)
    events[index].ear = ear
    double.change { $0.speechSamples += heard.speechSamples }
    for violation in heard.violations { double.violate(violation) }
    let event = events[index]
    for change in heard.changes { note(change, event) }
    let limit = double.scenario.sleep
    if limit > 0, event.isLong, !isAsleep, stage == .idle, ear.silence >= limit {
      isAsleep = true
      send(.eventSleep, event.id)
    }
    if ear.silence == 0 { isAsleep = false }
  }

  private func note(_ change: EnergyDetector.Change, _ event: OpenEvent) {
    guard event.hasVAD, !event.hasEndedByVAD else { return }
    switch change {
    case .began:
      if event.isLong { bargeIn() }
      hearing = event.isLong ? nextRound(event.id) : event.id
      start(hearing)
      partial(hearing)
    case .ended:
      guard !hearing.isEmpty else { return }
      let round = hearing
      send(.serverVAD, round)
      recognise(round)
      if event.isLong { return answer(round, isSpoken: true) }
      if let index = events.firstIndex(where: { $0.id == event.id }) { events[index].hasEndedByVAD = true }
    }
  }

  private func nextRound(_ event: String) -> String {
    rounds += 1
    return "\(event)-\(rounds)"
  }

  /// A voice or a question interrupts the reply.
  private func bargeIn() {
    guard stage != .idle else { return }
    double.observer.interrupted?()
    send(.chatBreak, round)
    silence()
  }

  // MARK: Recognition

  /// What was recognised so far: half of what the next turn hears.
  private func partial(_ round: String) {
    let turns = double.scenario.turns
    let text = turns[min(double.change { $0.begun }, turns.count - 1)].hears
    guard !text.isEmpty else { return }
    send(document: recognition(String(text.prefix(max(1, text.count / 2))), round, isLast: false), .start)
  }

  /// The next turn begins, with what was recognised.
  func recognise(_ round: String) {
    turn = double.nextTurn()
    start(round)
    if hearing != round { partial(round) }
    hearing = ""
    guard turn.fault?.kind != .outOfOrder else { return }
    send(document: recognition(turn.hears, round, isLast: true), .end)
  }

  func recognition(_ text: String, _ round: String, isLast: Bool) -> JSONValue {
    ["bizId": .string(round), "bizType": "ASR", "eof": isLast ? 1 : 0, "data": ["text": .string(text)]]
  }

  /// The cloud begins to send for a round.
  func start(_ round: String) {
    guard started != round else { return }
    started = round
    know(round)
    send(.start, round)
  }
}
