public import MillraceCore

extension SpeechPlay {
  public static var contract: NodeContract {
    NodeContract(
      "speech.play", "plays streamed replies in real time: MP3, PCM, Opus packets or Ogg Opus",
      text: """
        Takes replies at whatever rate a service sends them, and emits audio in real time. Playback starts when `start` \
        is buffered, at the end of the utterance, or `patience` after the first byte. When the \
        service falls behind, speech slows down at constant pitch; on an underrun it fades out and waits.

        Replies are queued. An interruption drops cancelled replies; a following `audio.play` reports how much was heard. If nothing \
        received was audio, the node fails at the end of its input.
        """,
      inputs: [
        PortContract(
          "in",
          .pcm(rates: .range(8_000...192_000), channels: .range(1...8), samples: [.s16, .f32])
            .or(.kind(.mp3)).or(.kind(.ogg)).or(.opus(rates: .oneOf(OpusRates.all), channels: .range(1...2))),
          text: "replies; `endOfUtterance` marks the last packet of each", holds: 1)
      ],
      outputs: [
        PortContract(
          "out", .pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.f32]),
          text: "audio, 10 ms per packet, each when it is due")
      ],
      parameters: parameters,
      events: [
        EventContract(
          "started",
          text: "an utterance starts: `reply`, `waited` ms since its first byte, `ms` buffered"
        ),
        EventContract(
          "underrun",
          text:
            "the service fell behind: `reply`, `position`, `count` in this utterance, `waits` for this many ms"
        ),
        EventContract(
          "finished",
          text: """
            an utterance was emitted to its end: `reply`, `samples`, of which `stretched` were inserted by slowing down, \
            `underruns`
            """),
        EventContract(
          "interrupted",
          text: """
            a reply was cut off: `reply`, `samples` emitted, of which `stretched` were inserted; `audio.play` reports how many of them \
            were heard
            """),
        EventContract("format", text: "the actual format of an encoded stream: `rate`, `channels`"),
        EventContract(
          "damaged",
          text: """
            invalid bytes in an utterance: `byte` offset of the first range, total `bytes`, `count` of ranges so far; at most once a \
            second, and the rest before `finished`
            """),
        EventContract(
          "truncated",
          text:
            "an utterance ended inside a frame or a page: `byte` offset of that frame or page, and how many `bytes` of it arrived"
        ),
        EventContract("silent", text: "an utterance contained no audio: its length in `bytes`"),
      ],
      budget: 800, drive: .itself, asynchronousPaths: [AsynchronousPath(from: "in", to: "out")],
      playsReplies: true,
      examples: [
        #"{ "type": "speech.play" }"#,
        #"{ "type": "speech.play", "rate": 48000, "start": 300, "slowest": 1 }"#,
      ],
      resolve: resolve)
  }

  private static var parameters: [ParameterContract] {
    [
      ParameterContract(
        "rate", .integer(8_000...96_000), unit: "Hz", default: 24_000, text: "output rate"),
      ParameterContract("channels", .integer(1...2), default: 1, text: "output channels"),
      ParameterContract(
        "start", .number(0...2_000), unit: "ms", default: 200,
        text: "audio buffered before an utterance starts"),
      ParameterContract(
        "patience", .number(0...10_000), unit: "ms", default: 250,
        text: "longest wait for `start` after the first byte"),
      ParameterContract(
        "comfort", .number(0...1_000), unit: "ms", default: 400,
        text: "below this buffer level, speech slows down"),
      ParameterContract(
        "slowest", .number(0.5...1), default: 0.8, text: "slowest playback speed; 1: never slow down"),
      ParameterContract(
        "longestWait", .number(20...1_000), unit: "ms", default: 1_000,
        text:
          "most audio to wait for after an underrun: `start` the first time, then twice as much each time"),
      ParameterContract(
        "lead", .number(0...200), unit: "ms", default: 20,
        text: "how far ahead of its time audio is emitted"),
      ParameterContract(
        "duck", .choice(["hold", "lower"]), default: "hold",
        text: "what ducking does; must match audio.play: hold, or continue at the lower level set there"),
      ParameterContract(
        "buffer", .integer(64...65_536), unit: "KiB", default: 2_048,
        text: "buffer for received data that is not decoded yet; more than that waits in the link"),
    ]
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.pacing = .waits
    resolution.latency = Nanoseconds(values.number("start") * 1e6)
    let rate = values.integer("rate")
    resolution.outputs["out"] = .pcm(
      rate: rate, channels: values.integer("channels"), sample: .f32, frames: rate / 100)
    if values.number("longestWait") < values.number("start") {
      resolution.refuse(
        "longestWait",
        "the longest wait, \(values.number("longestWait")) ms, is below \"start\", \(values.number("start")) ms",
        cure: "set \"longestWait\" to at least \"start\"")
    }
  }
}
