public import MillraceCore
internal import MillraceFiles

extension MP3Decode {
  public static var contract: NodeContract {
    NodeContract(
      "mp3.decode", "decodes MP3 as a service sends it, cut anywhere, to PCM",
      text: """
        Every utterance has a decoder of its own: what follows a packet marked endOfUtterance or discontinuity, or an \
        interruption, begins afresh. The output has one rate and one number of channels, whatever the stream has: it is \
        resampled, folded or doubled where it differs, in mid-stream too.

        Bytes that are no MP3 are passed over and told; when all that came were such, the node fails at the end of its input.
        """,
      inputs: [PortContract("in", .kind(.mp3), text: "MP3, cut anywhere", holds: 1)],
      outputs: [
        PortContract(
          "out", .pcm(rates: .range(8_000...192_000), channels: .range(1...2), samples: [.s16, .f32]),
          text: "samples; the end of an utterance is marked on its last packet")
      ],
      parameters: [
        ParameterContract(
          "rate", .integer(8_000...192_000), unit: "Hz", default: 24_000,
          text: "rate of the output; a stream of another is resampled"),
        ParameterContract("channels", .integer(1...2), default: 1, text: "channels of the output"),
        ParameterContract(
          "sample", .choice(SampleType.allCases.map(\.rawValue)), default: "s16",
          text: "how a sample is stored"),
        .truncated,
      ],
      events: [
        EventContract(
          "format",
          text:
            "what the stream really is, at its start and where it changes: rate, channels, byte of the utterance"
        ),
        EventContract(
          "damaged",
          text: """
            stretches that are no sound were passed over: `byte` of the utterance the first begins at, `bytes` of them all, `count` of \
            stretches so far; at most once a second, and the rest at the utterance's end
            """),
        EventContract(
          "truncated",
          text: "an utterance ended inside a frame: the `byte` it begins at, and how many `bytes` of it came"),
        EventContract("silent", text: "an utterance had no MP3 frame at all: bytes"),
      ],
      budget: 500,
      examples: [
        #"{ "type": "mp3.decode" }"#, #"{ "type": "mp3.decode", "rate": 48000, "sample": "f32" }"#,
      ],
      resolve: resolve)
  }

  /// Milliseconds of the longest packet: a frame of 576 samples at 16 kHz or of 1,152 at 32 kHz. Longer ones, of 8 to 12 kHz
  /// and of layer II, are cut.
  private static let longest = 36

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    let rate = values.integer("rate")
    // A filter may give a sample more than its share now and then.
    let frames = (rate * longest + 999) / 1_000 + 1
    var shape = OutputShape.pcm(
      rate: rate, channels: values.integer("channels"),
      sample: SampleType(rawValue: values.string("sample")) ?? .s16, frames: frames)
    shape.packetDuration = nil
    resolution.outputs["out"] = shape
  }
}
