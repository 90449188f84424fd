internal import COpus
internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet

/// The user's speech, and the replies.
extension DoubleConnection {
  /// An audio message counts as late beyond this many milliseconds.
  private static let lateness = 20.0

  func takeAudio(_ bytes: [UInt8]) {
    guard state != .over else { return checkAfterStop("audio") }
    double.observer.received?(bytes)
    double.change {
      $0.bytesHeard += bytes.count
      $0.framesHeard += 1
    }
    guard state != .fresh && reply > 0 else {
      return double.violate("audioBeforeListening", "audio before the first Listening")
    }
    lastAudio = clock.now
    quietSeconds = 0
    if mode == .duplex && !isOpusUp { time(bytes.count / 2) }
    if mode == .push2talk && !hasSentSpeech {
      return double.violate("audioOutOfTurn", "audio outside of SendSpeech and StopSpeech")
    }
    if isFirstFrame && bytes.starts(with: Array("RIFF".utf8)) {
      double.violate("waveHeader", "the audio begins with the header of a WAV file")
    }
    isFirstFrame = false
    let changes: [EnergyDetector.Change]
    if isOpusUp {
      changes = takeOpus(bytes)
    } else {
      if bytes.count % 2 != 0 { double.violate("oddFrame", "\(bytes.count) bytes are not 16-bit samples") }
      let samples = stride(from: 0, to: bytes.count - 1, by: 2).map {
        Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
      }
      double.change { $0.speechSamples += samples.count { $0 != 0 } }
      changes = detector.take(samples)
    }
    for change in changes { note(change) }
  }

  /// Records whether a message is late. A microphone delivers audio in real time: the earliest message determines when the others are
  /// due.
  private func time(_ samples: Int) {
    let due = audioTime
    audioTime += Nanoseconds(samples) * 1_000_000_000 / Nanoseconds(upRate)
    let offset = lastAudio - due
    earliest = min(earliest ?? offset, offset)
    let late = Double(offset - (earliest ?? offset)) / 1e6
    double.change {
      $0.framesTimed += 1
      if late > Self.lateness { $0.framesLate += 1 }
      $0.latest = max($0.latest, late)
    }
  }

  /// An Opus packet counts as loud when it is long, which is enough here. A packet that libopus rejects is a violation.
  private func takeOpus(_ bytes: [UInt8]) -> [EnergyDetector.Change] {
    guard isOggUp else { return takePacket(bytes) }
    do throws(OggProblem) {
      return try pagesUp.packets(bytes).flatMap(takePacket)
    } catch {
      double.violate("noOgg", error.text)
      return []
    }
  }

  private func takePacket(_ bytes: [UInt8]) -> [EnergyDetector.Change] {
    guard unsafe opus_packet_get_nb_samples(bytes, opus_int32(bytes.count), 48_000) > 0 else {
      double.violate("noOpus", "a message of \(bytes.count) bytes is not an Opus packet")
      return []
    }
    let samples = upRate / 50
    let loud: Int16 = bytes.count > 20 ? 8_000 : 0
    return detector.take((0..<samples).map { $0 % 2 == 0 ? loud : -loud })
  }

  private func note(_ change: EnergyDetector.Change) {
    switch (mode, change, state) {
    case (.push2talk, .began, _):
      guard !hasDetectedSpeech else { return }
      hasDetectedSpeech = true
      say("SpeechStarted")
    case (.push2talk, .ended, _): break
    case (_, .began, .listening):
      hasDetectedSpeech = true
      say("SpeechStarted")
    case (_, .ended, .listening): if hasDetectedSpeech { endSpeech() }
    case (.duplex, .began, .responding): bargeIn()
    default: break
    }
  }

  private func bargeIn() {
    switch double.scenario.bargeIn {
    case .accepted:
      say("RequestAccepted")
      breakOff()
      say("SpeechStarted")
    case .listening:
      breakOff()
      say("SpeechStarted")
    case .speech:
      say("SpeechStarted")
      breakOff()
    case .ended:
      hasEnded = true
      say("RespondingEnded")
      breakOff()
      say("SpeechStarted")
    }
    hasDetectedSpeech = true
  }

  func endSpeech() {
    hasDetectedSpeech = false
    let turn = double.nextTurn()
    let text = turn.hears
    let half = String(text.prefix(text.count / 2))
    for (part, isLast) in [(half, false), (text, true)] {
      say(
        "SpeechContent",
        [JSONValue.Member("text", .string(part)), JSONValue.Member("finished", .bool(isLast))])
    }
    say("SpeechEnded")
    answer(turn, byVoice: true)
  }

  /// Ends the session with an error when a client that has to send audio sends none. One watch per connection.
  func watchSilence() {
    guard !isWatching else { return }
    isWatching = true
    checkSilence()
  }

  private func checkSilence() {
    later(1_000) { [self] in
      guard state != .over, !isStalled else { return }
      let isDue = state == .listening && (mode != .push2talk || hasSentSpeech)
      quietSeconds = isDue ? quietSeconds + 1 : 0
      let limit = double.scenario.silence
      if quietSeconds > limit {
        double.violate("silence", "no audio for \(limit) s")
        return fail(444, "ClientAudioTimeout", "no audio for \(limit) s")
      }
      checkSilence()
    }
  }

