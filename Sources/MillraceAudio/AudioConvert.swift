public import MillraceCore
internal import MillraceDSP

/// `audio.convert`: changes the sample type, the channels and the packet length, but not the rate.
///
/// - In `in`, out `out`: s16 or f32, 8 to 192 kHz, 1 to 8 channels. Whatever the graph leaves open is chosen to suit the consumers,
///   and kept as in the input if they accept that.
/// - Float to 16 bits rounds to nearest and saturates; 16 bits to float and back is exact.
/// - Channels: to mono, every channel times 1/n (cannot overload); from mono, the same to all; otherwise channels keep their index,
///   missing ones are silent, surplus ones are dropped. `matrix` replaces these rules.
/// - `frame` or `samples` cuts the stream into packets of that length, whatever the input. The last one is short, or padded with
///   silence if `pad` is true. A packet's position and time are those of its first sample.
/// - At a discontinuity, a jump forward or the start of another reply, what is held is emitted as a short packet first. An
///   interruption drops the audio of its reply; audio of no reply, and packets that must be played, stay. Lost packets (without
///   bytes) count as a discontinuity.
/// - The end of an utterance also emits what is held: the short packet carries the mark, or an empty one if nothing is held.
/// - No latency, except with a packet length: samples then wait for the rest of their packet.
/// - Where nothing has to change, packets pass untouched. NaN and infinities become silence and magnitudes above +120 dBFS are
///   clamped, in every conversion and before packets pass.
@safe
public struct AudioConvert: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.convert", "changes sample type, channels and packet length",
    text: """
      To mono, each channel is weighted by 1/n; from mono, every channel gets the same audio; otherwise channels keep their \
      index. What is not set is chosen to suit the consumers.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "audio")],
    outputs: [PortContract("out", AudioLimits.pcm, text: "the converted audio")],
    parameters: [
      ParameterContract("sample", SampleType.choice, text: "sample type; default: what the consumers accept"),
      ParameterContract(
        "channels", .integer(AudioLimits.channels), text: "channels; default: what the consumers accept"),
      ParameterContract(
        "matrix", .list(of: .number(-8...8), count: 1...64),
        text: "gains from every input channel to the first output channel, then to the second, and so on"),
      ParameterContract(
        "frame", .number(AudioLimits.frame), unit: "ms", text: "packet length; default: as in the input"),
      ParameterContract(
        "samples", .integer(1...192_000), text: "packet length in samples per channel, instead of `frame`"),
      ParameterContract("pad", .bool, default: false, text: "true: a short packet is padded with silence"),
    ],
    budget: 150,
    examples: [
      #"{ "type": "audio.convert", "sample": "f32" }"#,
      #"{ "type": "audio.convert", "channels": 1, "frame": 20, "pad": true }"#,
      #"{ "type": "audio.convert", "channels": 1, "matrix": [1, 0] }"#,
    ],
    resolve: resolve)

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    guard let shape = resolution.input, let inputFrames = shape.frames,
      case .pcm(let rate, let inputChannels, let inputSample) = shape.format
    else { return }
    let preferred = Format.pcm(
      rate: rate, channels: values.has("channels") ? values.integer("channels") : inputChannels,
      sample: values.sample("sample") ?? inputSample)
    let format =
      resolution.nearestWanted(
        to: preferred, fixedRate: true, fixedChannels: values.has("channels"),
        fixedSample: values.has("sample"))
      ?? preferred
    guard case .pcm(_, let channels, let sample) = format else { return }
    checkMatrix(values, inputChannels, channels, &resolution)
    if values.has("frame") && values.has("samples") {
      resolution.refuse(
        "samples", "\"frame\" and \"samples\" both set the packet length", cure: "remove one of them")
    }
    guard let frames = packetFrames(values, rate: rate) else {
      var output = OutputShape.pcm(rate: rate, channels: channels, sample: sample, frames: inputFrames)
      output.packetDuration = shape.packetDuration
      output.burst = shape.burst
      resolution.outputs["out"] = output
      return
    }
    // Whole packets completed by one input packet, and the rest of a stream that ends at a discontinuity.
    let burst = (inputFrames + frames - 1) / frames + 1
    resolution.outputs["out"] = .pcm(
      rate: rate, channels: channels, sample: sample, frames: frames, burst: burst)
    resolution.latency = .samples(Int64(frames - divisor(frames, inputFrames)), rate: rate)
  }

  private static func checkMatrix(
    _ values: ParameterValues, _ inputs: Int, _ outputs: Int, _ resolution: inout Resolution
  ) {
    guard values.has("matrix") else { return }
    let count = values.numbers("matrix").count
    guard count != inputs * outputs else { return }
    resolution.refuse(
      "matrix", "\(count) gains do not match \(inputs) input and \(outputs) output channels",
      cure: "give \(inputs * outputs): \(inputs) for each output channel")
  }

  private static func packetFrames(_ values: ParameterValues, rate: Int) -> Int? {
    if values.has("samples") { return values.integer("samples") }
    return values.has("frame") ? AudioLimits.frames(milliseconds: values.number("frame"), rate: rate) : nil
  }

  private static func divisor(_ a: Int, _ b: Int) -> Int { b == 0 ? a : divisor(b, a % b) }

  private var conversion: FormatConverter
  /// True: packets pass unchanged.
  private let passes: Bool
  private let sample: SampleType
  private let rate: Int
  /// Packet length in samples per channel; nil: as in the input.
  private let frames: Int?
  private let pads: Bool
  private var queue: FrameQueue
  private var reply = HeldReply()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let input = setup.inputs[0].shape, let frames = input.frames,
      case .pcm(let rate, let channels, let sample) = setup.outputFormat()
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    let values = setup.parameters
    let matrix = values.has("matrix") ? values.numbers("matrix").map { Float($0) } : nil
    conversion = FormatConverter(
      from: input.format, to: setup.outputFormat(), matrix: matrix, longest: frames)
    let length = Self.packetFrames(values, rate: rate)
    let frameBytes = channels * sample.byteCount
    queue = FrameQueue(rate: rate, frameBytes: frameBytes, capacity: length.map { $0 + frames } ?? 1)
    passes = length == nil && conversion.isIdentity
    self.sample = sample
    pads = values.bool("pad")
    self.frames = length
    self.rate = rate
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    if passes {
      try ports.emitSanitized(packet, sample)
      return .done
    }
    if let frames { try cut(packet, into: frames, &ports) } else { try convert(packet, &ports) }
    return .done
  }

  /// Converts one packet into one.
  private mutating func convert(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    let count = Int(packet.byteCount) / conversion.inputFrameBytes
    var output = try ports.makePacket(bytes: count * conversion.outputFrameBytes, of: HeldReply(of: packet))
    output.copyMetadata(from: packet)
    var bytes = output.mutableSamples(of: UInt8.self)
    conversion.convert(packet, into: &bytes)
    ports.emit(output)
  }

  /// Takes one packet and emits those it completes.
  private mutating func cut(
    _ packet: borrowing Packet, into frames: Int, _ ports: inout Ports
  ) throws(NodeFault) {
    let ends = packet.flags.contains(.endOfUtterance)
    if !packet.isEndMarker {
      if queue.isBroken(by: packet) { try emitRest(frames, &ports) }
      reply.follow(packet)
      queue.follow(packet, frames: Int(packet.byteCount) / conversion.inputFrameBytes)
      conversion.append(packet, to: &queue)
      // The last frames of a packet that ends its utterance wait for the mark.
      while queue.frames >= (ends ? frames + 1 : frames) { try emit(frames, &ports) }
    } else if packet.generation != reply.generation {
      try emitRest(frames, &ports)
    }
    if ends { try end(with: packet, frames, &ports) }
  }

  /// Emits what is held of an utterance that a packet ends, with the mark.
  private mutating func end(
    with packet: borrowing Packet, _ frames: Int, _ ports: inout Ports
  ) throws(NodeFault) {
    let rest = queue.frames
    if rest > 0 {
      try emit(pads ? frames : rest, ending: true, &ports)
    } else {
      try ports.emitEnd(of: packet, rate: rate)
    }
    queue.clear()
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let frames { try emitRest(frames, &ports) }
    return .ended
  }

  public mutating func interrupted(_ ports: inout Ports) {
    if reply.isStale(at: ports.generation) { queue.clear() }
  }

  /// Emits what is held as a short packet.
  private mutating func emitRest(_ frames: Int, _ ports: inout Ports) throws(NodeFault) {
    let rest = queue.frames
    if rest > 0 { try emit(pads ? frames : rest, &ports) }
    queue.clear()
  }

  /// Emits the oldest frames in a packet of `length`, padded with silence if fewer are held.
  private mutating func emit(_ length: Int, ending: Bool = false, _ ports: inout Ports) throws(NodeFault) {
    var output = try ports.makePacket(bytes: length * conversion.outputFrameBytes, of: queue.reply)
    queue.describe(&output, duration: length)
    if ending { output.flags.insert(.endOfUtterance) }
    var bytes = output.mutableSamples(of: UInt8.self)
    let used = queue.take(into: &bytes)
    for index in used..<bytes.count { bytes[index] = 0 }
    ports.emit(output)
  }
}
