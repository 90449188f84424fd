public import MillraceCore

/// `dialog.turn`: turn-taking. Between a service, playback, a voice detector and the user, it decides what a voice over a reply means
/// and reports to the service what was really heard.
///
/// - In `service`: the events of a service node. In `playback`: those of `audio.play`. In `voice`: those of `audio.vad`. In
///   `control`: commands of the user or the program, as a service takes them; they may also be sent to the node. In `stream`: the events of
///   `rtmp.pull`, where the service's replies are a stream.
/// - Out `control`: for the service's `control`: the commands that fit the turn, in order, and the playback reports.
/// - A voice over a reply ducks playback. Once it has spoken for `minSpeech`, the reply is cancelled and the service interrupted;
///   otherwise playback resumes with the sample after the last one played.
/// - A question at the wrong time interrupts, and waits until the service listens; a newer question replaces it.
/// - Every wait has a timeout, reported by `timedOut` and the change of state that follows.
/// - A command with an `id` is answered exactly once: by the service where it is passed on, otherwise by this node's event `answer`. A
///   command to the turn is done when it took effect here; a question that is discarded has failed.
/// - Unknown events are ignored. An invalid command is discarded and counted in `badCommand`.
/// - Lane `voice`, 100 µs, does not allocate. The rules are in `TurnMachine`, which can be used without a graph.
public struct DialogTurn: Node, ~Copyable {
  // Ports in the order of the contract.
  private static var serviceInput: Int { 0 }
  private static var playbackInput: Int { 1 }
  private static var voiceInput: Int { 2 }
  private static var controlInput: Int { 3 }
  private static var streamInput: Int { 4 }

  /// Events in the order of the contract.
  enum Event: Int {
    case turn, bargeIn, falseInterruption, heard, timedOut, questionDropped, badCommand, commandTooLong
    case answer, commandRefused
  }