  // MARK: Replies

  func answer(_ turn: BailianScenario.Turn, byVoice isByVoice: Bool) {
    self.turn = turn
    self.isByVoice = isByVoice
    enter(.thinking)
    reply += 1
    hasEnded = false
    firstSent = nil
    number = double.nextReply()
    if misbehave(at: .thinking) { return }
    let plan = reply
    guard hasAudio && !double.scenario.isNumbered else {
      let words = turn.says.split(separator: " ").count
      let made = hasAudio ? SpokenReply(number: number, words: words, rate: downRate) : nil
      return later(turn.thinks) { [self] in spoke(made, nil, plan) }
    }
    let form = form
    let rate = downRate
    let double = double
    // Synthesis takes tens of milliseconds, for which the network thread must not be blocked.
    let refusal = DetachedThread.start("double voice") { [self] in
      var spoken: SpokenReply?
      var problem: String?
      do throws(SynthesisError) {
        spoken = try double.speak(turn.says, form, rate)
      } catch {
        problem = error.description
      }
      let made = spoken
      let words = problem
      later(turn.thinks) { [self] in spoke(made, words, plan) }
    }
    if refusal != 0 { spoke(nil, "cannot start a thread", plan) }
  }

  private func spoke(_ spoken: SpokenReply?, _ problem: String?, _ plan: Int) {
    guard plan == reply, state == .thinking else { return }
    guard let problem else { return respond(spoken, plan) }
    double.note("# \(problem)")
    sendError(500, "InternalSynthesizerError", problem)
    breakOff()
  }

  private func respond(_ spoken: SpokenReply?, _ plan: Int) {
    lasts = spoken?.milliseconds ?? 0
    var frames = spoken.map(frames) ?? []
    if double.scenario.isEarly {
      for frame in frames.prefix(2) { send(frame) }
      frames.removeFirst(min(2, frames.count))
    }
    isStartDue = true
    if turn.fault?.kind == .outOfOrder {
      sayContent()
      say("RespondingStarted")
      enter(.responding)
    } else {
      enter(.responding)
      say("RespondingStarted")
    }
    if misbehave(at: .responding) { return }
    if turn.fault?.kind != .outOfOrder { sayContent() }
    let all = frames.reduce(0) { $0 + $1.count }
    sendFrames(
      frames[...], plan, middle: frames.count / 2,
      perByte: all > 0 ? Double(lasts) / double.scenario.speed / Double(all) : 0)
  }

  private func sayContent() {
    guard hasDialogText else { return }
    let words = turn.says.split(separator: " ")
    for count in [(words.count + 1) / 2, words.count] {
      content(words.prefix(count).joined(separator: " "), isLast: count == words.count)
      if count == words.count { break }
    }
  }

  private func content(_ text: String, isLast: Bool) {
    var more = [
      JSONValue.Member("round_id", .string("round-\(reply)")),
      JSONValue.Member("llm_request_id", .string("request-\(reply)")),
      JSONValue.Member("text", .string(text)), JSONValue.Member("spoken", .string(text)),
      JSONValue.Member("finished", .bool(isLast)),
    ]
    if isLast && !turn.commands.isEmpty {
      more.append(
        JSONValue.Member("extra_info", ["commands": .string(JSONValue.array(turn.commands).text)]))
    }
    say("RespondingContent", more)
  }

  /// The messages that are sent: Opus packets one by one, anything else cut at arbitrary positions.
  private func frames(_ spoken: SpokenReply) -> [[UInt8]] {
    guard form != .rawOpus && form != .rawOpus2 else { return spoken.pieces }
    let chunk = double.scenario.chunk
    return spoken.pieces.flatMap { piece in
      stride(from: 0, to: piece.count, by: chunk).map { Array(piece[$0..<min($0 + chunk, piece.count)]) }
    }
  }

  private func send(_ frame: [UInt8]) {
    firstSent = firstSent ?? clock.now
    guard socket.send(frame, isText: false) else { return double.note("# the send backlog is full") }
    double.observer.sent?(frame)
    guard double.scenario.keeps else { return }
    let number = number
    double.change {
      $0.soundSent += frame
      $0.replyBytes[number, default: 0] += frame.count
    }
  }

  /// - Parameters:
  ///   - plan: the number of the reply; nothing more is sent once it was cut off.
  ///   - middle: the number of messages left when half of them were sent.
  private func sendFrames(_ frames: ArraySlice<[UInt8]>, _ plan: Int, middle: Int, perByte: Double) {
    guard plan == reply, state == .responding, !isStalled else { return }
    if frames.count == middle && misbehave(at: .midway) { return }
    if frames.count <= 1 && turn.fault?.kind == .outOfOrder && !hasEnded {
      hasEnded = true
      say("RespondingEnded")
    }
    guard let frame = frames.first else {
      guard !hasEnded else { return }
      hasEnded = true
      if misbehave(at: .answered) { return }
      return say("RespondingEnded")
    }
    send(frame)
    later(Int(Double(frame.count) * perByte)) { [self] in
      sendFrames(frames.dropFirst(), plan, middle: middle, perByte: perByte)
    }
  }
}
