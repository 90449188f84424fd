internal import MillraceAudio
public import MillraceCore

extension AudioPlay {
  public static let contract = NodeContract(
    "audio.play", "plays audio to a loudspeaker and reports what was heard",
    text: """
      An interrupted reply fades out within `fade`, and the samples of it that were heard are counted exactly; queued audio that has not \
      started playing is rewound. Ducking holds the reply or lowers it; resuming continues with the next sample. The port `reference` \
      carries what is actually played, silence included, as soon as it is final.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "audio to play", holds: 1)],
    outputs: [
      PortContract(
        "reference", AudioLimits.pcm, text: "what is actually played, timed by when it is heard",
        required: false)
    ],
    parameters: [
      ParameterContract(
        "device", .string, default: "null", live: true,
        text: """
          the device to play to: pulse, pulse:NAME, alsa, alsa:NAME, file, or null (silent, on the graph's clock, which cannot be changed \
          while the graph runs)
          """
      ),
      ParameterContract("path", .path, text: "the WAV file of the device `file`"),
      ParameterContract(
        "period", .number(1...100), unit: "ms", default: 10, text: "audio the device takes at a time"),
      ParameterContract(
        "latency", .number(0...1_000), unit: "ms", default: 20,
        text: "how far ahead audio is queued on the device"),
      ParameterContract(
        "prebuffer", .number(0...10_000), unit: "ms", default: 10,
        text: "audio collected before playback starts after silence, to prevent underruns"),
      ParameterContract(
        "fade", .number(0.1...10), unit: "ms", default: 5,
        text: "length of a fade between full level and silence"),
      ParameterContract(
        "duck", .choice(["hold", "lower"]), default: "hold",
        text: "what ducking does: hold the reply, or lower its level"),
      ParameterContract(
        "lowering", .number(-60...0), unit: "dB", default: -18, text: "gain of a lowered reply"),
      ParameterContract(
        "drift", .bool, default: true,
        text:
          "compensate clock drift: resample slightly so that the audio matches a device that has its own clock"
      ),
      ParameterContract(
        "interval", .number(1...100), unit: "ms", default: 5,
        text: "how often the device fetches audio; set it to at most half of `latency`"),
      ParameterContract(
        "skew", .number(-1_000...1_000), unit: "ppm", default: 0,
        text: "how much faster than nominal the device `file` or `null` runs, to test clock drift"),
    ],
    events: [
      EventContract(
        "replyAudible", text: "a reply starts playing: `reply`, `at` the time its first sample is heard"),
      EventContract(
        "replyFinished",
        text:
          "an utterance of a reply, or the whole reply, was played to the end: `reply`, `samples` and `ms` heard"
      ),
      EventContract(
        "interrupted",
        text: """
          a reply was cut off: `reply`, `samples` and `ms` heard, `position` of the first sample not heard; `reply` is 0 if none was \
          audible
          """),
      EventContract(
        "ducked", text: "the reply is ducked: `reply`, `samples` and `ms` heard so far"),
      EventContract("resumed", text: "the reply resumes: `reply`, `samples` and `ms` heard so far"),
      EventContract(
        "underrun", text: "audio arrived too late: `position` in the stream, `ms` of silence, `count` so far"),
      EventContract(
        "late", text: "the node ran too late for the device: it played `ms` of silence, `count` so far"),
      EventContract(
        "jump",
        text: "audio was too old, or its source stalled, and some was skipped: `ms` skipped, `count` so far"),
      EventContract("deviceLost", text: "the device or its server disappeared: `count` so far"),
      EventContract("deviceBack", text: "the device plays again: it was gone for `ms`"),
      EventContract(
        "deviceClock",
        text: """
          every ten seconds: `ppm` the device runs faster than nominal, measured on this machine's clock, `drift` in ppm of the audio \
          against the device, `age` in ms of the audio when it is queued
          """),
      EventContract("deviceChanged", text: "a `device` set while the graph runs plays now"),
      EventContract(
        "error",
        text: """
          a `device` set while the graph runs cannot be played to, and everything continues as before: `text` says why and what to do, \
          `device`
          """),
    ],
    budget: 300, drive: .itself, asynchronousPaths: [AsynchronousPath(from: "in", to: "reference")],
    playsReplies: true,
    examples: [
      #"{ "type": "audio.play", "device": "pulse", "latency": 8, "prebuffer": 2 }"#,
      #"{ "type": "audio.play" }"#, #"{ "type": "audio.play", "duck": "lower", "lowering": -12 }"#,
    ],
    resolve: resolve)

  /// Most bytes of an event: room for an error that lists the available devices.
  private static let eventBytes = 2_048

  private static func resolve(_ resolution: inout Resolution) {
    guard DeviceName.resolved(&resolution) != nil else { return }
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: eventBytes)
    let values = resolution.parameters
    resolution.pacing = .live
    resolution.latency = nanoseconds(values, "latency") + nanoseconds(values, "prebuffer")
    guard let input = resolution.input, case .pcm(let rate, let channels, let sample) = input.format else {
      return
    }
    resolution.outputs["reference"] = .pcm(
      rate: rate, channels: channels, sample: sample,
      frames: AudioLimits.frames(milliseconds: values.number("period"), rate: rate))
  }
}
