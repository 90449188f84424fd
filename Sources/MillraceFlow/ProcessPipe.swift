public import MillraceCore
internal import Synchronization

/// `process.pipe`: any program as a node.
///
/// - In `in`: s16 sound, written to the program's standard input as it is (little-endian, interleaved; lost packets as silence),
///   or text or events, written as lines. Unlinked: the program's input is empty.
/// - Out `out`: what the program writes. Mode `pcm`: s16 sound of `rate` and `channels` in packets of `frame`; the last may be
///   shorter. Mode `lines`: UTF-8 text or events, one line a packet, empty lines left out, 65,536 bytes at most. Unlinked: read and
///   thrown away.
/// - Sound is stamped as if the program answered sample for sample: the n-th sample out has the time of the n-th sample in, so
///   that a late answer shows as latency. Lines have the time they came.
/// - So that this stays true, the program gets silence where positions jump forward, as for lost packets. A gap of more than 10 s
///   is not filled: positions and times jump at its place in the output too, marked `discontinuity`. Positions that go back are
///   not believed.
/// - Interruption: sound that answers a reply that is over, sample for sample, is thrown away, whenever it comes. Other answers
///   do not tell what they answer: what is queued either way is thrown away, and so is all that comes before the next input.
///   A program that answers an old line later than that is taken to answer the new one.
/// - A program that does not read holds its input back: the link's policy decides what happens to what comes meanwhile.
/// - Faults, with the exit status or signal and the last lines of the program's standard error: it ends with another status
///   than 0; it answers nothing for `stall`; it neither reads nor writes for `endStall` once the graph is to
///   end or no more input will come, so that it cannot hold the graph; what it writes is half a sample, not UTF-8, or too long a line. An exit with status 0
///   ends the node.
/// - When the node goes, the program and all it started in its process group get SIGTERM, and SIGKILL once the
///   program has ended or a second has passed.
public struct ProcessPipe: Node, ~Copyable {
  /// Chunks on the way to the program; as many packets lag at most before the link's policy counts.
  private static let inputChunks = 8
  /// Chunks on the way from the program.
  private static let outputChunks = 8
  /// How often the node looks around after its input has ended; wake-ups come from its threads.
  private static let lastInterval: Nanoseconds = 1_000_000_000

  let exchange: ProcessExchange
  private let command: String
  let isFed: Bool
  let isHeard: Bool
  let isSoundIn: Bool
  let frameBytesIn: Int
  /// Rate of the sound that comes out; 0 for lines.
  let rate: Int
  let frameBytesOut: Int
  private let stall: Nanoseconds
  private let endStall: Nanoseconds

  var timeline: AnswerTimeline
  /// The packet that waits for its turn, and the samples of silence to give before it.
  var held: Packet?
  var silence = 0
  /// Bytes of the oldest chunk of output that were emitted.
  var emittedBytes = 0
  /// Output was thrown away; the next packet says so.
  var hasDropped = false
  /// What comes answers a reply that is over.
  var dropsAnswers = false
  /// Whose the packet taken last is, and the first chunk of input since then that an interruption voids.
  var reply = HeldReply()
  var firstVoidable = 0
  /// Since when the program owes an answer; nil: it does not.
  var owesSince: Nanoseconds?
  /// Chunks of input given, and of those the program has read when it was last looked at.
  var given = 0
  private var seenFed = 0
  /// What the program had read and written when it was last looked at, and since when that is all, once no more input will come.
  private var seenSigns = 0
  private var quietSince: Nanoseconds?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let input = setup.inputs[0]
    let output = setup.outputs[0]
    let words = setup.parameters.strings("command")
    guard let bell = PipeBell() else {
      throw NodeProblem(
        "this process may open no more files", cure: "raise the limit of open files (ulimit -n)")
    }
    let outputBytes = output.shape?.packetBytes ?? 1
    let exchange = ProcessExchange(
      // A line gets a break.
      input: ChunkQueue(chunkBytes: (input.shape?.packetBytes ?? 0) + 1, count: Self.inputChunks),
      output: ChunkQueue(chunkBytes: outputBytes, count: Self.outputChunks), waker: setup.waker,
      keeperBell: bell)
    let frameBytes = output.shape?.format.frameBytes
    let form: OutputIntake.Form =
      !output.isLinked ? .nothing : frameBytes.map { .sound(frameBytes: $0) } ?? .lines
    try Self.start(
      words, setup.parameters, exchange, isFed: input.isLinked,
      intake: OutputIntake(form, chunkBytes: outputBytes))