  private var machine: TurnMachine
  private var question: Packet?
  /// Bytes of the output's blocks, and of the longest packet it may carry.
  private let madeBytes: Int
  private let mostBytes: Int
  /// This node requested an interruption whose notification is still to come. Several requests are notified once.
  private var awaitsInterruption = false
  private var badCommands = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    machine = TurnMachine(Self.rules(setup))
    question = nil
    madeBytes = setup.outputs[0].shape?.madeBytes ?? 0
    mostBytes = setup.outputs[0].shape?.packetBytes ?? 0
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if machine.state == .idle { try handle(.start, &ports) }
    try handle(.tick, &ports)
    // One packet per call: each may cause several commands. The user's commands come first.
    if try takeControl(&ports) { return .again }
    if try takeService(&ports) { return .again }
    if try takeVoice(&ports) { return .again }
    if try takePlayback(&ports) { return .again }
    if try takeStream(&ports) { return .again }
    if let deadline = machine.deadline { ports.wake(at: deadline) }
    return .done
  }

  private mutating func takeControl(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard ports.hasPacket(Self.controlInput), let packet = ports.next(Self.controlInput) else { return false }
    try takeCommand(packet, &ports)
    return true
  }

  private mutating func takeService(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard ports.hasPacket(Self.serviceInput), let packet = ports.next(Self.serviceInput) else { return false }
    try handleService(packet, &ports)
    return true
  }

  private mutating func takeVoice(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard ports.hasPacket(Self.voiceInput), let packet = ports.next(Self.voiceInput) else { return false }
    try handleVoice(packet, &ports)
    return true
  }

  private mutating func takePlayback(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard ports.hasPacket(Self.playbackInput), let packet = ports.next(Self.playbackInput) else {
      return false
    }
    try handlePlayback(packet, &ports)
    return true
  }

  /// A service whose replies are a stream may wait for its first picture.
  private mutating func takeStream(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard ports.hasPacket(Self.streamInput), let packet = ports.next(Self.streamInput) else { return false }
    try handleStream(packet, &ports)
    return true
  }

  // The packets are consumed: borrowing one allocates in debug builds.

  private mutating func handleService(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) {
    let event = EventPeek(packet.samples(of: UInt8.self))
    guard let input = TurnMessages.service(event) else { return }
    try handle(input, round: event.round(), &ports)
  }

  private mutating func handleVoice(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) {
    guard let input = TurnMessages.voice(EventPeek(packet.samples(of: UInt8.self))) else { return }
    try handle(input, &ports)
  }

  private mutating func handlePlayback(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) {
    guard let input = TurnMessages.playback(EventPeek(packet.samples(of: UInt8.self))) else { return }
    // The service is notified first: the machine may be waiting for its answer.
    try pass(packet, &ports)
    try handle(input, &ports)
  }

  private func handleStream(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) {
    let isFirstPicture = EventPeek(packet.samples(of: UInt8.self)).has("event", "firstPicture")
    if isFirstPicture { try pass(packet, &ports) }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .text(let packet) = consume message else { return }
    // Unlike a call, a message may come when the service's node has not taken the commands before it.
    guard !ports.isLinked(output: 0) || ports.hasRoom(0) else {
      return Self.answer(
        packet, "the service has not taken the commands before it yet; send it later", &ports)
    }
    try handle(.tick, &ports)
    try takeCommand(packet, &ports)
    if let deadline = machine.deadline { ports.wake(at: deadline) }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard !awaitsInterruption else {
      awaitsInterruption = false
      return
    }
    // The only failure possible here is a missing block for a command.
    do throws(NodeFault) { try handle(.replyCancelled, &ports) } catch {
      ports.post(Event.badCommand.rawValue)
    }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    discardQuestion("question discarded: the graph ends", &ports)
    return .ended
  }

  // MARK: Commands

  private mutating func takeCommand(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) {
    // Packets on links are as long as was resolved; a program's message may be longer.
    let count = Int(packet.byteCount)
    guard count <= mostBytes else { return refuseLong(packet, count, &ports) }
    switch TurnMessages.command(EventPeek(packet.samples(of: UInt8.self))) {
    case .input(let input):
      guard EventPeek(packet.samples(of: UInt8.self)).commandID() != .invalid else {
        return postBadCommand(&ports)
      }
      let refusal = machine.refusal(of: input)
      try handle(input, &ports)
      Self.answer(packet, refusal?.text, &ports)
    case .question(let isForced):
      discardQuestion("question discarded: another one replaced it", &ports)
      question = consume packet
      try handle(.ask(isForced: isForced), &ports)
    case .other: try passCommand(packet, &ports)
    case nil:
      postBadCommand(&ports)
      _ = Self.postAnswer(packet, "invalid command: it has no \"command\"", &ports)
    }
  }

  private func refuseLong(_ packet: consuming Packet, _ count: Int, _ ports: inout Ports) {
    let most = mostBytes
    ports.post(Event.commandTooLong.rawValue) {
      $0.field("bytes", count)
      $0.field("most", most)
    }
    _ = Self.postAnswer(packet, "the command is longer than \"commandBytes\" of dialog.turn", &ports)
  }

  private mutating func postBadCommand(_ ports: inout Ports) {
    badCommands += 1
    let count = badCommands
    ports.post(Event.badCommand.rawValue) { $0.field("count", count) }
  }

  /// The waiting question, if there is one, will not be asked.
  private mutating func discardQuestion(_ reason: StaticString, _ ports: inout Ports) {
    guard let packet = question.take() else { return }
    ports.post(Event.questionDropped.rawValue)
    _ = Self.postAnswer(packet, reason, &ports)
  }

  /// Passes a command on: the service answers it.
  private func passCommand(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) {
    guard ports.isLinked(output: 0) else {
      _ = Self.postAnswer(packet, "no service takes it: the output \"control\" is not linked", &ports)
      return
    }
    // Behind a node that has ended nobody would answer.
    guard !ports.isLinked(input: Self.serviceInput) || !ports.isOver(Self.serviceInput) else {
      _ = Self.postAnswer(packet, "the service has ended", &ports)
      return
    }
    try pass(packet, &ports)
  }

  /// Passes a packet on to the service: copied, so that its own block is free again, or as it is when it is longer than the blocks
  /// of this output.
  private func pass(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) {
    guard ports.isLinked(output: 0) else { return }
    guard packet.byteCount <= madeBytes else {
      packet.generation = 0
      packet.timestamp = ports.now
      return ports.emit(packet, to: 0)
    }
    let source = packet.samples(of: UInt8.self)
    var copy = try ports.makePacket(0, bytes: source.count, of: .none)
    var target = copy.mutableSamples(of: UInt8.self)
    for index in source.indices { target[index] = source[index] }
    ports.emit(copy, to: 0)
  }

  private func send(_ text: StaticString, _ ports: inout Ports) throws(NodeFault) {
    guard ports.isLinked(output: 0) else { return }
    var packet = try ports.makePacket(0, bytes: text.utf8CodeUnitCount, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    for index in 0..<text.utf8CodeUnitCount { target[index] = unsafe text.utf8Start[index] }
    ports.emit(packet, to: 0)
  }

  // MARK: The machine

  private mutating func handle(
    _ input: TurnInput, round: TurnRound = .unknown, _ ports: inout Ports
  ) throws(NodeFault) {
    machine.generation = ports.generation
    let actions = machine.handle(input, round: round, at: ports.now)
    for index in 0..<actions.count { try carryOut(actions[index], of: input, &ports) }
  }

  private mutating func carryOut(
    _ action: TurnAction, of input: TurnInput, _ ports: inout Ports
  ) throws(NodeFault) {
    switch action {
    case .startSpeech: try send(#"{"command":"startSpeech"}"#, &ports)
    case .stopSpeech: try send(#"{"command":"stopSpeech"}"#, &ports)
    case .cancelSpeech: try send(#"{"command":"cancelSpeech"}"#, &ports)
    case .interrupt(isForced: false): try send(#"{"command":"interrupt"}"#, &ports)
    case .interrupt: try send(#"{"command":"interrupt","force":true}"#, &ports)
    case .hangUp(isLate: false): try send(#"{"command":"hangUp"}"#, &ports)
    case .hangUp: try send(#"{"command":"hangUp","reason":"timeout"}"#, &ports)
    case .passQuestion:
      if let packet = question.take() { try passCommand(packet, &ports) }
    case .dropQuestion: discardQuestion(Self.reason(toDropOn: input), &ports)
    case .cancelReplies:
      awaitsInterruption = true
      ports.interruptReplies()
    case .duck: ports.duckReplies()
    case .resume: ports.resumeReplies()
    default: post(action, input.name, &ports)
    }
  }

  /// Why an input makes the machine drop the waiting question.
  private static func reason(toDropOn input: TurnInput) -> StaticString {
    switch input {
    case .press, .speechStarted: "question discarded: the user speaks instead"
    case .reconnecting: "question discarded: the connection was lost"
    case .ask: "question discarded: there is no dialogue"
    default: "question discarded: the dialogue has ended"
    }
  }

  private func post(_ action: TurnAction, _ cause: StaticString, _ ports: inout Ports) {
    switch action {
    case .changed(let from, let to):
      ports.post(Event.turn.rawValue) {
        $0.field("from", from.name)
        $0.field("to", to.name)
        $0.field("cause", cause)
      }
    case .bargedIn(let source, let time):
      ports.post(Event.bargeIn.rawValue) {
        $0.field("by", source.name)
        $0.field("ms", time)
      }
    case .falseInterruption(let time): ports.post(Event.falseInterruption.rawValue) { $0.field("ms", time) }
    case .heard(let reply, let samples, let time, let isWhole):
      ports.post(Event.heard.rawValue) {
        $0.field("reply", Int(reply))
        $0.field("samples", samples)
        $0.field("ms", time)
        $0.field("whole", isWhole)
      }
    case .timedOut(let state): ports.post(Event.timedOut.rawValue) { $0.field("wait", state.name) }
    default: break
    }
  }
}
