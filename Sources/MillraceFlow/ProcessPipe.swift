public import MillraceCore
internal import Synchronization

/// `process.pipe`: any program as a node.
///
/// - In `in`: s16 audio, written to the program's standard input unchanged (little-endian, interleaved; lost packets as silence), or
///   text or events, written as lines. Unlinked: the program's input is empty.
/// - Out `out`: what the program writes. Mode `pcm`: s16 audio of `rate` and `channels` in packets of `frame`; the last may be
///   shorter. Mode `lines`: UTF-8 text or events, one line per packet of at most 65,536 bytes; empty lines are skipped. Unlinked:
///   read and discarded.
/// - Audio is stamped as if the program answered sample for sample: output sample n has the time of input sample n, so a late answer
///   shows as latency. Lines have their arrival time.
/// - To keep this true, the program gets silence where positions jump forward, as for lost packets. A gap of more than 10 s is not
///   filled: positions and times jump in the output as well, marked `discontinuity`. Positions that go back are ignored.
/// - Interruption: audio that answers a cancelled reply, sample for sample, is discarded whenever it arrives. Other output does not
///   show what it answers, so everything queued in both directions is discarded, and all output until the next input. If a program
///   answers an old line after that, it is taken to answer the new one.
/// - A program that does not read holds its input back: the link's drop policy decides what happens meanwhile.
/// - Faults, with the exit status or signal and the last lines of standard error: the program exits with a status other than 0; it
///   does not respond for `stall`; it neither reads nor writes for `endStall` once the graph or its input is ending, so that it
///   cannot hold up the end; it writes half a sample, invalid UTF-8, or too long a line. Exit status 0 ends the node.
/// - When the node is destroyed, the program and its process group get SIGTERM, and SIGKILL once the program has exited or a second
///   has passed.
public struct ProcessPipe: Node, ~Copyable {
  /// Chunks queued for the program; as many packets can lag before the link's policy applies.
  private static let inputChunks = 8
  /// Chunks queued from the program.
  private static let outputChunks = 8
  /// Interval of calls after the input has ended; its threads also wake the node.
  private static let lastInterval: Nanoseconds = 1_000_000_000

  let exchange: ProcessExchange
  private let command: String
  let isInputLinked: Bool
  let isOutputLinked: Bool
  let isSoundIn: Bool
  let frameBytesIn: Int
  /// Sample rate of the output; 0 for lines.
  let rate: Int
  let frameBytesOut: Int
  private let stall: Nanoseconds
  private let endStall: Nanoseconds

  var timeline: OutputTimeline
  /// The packet being given, and the samples of silence to give before it.
  var held: Packet?
  var silence = 0
  /// Bytes of the oldest output chunk already emitted.
  var emittedBytes = 0
  /// Output was discarded; the next packet is marked.
  var hasDiscarded = false
  /// What arrives answers a cancelled reply.
  var discardsOutput = false
  /// The reply of the last packet taken, and the first input chunk since then that an interruption cancels.
  var reply = HeldReply()
  var firstCancellable = 0
  /// Since when the program owes a response; nil: it owes none.
  var owesSince: Nanoseconds?
  /// Chunks given to the program, and how many it had read at the last check.
  var given = 0
  private var seenFed = 0
  /// The activity count at the last check, and since when it has not changed after the end of the input.
  private var seenActivity = 0
  private var quietSince: Nanoseconds?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let input = setup.inputs[0]
    let output = setup.outputs[0]
    let arguments = setup.parameters.strings("command")
    guard let wakePipe = WakePipe() else {
      throw NodeProblem(
        "too many open files", cure: "raise the limit on open files (ulimit -n)")
    }
    let outputBytes = output.shape?.packetBytes ?? 1
    let exchange = ProcessExchange(
      // A line gets a line break.
      input: ChunkQueue(chunkBytes: (input.shape?.packetBytes ?? 0) + 1, count: Self.inputChunks),
      output: ChunkQueue(chunkBytes: outputBytes, count: Self.outputChunks), waker: setup.waker,
      supervisorWake: wakePipe)
    let frameBytes = output.shape?.format.frameBytes
    let form: OutputReader.Form =
      !output.isLinked ? .nothing : frameBytes.map { .sound(frameBytes: $0) } ?? .lines
    try Self.start(
      arguments, setup.parameters, exchange, isInputLinked: input.isLinked,
      reader: OutputReader(form, chunkBytes: outputBytes))

