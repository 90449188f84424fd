public import MillraceCore

/// `double.avatar`: the avatar of a double as pictures and sound in step, for the node that sends them to its clients.
///
/// - Out `out`: 25 pictures a second; the mouth follows the sound. `audio`: 16 kHz mono. `messages`: texts of the service that go with a
///   picture, at its time and ahead of it.
/// - What it speaks is a `AvatarVoice`, found by its number.
/// - Pictures are due on a schedule counted from the first one. One that a busy machine missed is made up for: no sound is lost.
public struct AvatarNode: Node {
  public static let contract = NodeContract(
    "double.avatar", "the avatar of a service's double",
    outputs: [
      PortContract("out", .video(pixels: [.i420]), text: "pictures"),
      PortContract(
        "audio", .pcm(rates: .only(AvatarVoice.rate), channels: .only(1), samples: [.s16]), text: "its voice"),
      PortContract("messages", .kind(.text), text: "texts that go with a picture", required: false),
    ],
    parameters: [
      ParameterContract(
        "voice", .integer(1...Int(Int32.max)), required: true, text: "the number of its voice"),
      ParameterContract("width", .integer(32...1_920), unit: "px", default: 540, text: "width, even"),
      ParameterContract("height", .integer(32...1_920), unit: "px", default: 960, text: "height, even"),
    ],
    lane: .bulk, budget: 10_000, drive: .itself,
    resolve: { resolution in
      let values = resolution.parameters
      for name in ["width", "height"] where values.integer(name) % 2 != 0 {
        resolution.refuse(name, "the \(name) of a 4:2:0 picture is even", cure: "use an even number")
      }
      resolution.pacing = .paced
      resolution.outputs["out"] = .video(
        width: values.integer("width"), height: values.integer("height"), rate: FrameRate(Self.pictures))
      resolution.outputs["audio"] = .pcm(
        rate: AvatarVoice.rate, channels: 1, sample: .s16, frames: Self.samples)
      resolution.outputs["messages"] = OutputShape(
        .text, packetDuration: nil, packetBytes: 2_048, burst: Self.mostMessages)
    })

  /// Pictures a second, and samples of each.
  private static let pictures = 25
  private static let samples = AvatarVoice.rate / pictures
  private static let period = Nanoseconds.milliseconds(Int64(1_000 / pictures))
  /// Most messages with a picture.
  private static let mostMessages = 16

  private let voice: AvatarVoice
  private let drawing: AvatarDrawing
  private var start: Nanoseconds?
  private var count: Int64 = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard let voice = AvatarVoice.find(values.integer("voice")) else {
      throw NodeProblem(
        "there is no such voice", parameter: "voice", cure: "create a AvatarVoice, and use its number")
    }
    self.voice = voice
    drawing = AvatarDrawing(width: values.integer("width"), height: values.integer("height"))
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let start = start ?? ports.now
    self.start = start
    let due = start &+ count &* Self.period
    if due <= ports.now {
      try emit(voice.take(Self.samples), at: due, &ports)
      count += 1
    }
    ports.wake(at: start &+ count &* Self.period)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { .ended }

  private func emit(_ moment: AvatarVoice.Moment, at time: Nanoseconds, _ ports: inout Ports)
    throws(NodeFault)
  {
    for text in moment.messages.prefix(Self.mostMessages) {
      let bytes = Array(text.utf8.prefix(2_048))
      var message = try ports.makePacket(2, bytes: bytes.count, of: .none)
      var target = message.mutableSamples(of: UInt8.self)
      for index in bytes.indices { target[index] = bytes[index] }
      message.timestamp = time
      ports.emit(message, to: 2)
    }
    var sound = try ports.makePacket(1, bytes: Self.samples * 2, of: .none)
    var samples = sound.mutableSamples(of: Int16.self)
    for index in moment.samples.indices { samples[index] = moment.samples[index] }
    // One millisecond at half of full scale.
    if moment.isFlash {
      for index in 0..<AvatarVoice.rate / 1_000 { samples[index] = index % 8 < 4 ? 16_384 : -16_384 }
    }
    sound.timestamp = time
    sound.position = count &* Int64(Self.samples)
    sound.duration = Self.samples
    ports.emit(sound, to: 1)
    var picture = try ports.makePacket(0, bytes: drawing.byteCount, of: .none)
    var pixels = picture.mutableSamples(of: UInt8.self)
    drawing.draw(mouth: Self.opening(moment.samples), isFlash: moment.isFlash, into: &pixels)
    picture.timestamp = time
    picture.position = count
    picture.duration = 1
    picture.flags.insert(.key)
    ports.emit(picture, to: 0)
  }

  /// How far the mouth is open: wide at the level of loud speech, -16 dB.
  private static func opening(_ samples: [Int16]) -> Double {
    let power = samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(samples.count)
    return min(1, power.squareRoot() / 5_200)
  }
}
