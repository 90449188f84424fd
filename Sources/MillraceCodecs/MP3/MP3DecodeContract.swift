public import MillraceCore
internal import MillraceFiles

extension MP3Decode {
  public static var contract: NodeContract {
    NodeContract(
      "mp3.decode", "decodes MP3 as a service streams it, cut anywhere, to PCM",
      text: """
        Every utterance has its own decoder state: decoding restarts after a packet marked endOfUtterance or discontinuity and after \
        an interruption. The output has a fixed rate and channel count; a stream that differs, even in mid-stream, is \
        resampled and mixed.

        Bytes that are not MP3 are skipped and reported; if nothing received was MP3, the node fails at the end of its input.
        """,
      inputs: [PortContract("in", .kind(.mp3), text: "MP3, cut anywhere", holds: 1)],
      outputs: [
        PortContract(
          "out", .pcm(rates: .range(8_000...192_000), channels: .range(1...2), samples: [.s16, .f32]),
          text: "PCM; the last packet of an utterance is marked")
      ],
      parameters: [
        ParameterContract(
          "rate", .integer(8_000...192_000), unit: "Hz", default: 24_000,
          text: "output rate; other rates are resampled"),
        ParameterContract("channels", .integer(1...2), default: 1, text: "output channels"),
        ParameterContract(
          "sample", .choice(SampleType.allCases.map(\.rawValue)), default: "s16",
          text: "sample format"),
        .truncated,
      ],
      events: [
        EventContract(
          "format",
          text:
            "the stream's actual format, at its start and when it changes: rate, channels, byte offset in the utterance"
        ),
        EventContract(
          "damaged",
          text: """
            invalid bytes were skipped: `byte` offset of the first range in the utterance, total `bytes`, `count` of ranges so far; at most \
            once a second, and the rest at the end of the utterance
            """),
        EventContract(
          "truncated",
          text:
            "an utterance ended inside a frame: `byte` offset of that frame, and how many `bytes` of it arrived"
        ),
        EventContract("silent", text: "an utterance contained no MP3 frame: its length in bytes"),
      ],
      budget: 500,
      examples: [
        #"{ "type": "mp3.decode" }"#, #"{ "type": "mp3.decode", "rate": 48000, "sample": "f32" }"#,
      ],
      resolve: resolve)
  }

  /// Length of the longest packet in milliseconds: a frame of 576 samples at 16 kHz or of 1,152 at 32 kHz. Longer frames, of 8 to 12 kHz
  /// and of layer II, are split.
  private static let longest = 36

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    let rate = values.integer("rate")
    // The resampler may produce one extra sample now and then.
    let frames = (rate * longest + 999) / 1_000 + 1
    var shape = OutputShape.pcm(
      rate: rate, channels: values.integer("channels"),
      sample: SampleType(rawValue: values.string("sample")) ?? .s16, frames: frames)
    shape.packetDuration = nil
    resolution.outputs["out"] = shape
  }
}
