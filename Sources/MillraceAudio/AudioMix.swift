public import MillraceCore
internal import MillraceDSP

/// `audio.mix`: adds up to sixteen audio streams, sample by sample.
///
/// - In `in1` to `in16`: s16 or f32, one rate and one channel count; 8 to 192 kHz, 1 to 8 channels. Out `out`: the common rate and
///   channels, the sample type and packet length of the first linked input; the last packet may be short.
/// - Streams are aligned by sample position, never by arrival: position p of the output is the sum of position p of every input. An
///   input is silent where it has nothing (before its first packet, in a gap, after its end). Output begins at the lowest first
///   position.
/// - An input whose position jumps by more than an hour, forwards or back, or starts that far from the others, is realigned: it
///   continues at the mix's position, reported by event `jumped`.
/// - Where an utterance of an input ends (`endOfUtterance`), the output packet ends too and carries the mark; it is empty if the
///   audio before it has already left.
/// - Runs when every input that has not ended has a packet; packets of different lengths are allowed and add waiting time.
/// - Adds in float and saturates once at the end, so that two loud streams that cancel stay clean; float output is also limited to
///   full scale unless `saturate` is false.
/// - `gain1` to `gain16` can be changed at run time; a change takes 20 ms.
/// - The sum belongs to a reply only if everything in it does; an interruption silences what belongs to the old reply, except packets
///   that must be played.
/// - No latency. A packet that arrives after its position was mixed is cut or dropped.
@safe
public struct AudioMix: ~Copyable, Node {
  /// Maximum number of inputs.
  static let most = 16