    // Nothing may throw from here on: destroying the node is what ends the program.
    self.exchange = exchange
    command = arguments[0]
    isInputLinked = input.isLinked
    isOutputLinked = output.isLinked
    isSoundIn = input.shape?.format.kind == .pcm
    frameBytesIn = input.shape?.format.frameBytes ?? 1
    rate = output.shape?.format.rate ?? 0
    frameBytesOut = frameBytes ?? 1
    stall = Nanoseconds(setup.parameters.number("stall") * 1e6)
    endStall = Nanoseconds(setup.parameters.number("endStall") * 1e6)
    timeline = OutputTimeline(
      inputRate: isSoundIn ? input.shape?.format.rate ?? 0 : 0, outputRate: output.shape?.format.rate ?? 0)
    held = nil
  }

  /// Starts the program and its two threads.
  private static func start(
    _ arguments: [String], _ parameters: ParameterValues, _ exchange: ProcessExchange, isInputLinked: Bool,
    reader: consuming OutputReader
  ) throws(NodeProblem) {
    let child = try ChildProcess(
      arguments, directory: parameters.has("directory") ? parameters.string("directory") : nil,
      environment: parameters.strings("environment"), isInputLinked: isInputLinked)
    let parcel = Parcel(ProcessSupervisor(exchange, child, reader))
    let hasSupervisor = DetachedThread.start("millrace-proc") { parcel.take()?.run() } == 0
    let hasWriter =
      !isInputLinked
      || hasSupervisor
        && DetachedThread.start("millrace-procin") {
          ProcessWriter(exchange: exchange, descriptor: child.input).run()
        } == 0
    guard !hasSupervisor || !hasWriter else { return }
    exchange.stop()
    if !hasWriter { child.closeInput() }
    // Waiting is fine here: the graph does not start.
    if !hasSupervisor { parcel.take()?.run() }
    throw NodeProblem("cannot start a thread", cure: "raise the limit on processes (ulimit -u)")
  }

  deinit { exchange.stop() }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // All output is queued before the exit is reported: look at the exit first.
    let exitResult = exchange.exitResult
    let emitted = try deliver(&ports)
    if !emitted, let exitResult { return try conclude(exitResult) }
    noteResponse(ports.now, emitted: emitted)
    let took = feed(&ports)
    let deadline = earlier(try watch(&ports), try watchEnding(&ports, emitted || took))
    if emitted || took { return .again }
    if let deadline { ports.wake(at: deadline) }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // Without an input the graph is draining, and only destroying the node ends the program.
    guard isInputLinked else { return .ended }
    let exitResult = exchange.exitResult
    let emitted = try deliver(&ports)
    if !emitted, let exitResult { return try conclude(exitResult) }
    noteResponse(ports.now, emitted: emitted)
    let took = feed(&ports)
    if owesSince == nil { owesSince = ports.now }
    let deadline = earlier(try watch(&ports), try watchEnding(&ports, emitted || took))
    if !emitted && !took { ports.wake(at: min(deadline ?? .max, ports.now + Self.lastInterval)) }
    return .again
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    var waiting = silence
    if let packet = held.take() { waiting += Int(packet.byteCount) / frameBytesIn }
    silence = 0
    guard !matchesSamples else {
      // The program must still get what was counted as given; the sample count identifies its answer.
      timeline.withdraw(waiting)
      return
    }
    exchange.cancelInput(from: firstCancellable, to: given)
    discardsOutput = true
    // The next input may be taken before these chunks: discard them now. The program may keep writing, so the number is bounded.
    for _ in 0..<Self.outputChunks {
      guard isOutputLinked, let count = exchange.output.count else { return }
      if rate > 0 {
        _ = timeline.answer(limit: (count - emittedBytes) / frameBytesOut)
        hasDiscarded = true
      }
      discardOutput()
    }
  }

  /// Counts output as a response to all input before it. A program whose output is unlinked responds by reading.
  private mutating func noteResponse(_ now: Nanoseconds, emitted: Bool) {
    if isOutputLinked {
      if emitted { owesSince = nil }
      return
    }
    let fed = exchange.fed.load(ordering: .relaxed)
    if fed != seenFed { owesSince = fed == given ? nil : now }
    seenFed = fed
  }

  /// Fails when the program has not responded for too long; otherwise returns when to check again, nil if it owes no response.
  private mutating func watch(_ ports: inout Ports) throws(NodeFault) -> Nanoseconds? {
    guard stall > 0 else { return nil }
    guard let since = owesSince else { return nil }
    if ports.now - since >= stall { throw NodeFault(.stalled, detail: ports.now - since) }
    return since + stall
  }

  /// Fails when the graph or the input is ending and the program has neither read nor written anything for too long; otherwise
  /// returns when to check again. The program would hold up the end of the graph forever.
  private mutating func watchEnding(_ ports: inout Ports, _ didWork: Bool) throws(NodeFault) -> Nanoseconds? {
    guard endStall > 0, isInputLinked, ports.isDraining || ports.isEnding() else { return nil }
    let activity = exchange.activity.load(ordering: .relaxed)
    if didWork || activity != seenActivity { quietSince = nil }
    seenActivity = activity
    let since = quietSince ?? ports.now
    quietSince = since
    if ports.now - since >= endStall {
      throw NodeFault(.stalled, code: ProcessMessages.afterInputEnd, detail: ports.now - since)
    }
    return since + endStall
  }

  private func earlier(_ first: Nanoseconds?, _ second: Nanoseconds?) -> Nanoseconds? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
  }

  private func conclude(_ exitResult: ProcessExchange.ExitResult) throws(NodeFault) -> Outcome {
    switch exitResult {
    case .done: return .ended
    case .failed(let status): throw NodeFault(.gone, code: status)
    case .outputError(let kind, let place):
      throw NodeFault(.badInput, code: kind.rawValue, detail: Int64(place))
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard let text = ProcessMessages.text(fault, program: command) else { return nil }
    guard let errorTail = exchange.lastErrorLines else { return text }
    return "\(text); standard error: \(errorTail)"
  }
}
