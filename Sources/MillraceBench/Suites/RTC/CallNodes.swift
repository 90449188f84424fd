import Glibc
import MillraceCore

/// The voice of one end of a measured call: 48 kHz, packets of 10 ms, each emitted when its last sample was captured, as a microphone does.
struct CallVoice: Node {
  static let contract = NodeContract(
    "bench.caller", "a voice for a call",
    outputs: [
      PortContract("out", .pcm(rates: .only(rate), channels: .only(1), samples: [.s16]), text: "the voice")
    ],
    parameters: [
      ParameterContract(
        "signal", .choice(["tone", "bursts", "voice"]), default: "tone",
        text: "a tone; 300 ms of it in each second; or a voice over the tone")
    ],
    drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = .pcm(rate: rate, channels: 1, sample: .s16, frames: frames)
      resolution.pacing = .live
    })

  static let rate = 48_000
  /// The peak of the tone, relative to full scale.
  static let amplitude = 0.2
  /// Bursts begin at whole seconds of the graph's clock, from the first on.
  static let burstPeriod: Nanoseconds = .milliseconds(1_000)
  private static let burst: Nanoseconds = .milliseconds(300)
  private static let frames = 480
  private static let frameTime: Nanoseconds = .milliseconds(10)
  /// 1 kHz: whole periods in every packet.
  private static let tone: [Int16] = {
    let period = 48
    return (0..<frames).map { index in
      let angle: Double = 2 * Double.pi * Double(index % period) / Double(period)
      return Int16(amplitude * 32_767 * sin(angle))
    }
  }()
  private static let voice = Sound.voice(seconds: 20, rate: rate)

  private let isVoice: Bool
  private let hasBursts: Bool
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let signal = setup.parameters.string("signal")
    isVoice = signal == "voice"
    hasBursts = signal == "bursts"
    // Made now, not in the first call.
    use(Self.tone)
    if isVoice { use(Self.voice) }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let begin = Int64(next) * Self.frameTime
    let due = begin + Self.frameTime
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 2 * Self.frames, of: .none)
    packet.timestamp = begin
    packet.position = Int64(next * Self.frames)
    packet.duration = Self.frames
    let isSilent = hasBursts && (begin < Self.burstPeriod || begin % Self.burstPeriod >= Self.burst)
    let place = isVoice ? next * Self.frames % Self.voice.count : 0
    var samples = packet.mutableSamples(of: Int16.self)
    for index in 0..<Self.frames {
      var sample = isSilent ? 0 : Int(Self.tone[index])
      if isVoice { sample += Int(Self.voice[place + index]) }
      samples[index] = Int16(clamping: sample)
    }
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Hears one end of a measured call.
struct CallListener: Node {
  static let contract = NodeContract(
    "bench.listener", "notes when sound of a call is heard",
    inputs: [
      PortContract(
        "in", .pcm(rates: .only(CallVoice.rate), channels: .only(1), samples: [.f32]), text: "what is heard")
    ],
    parameters: [
      ParameterContract("ear", .integer(0...1_000_000), default: 0, text: "number of the ear")
    ])
  private let ear: CallEar

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    ear = try CallEars.find(setup.parameters.integer("ear"))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { ear.take(packet.samples(of: Float.self), at: ports.now) }
    return .done
  }
}
