internal import MillraceCore
internal import MillraceDialog

/// The ports of the nodes of WebRTC and RTP, and what all their contracts share.
enum RTCPortContracts {
  /// Sound to send: PCM of any common form, or packets of Opus that are passed on.
  static let audioIn = PortContract(
    "audio",
    .pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16, .f32]).or(.kind(.opus)),
    text: "audio to send", required: false, holds: 1)

  /// Encoded pictures to send.
  static let videoIn = PortContract(
    "video", .kind(.h264).or(.kind(.vp8)), text: "encoded pictures to send, one in each packet",
    required: false, holds: 1)

  /// Messages to send.
  static let dataIn = PortContract(
    "data", .kind(.text).or(.kind(.event)), text: "messages to send, one in each packet", required: false,
    holds: 1)

  /// Commands of the dialogue, and what others report.
  static let control = PortContract(
    "control", .kind(.event).or(.kind(.text)),
    text: "commands; and `keyframeRequested` of a decoder, which asks the peer for a key frame",
    required: false, holds: 1)

  /// Where to connect to, learnt while the graph runs.
  static let address = PortContract(
    "address", .kind(.text).or(.kind(.event)),
    text: """
      the endpoint from now on: text, or events `stream` with `url`; an empty text, `stream` without `url` and `streamEnded` end the \
      session; other events are ignored
      """,
    required: false, holds: 1)

  /// Sound that has come.
  static let audioOut = PortContract(
    "audio",
    .pcm(rates: .range(8_000...48_000), channels: .range(1...2), samples: [.f32, .s16]).or(.kind(.opus)),
    text: "audio received, all sources mixed", required: false)

  /// The same by itself, and not as Opus.
  static let soundOut = PortContract(
    "audio", .pcm(rates: .range(8_000...48_000), channels: .range(1...2), samples: [.f32, .s16]),
    text: "audio received", required: false)

  /// Encoded pictures that have come.
  static let videoOut = PortContract(
    "video", .kind(.h264).or(.kind(.vp8)), text: "encoded pictures received, one in each packet",
    required: false)

  /// Messages that have come.
  static let dataOut = PortContract(
    "data", .kind(.text), text: "text messages received, one in each packet", required: false)

  /// Every way through a node leads over the network, and may close a cycle.
  static func paths(from inputs: [PortContract], to outputs: [PortContract]) -> [AsynchronousPath] {
    inputs.flatMap { input in
      (outputs.map(\.name) + [NodeContract.eventsPort]).map { AsynchronousPath(from: input.name, to: $0) }
    }
  }

  /// A contract of the family.
  static func contract(
    _ type: String, _ summary: String, text: String, inputs: [PortContract], outputs: [PortContract],
    parameters: [ParameterContract], examples: [String],
    resolve: @escaping @Sendable (inout Resolution) -> Void
  ) -> NodeContract {
    NodeContract(
      type, summary, text: text, inputs: inputs, outputs: outputs, parameters: parameters,
      events: DialogEvent.contracts, lane: .external, budget: budget, drive: .itself,
      asynchronousPaths: paths(from: inputs, to: outputs), followsVirtualClock: false, examples: examples,
      resolve: resolve)
  }

  /// Microseconds of a call: a packet of Opus encoded, and 10 ms of eight sources decoded and mixed.
  static let budget = 2_000
}