    // Nothing may throw from here on: the node's end is what ends the program.
    self.exchange = exchange
    command = words[0]
    isFed = input.isLinked
    isHeard = output.isLinked
    isSoundIn = input.shape?.format.kind == .pcm
    frameBytesIn = input.shape?.format.frameBytes ?? 1
    rate = output.shape?.format.rate ?? 0
    frameBytesOut = frameBytes ?? 1
    stall = Nanoseconds(setup.parameters.number("stall") * 1e6)
    endStall = Nanoseconds(setup.parameters.number("endStall") * 1e6)
    timeline = AnswerTimeline(
      inputRate: isSoundIn ? input.shape?.format.rate ?? 0 : 0, outputRate: output.shape?.format.rate ?? 0)
    held = nil
  }

  /// Starts the program and the threads around it.
  private static func start(
    _ words: [String], _ parameters: ParameterValues, _ exchange: ProcessExchange, isFed: Bool,
    intake: consuming OutputIntake
  ) throws(NodeProblem) {
    let child = try ChildProcess(
      words, directory: parameters.has("directory") ? parameters.string("directory") : nil,
      environment: parameters.strings("environment"), isFed: isFed)
    let parcel = Parcel(ProgramKeeper(exchange, child, intake))
    let hasKeeper = OwnThread.start("millrace-keeper") { parcel.take()?.run() } == 0
    let hasFeeder =
      !isFed
      || hasKeeper
        && OwnThread.start("millrace-feeder") {
          ProgramFeeder(exchange: exchange, descriptor: child.input).run()
        } == 0
    guard !hasKeeper || !hasFeeder else { return }
    exchange.stop()
    if !hasFeeder { child.closeInput() }
    // Here nobody minds waiting: the graph does not start.
    if !hasKeeper { parcel.take()?.run() }
    throw NodeProblem("the system has no thread left", cure: "raise the limit of processes (ulimit -u)")
  }

  deinit { exchange.stop() }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // What the program wrote before its end is in the queue once the end is seen: look at it first.
    let verdict = exchange.verdict
    let emitted = try deliver(&ports)
    if !emitted, let verdict { return try conclude(verdict) }
    noteAnswer(ports.now, emitted: emitted)
    let took = feed(&ports)
    let deadline = earlier(try watch(&ports), try watchEnding(&ports, emitted || took))
    if emitted || took { return .again }
    if let deadline { ports.wake(at: deadline) }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // Without an input the graph is draining, and nothing but the node's end ends the program.
    guard isFed else { return .ended }
    let verdict = exchange.verdict
    let emitted = try deliver(&ports)
    if !emitted, let verdict { return try conclude(verdict) }
    noteAnswer(ports.now, emitted: emitted)
    let took = feed(&ports)
    if owesSince == nil { owesSince = ports.now }
    let deadline = earlier(try watch(&ports), try watchEnding(&ports, emitted || took))
    if !emitted && !took { ports.wake(at: min(deadline ?? .max, ports.now + Self.lastInterval)) }
    return .again
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isVoid(at: ports.generation) else { return }
    var waiting = silence
    if let packet = held.take() { waiting += Int(packet.byteCount) / frameBytesIn }
    silence = 0
    guard !answersSamples else {
      // The program has to get what was given, for the count's sake; what it makes of it will be known by the count.
      timeline.withdraw(waiting)
      return
    }
    exchange.voidInput(from: firstVoidable, to: given)
    dropsAnswers = true
    // The next input may be taken before these are: they go now. The program may write on meanwhile, so not without limit.
    for _ in 0..<Self.outputChunks {
      guard isHeard, let count = exchange.output.count else { return }
      if rate > 0 {
        _ = timeline.answer(limit: (count - emittedBytes) / frameBytesOut)
        hasDropped = true
      }
      dropAnswer()
    }
  }

  /// Takes output as an answer to everything before it. A program whose output nobody wants answers by reading.
  private mutating func noteAnswer(_ now: Nanoseconds, emitted: Bool) {
    if isHeard {
      if emitted { owesSince = nil }
      return
    }
    let fed = exchange.fed.load(ordering: .relaxed)
    if fed != seenFed { owesSince = fed == given ? nil : now }
    seenFed = fed
  }

  /// Fails when the program left its input unanswered for too long, otherwise says when to look again; nil when it owes nothing.
  private mutating func watch(_ ports: inout Ports) throws(NodeFault) -> Nanoseconds? {
    guard stall > 0 else { return nil }
    guard let since = owesSince else { return nil }
    if ports.now - since >= stall { throw NodeFault(.stalled, detail: ports.now - since) }
    return since + stall
  }

  /// Fails when the graph is to end, or no more input will come, and the program has neither read nor written anything for too long, otherwise says when
  /// to look again. It would hold the graph's end for ever.
  private mutating func watchEnding(_ ports: inout Ports, _ didWork: Bool) throws(NodeFault) -> Nanoseconds? {
    guard endStall > 0, isFed, ports.isDraining || ports.isEnding() else { return nil }
    let signs = exchange.signs.load(ordering: .relaxed)
    if didWork || signs != seenSigns { quietSince = nil }
    seenSigns = signs
    let since = quietSince ?? ports.now
    quietSince = since
    if ports.now - since >= endStall {
      throw NodeFault(.stalled, code: ProcessWords.atItsEnd, detail: ports.now - since)
    }
    return since + endStall
  }

  private func earlier(_ first: Nanoseconds?, _ second: Nanoseconds?) -> Nanoseconds? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
  }

  private func conclude(_ verdict: ProcessExchange.Verdict) throws(NodeFault) -> Outcome {
    switch verdict {
    case .done: return .ended
    case .failed(let status): throw NodeFault(.gone, code: status)
    case .garbage(let kind, let place): throw NodeFault(.badInput, code: kind.rawValue, detail: Int64(place))
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard let text = ProcessWords.text(fault, program: command) else { return nil }
    guard let remarks = exchange.lastRemarks else { return text }
    return "\(text); it said: \(remarks)"
  }
}
