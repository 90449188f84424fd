internal import MillraceAudio
public import MillraceCore

extension AudioPlay {
  public static let contract = NodeContract(
    "audio.play", "plays sound to a loudspeaker and tells what was heard",
    text: """
      A reply that is interrupted fades out within `fade` and is accounted for to the sample; what the device was given of it \
      ahead is called back. One that is ducked is held or lowered, and goes on where it was. The port `reference` carries what is \
      really played, silence included, as soon as nothing can change it any more.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "sound to play", holds: 1)],
    outputs: [
      PortContract(
        "reference", AudioLimits.pcm, text: "what is really played, at the time it is heard", required: false)
    ],
    parameters: [
      ParameterContract(
        "device", .string, default: "null",
        text:
          "where to play: pulse, pulse:NAME, alsa, alsa:NAME, file, or null: nowhere, in time with the clock"),
      ParameterContract("path", .path, text: "the WAV file of the device `file`"),
      ParameterContract(
        "period", .number(1...100), unit: "ms", default: 10, text: "sound the device takes at a time"),
      ParameterContract(
        "latency", .number(0...1_000), unit: "ms", default: 20,
        text: "from giving sound to the device to hearing it"),
      ParameterContract(
        "prebuffer", .number(0...10_000), unit: "ms", default: 10,
        text: "wait before sound begins after silence, against underruns"),
      ParameterContract(
        "fade", .number(0.1...10), unit: "ms", default: 5, text: "time from full level to silence and back"),
      ParameterContract(
        "duck", .choice(["hold", "lower"]), default: "hold",
        text: "what ducking does: hold the reply, or go on at a lower level"),
      ParameterContract(
        "lowering", .number(-60...0), unit: "dB", default: -18, text: "level of a lowered reply"),
      ParameterContract(
        "drift", .bool, default: true,
        text:
          "true: a device with a clock of its own gets the sound a little faster or slower, so that it fits"),
      ParameterContract(
        "interval", .number(1...100), unit: "ms", default: 5,
        text: "how often the device looks at its sound; at most half of `latency` is of use"),
      ParameterContract(
        "skew", .number(-1_000...1_000), unit: "ppm", default: 0,
        text: "how much faster than its rate the device `file` or `null` runs, to try what drifts apart"),
    ],
    events: [
      EventContract(
        "replyAudible", text: "the first sample of a reply was played: `reply`, `at` the time it is heard"),
      EventContract(
        "replyFinished",
        text: "an utterance of a reply, or all of it, was played to its end: `reply`, `samples`, `ms` heard"),
      EventContract(
        "interrupted",
        text: """
          a reply was cut off: `reply`, `samples` and `ms` heard, `position` of the sample that would have been next; \
          `reply` 0 when none was audible
          """),
      EventContract(
        "ducked", text: "the reply makes room: `reply`, `samples` and `ms` heard before it began to"),
      EventContract("resumed", text: "the reply goes on: `reply`, `samples` and `ms` heard by then"),
      EventContract(
        "underrun", text: "sound came too late: `position` in the stream, `ms` of silence, `count` so far"),
      EventContract("late", text: "the device was served too late: `ms` it played nothing, `count` so far"),
      EventContract(
        "jump",
        text: "sound was too old, or its source stood still, and was left out: `ms` of it, `count` so far"),
      EventContract("deviceLost", text: "the device or its server is gone: `count` so far"),
      EventContract("deviceBack", text: "the device plays again: `ms` it was away"),
      EventContract(
        "deviceClock",
        text: """
          every ten seconds: `ppm` by which the device runs faster than its rate on this machine's clock, `drift` in ppm \
          by which the sound does against the device, `age` in ms of sound when it is given
          """),
    ],
    budget: 300, drive: .itself, asynchronousPaths: [AsynchronousPath(from: "in", to: "reference")],
    playsReplies: true,
    examples: [
      #"{ "type": "audio.play", "device": "pulse", "latency": 8, "prebuffer": 2 }"#,
      #"{ "type": "audio.play" }"#, #"{ "type": "audio.play", "duck": "lower", "lowering": -12 }"#,
    ],
    resolve: resolve)

  private static func resolve(_ resolution: inout Resolution) {
    guard DeviceName.resolved(&resolution) != nil else { return }
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
