public import MillraceCore

extension SpeechPlay {
  public static var contract: NodeContract {
    NodeContract(
      "speech.play", "turns streamed replies into sound in time: MP3, PCM, Opus packets or Ogg Opus",
      text: """
        Takes replies as a service sends them, faster or slower than they are spoken, and hands sound on in time with the \
        clock. It begins when `start` is there, at the end of the utterance, or `patience` after the first byte. When the \
        service falls behind it speaks more slowly, at an unchanged pitch, and when it runs dry it fades and waits.

        Replies queue behind each other. An interruption drops what is void; `audio.play` behind it tells how much was heard. When \
        nothing of all that came was sound, the node fails at the end of its input.
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
          text: "sound, 10 ms a packet, each when it is due")
      ],
      parameters: parameters,
      events: [
        EventContract(
          "started",
          text: "an utterance begins to sound: `reply`, `waited` ms since its first byte, `ms` that are there"
        ),
        EventContract(
          "underrun",
          text:
            "the service fell behind: `reply`, `position`, `count` in this utterance, `waits` for so many ms"),
        EventContract(
          "finished",
          text: """
            an utterance was handed on to its end: `reply`, `samples`, of which `stretched` were put in by slowing down, \
            `underruns`
            """),
        EventContract(
          "interrupted",
          text: """
            a reply was cut off: `reply`, `samples` handed on, of which `stretched` were put in; `audio.play` tells how many \
            of them were heard
            """),
        EventContract("format", text: "what a coded stream really is: `rate`, `channels`"),
        EventContract(
          "damaged",
          text: """
            stretches of an utterance were no sound: `byte` the first begins at, `bytes` of them all, `count` of stretches so far; \
            at most once a second, and the rest before `finished`
            """),
        EventContract(
          "truncated",
          text:
            "an utterance ended inside a frame or a page: the `byte` it begins at, and how many `bytes` of it came"
        ),
        EventContract("silent", text: "an utterance had no sound in it at all: `bytes`"),
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
        "rate", .integer(8_000...96_000), unit: "Hz", default: 24_000, text: "rate of the output"),
      ParameterContract("channels", .integer(1...2), default: 1, text: "channels of the output"),
      ParameterContract(
        "start", .number(0...2_000), unit: "ms", default: 200,
        text: "sound that is there before an utterance begins"),
      ParameterContract(
        "patience", .number(0...10_000), unit: "ms", default: 250,
        text: "after the first byte an utterance begins with less than that"),
      ParameterContract(
        "comfort", .number(0...1_000), unit: "ms", default: 400, text: "with less than this it goes slower"),
      ParameterContract(
        "slowest", .number(0.5...1), default: 0.8, text: "how slow it may get; 1: never slower"),
      ParameterContract(
        "longestWait", .number(20...1_000), unit: "ms", default: 1_000,
        text:
          "most sound to wait for after running dry; `start` the first time, then twice as much each time"),
      ParameterContract(
        "lead", .number(0...200), unit: "ms", default: 20,
        text: "how far ahead of its time sound is handed on"),
      ParameterContract(
        "duck", .choice(["hold", "lower"]), default: "hold",
        text: "what ducking does, as said to audio.play: hold, or go on at the lower level it makes"),
      ParameterContract(
        "buffer", .integer(64...65_536), unit: "KiB", default: 2_048,
        text: "room for what was sent and is not decoded; beyond it the link holds it"),
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
        "waiting for at most \(values.number("longestWait")) ms is less than the start's \(values.number("start")) ms",
        cure: "give \"longestWait\" at least as much as \"start\"")
    }
  }
}