  public static let contract = NodeContract(
    "audio.mix", "adds audio streams, sample by sample",
    text: """
      All inputs have one rate and one channel count. They are aligned by sample position; an input that has ended is silent. \
      16-bit output saturates at full scale.
      """,
    inputs: [
      PortContract("in", AudioLimits.pcm, text: "audio to add", copies: 1...most, holds: 1)
    ],
    outputs: [PortContract("out", AudioLimits.pcm, text: "the sum")],
    parameters: [
      ParameterContract(
        "gains", .list(of: .number(-120...60), count: 1...most), unit: "dB",
        text: "initial gains of the inputs, in order; 0 dB where none is set"),
      ParameterContract(
        "saturate", .bool, default: true,
        text: "true: float output is limited to full scale, as 16-bit always is"),
    ]
      + (1...most).map {
        ParameterContract(
          "gain\($0)", .number(-120...60), unit: "dB", live: true,
          text: "gain of in\($0), instead of its entry in `gains`; -120 dB is silence")
      },
    events: [
      EventContract(
        "jumped",
        text: """
          the positions of in`input` jumped to `position` instead of `expected`, by more than an hour: it continues at the \
          mix's position
          """)
    ],
    budget: 300, drive: .allInputs,
    examples: [
      #"{ "type": "audio.mix" }"#, #"{ "type": "audio.mix", "gains": [0, -12] }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case jumped
  }

  /// Index of `gain1` in the contract.
  private static let firstGain = 2
  /// Milliseconds a gain change takes.
  private static let rampMilliseconds = 20.0

  private static func resolve(_ resolution: inout Resolution) {
    var first: (name: String, shape: OutputShape)?
    for name in resolution.linkedInputs {
      guard let shape = resolution.inputs[name] else { continue }
      guard let known = first else {
        first = (name, shape)
        continue
      }
      if shape.format.rate != known.shape.format.rate {
        resolution.refuse(
          nil, "\(name) carries \(shape.format) but \(known.name) carries \(known.shape.format)",
          cure: "put audio.resample (rate \(known.shape.format.rate ?? 0)) before \(name)")
      } else if shape.format.channels != known.shape.format.channels {
        resolution.refuse(
          nil, "\(name) carries \(shape.format) but \(known.name) carries \(known.shape.format)",
          cure: "put audio.convert (channels \(known.shape.format.channels ?? 0)) before \(name)")
      }
    }
    guard var shape = first?.shape else { return }
    shape.burst = 1
    resolution.outputs["out"] = shape
  }

  private let rate: Int
  private let channels: Int
  private let sample: SampleType
  private let frames: Int
  private let saturates: Bool
  private var inputs: MixInputs
  /// Position of the next packet's first sample; nil: no input has started.
  private var at: Int64?
  /// How much of the next packet is summed, its time, and the reply that part belongs to.
  private var filled = 0
  private var time: Nanoseconds = 0
  private var reply: HeldReply?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.outputs[0].shape, let frames = shape.frames,
      case .pcm(let rate, let channels, let sample) = shape.format
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    self.rate = rate
    self.channels = channels
    self.sample = sample
    self.frames = frames
    saturates = setup.parameters.bool("saturate")
    inputs = MixInputs(count: setup.inputs.count, channels: channels, rate: rate, longest: frames)
    let gains = setup.parameters.has("gains") ? setup.parameters.numbers("gains") : []
    for index in 0..<setup.inputs.count {
      if let format = setup.inputs[index].shape?.format { inputs.setSample(format.sample ?? .s16, of: index) }
      let own = "gain\(index + 1)"
      let gain =
        setup.parameters.has(own)
        ? setup.parameters.number(own) : index < gains.count ? gains[index] : 0
      inputs.setGain(Decibels.amplitude(decibels: gain), of: index, frames: 0)
    }
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try mix(&ports) }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try mix(&ports) == .again ? .again : .ended
  }

  /// Sums as far as all inputs are known, and emits one packet when it is full.
  private mutating func mix(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while true {
      let known = inputs.refill(mixed: at.map { $0 &+ Int64(filled) }, &ports)
      guard let start = at ?? inputs.firstPosition else { return .done }
      at = start
      if filled == 0 {
        reply = nil
        time = inputs.time(of: start, rate: rate)
      }
      let next = start &+ Int64(filled)
      let end = min(start &+ Int64(frames), known.limit, inputs.firstEnd ?? .max)
      if end > next {
        inputs.sum(from: next, frames: Int(end &- next), at: filled, into: &reply)
        filled = Int(end &- start)
      }
      let ended = inputs.takeEnd(at: start &+ Int64(filled))
      if filled == frames || ended != nil || known.isLast && filled > 0 && end == known.limit {
        try send(from: start, ending: ended, &ports)
        return .again
      }
      guard end > next else { return .done }
    }
  }

  /// Emits what is summed; `ended` is the reply of an utterance that ends there.
  private mutating func send(
    from start: Int64, ending ended: HeldReply?, _ ports: inout Ports
  ) throws(NodeFault) {
    let owner = reply ?? ended ?? .none
    var packet = try ports.makePacket(bytes: filled * channels * sample.byteCount, of: owner)
    packet.position = start
    packet.duration = filled
    packet.timestamp = time
    if ended != nil { packet.flags.insert(.endOfUtterance) }
    write(&packet)
    ports.emit(packet)
    at = start &+ Int64(filled)
    filled = 0
    inputs.clearSum()
  }

  private func write(_ packet: inout Packet) {
    switch sample {
    case .s16:
      var target = packet.mutableSamples(of: Int16.self)
      SampleConversion.convert(inputs.result.extracting(0..<target.count), into: &target)
    case .f32:
      var target = packet.mutableSamples(of: Float.self)
      let sum = inputs.result
      for index in target.indices { target[index] = saturates ? max(-1, min(1, sum[index])) : sum[index] }
    }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(let parameter, let value) = message else { return }
    let index = parameter - Self.firstGain
    guard index >= 0 && index < inputs.count else { return }
    inputs.setGain(
      Decibels.amplitude(decibels: value.asNumber), of: index,
      frames: AudioLimits.frames(milliseconds: Self.rampMilliseconds, rate: rate))
  }

  public mutating func interrupted(_ ports: inout Ports) {
    inputs.dropReplies(before: ports.generation)
    // Of an incomplete packet, only what belongs to the old reply alone can still be removed.
    if let old = reply, old.isStale(at: ports.generation) {
      inputs.clearSum()
      reply = nil
    }
  }
}
