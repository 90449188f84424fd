internal import MillraceAudio
public import MillraceCore

extension AudioCapture {
  public static let contract = NodeContract(
    "audio.capture", "records from a microphone",
    text: """
      The device is a PulseAudio or PipeWire source, an ALSA PCM, a WAV file played in real time, or silence; "millrace devices" lists \
      them. A device that disappears is reopened when it returns; the time between is a gap in the positions.
      """,
    outputs: [PortContract("out", AudioLimits.pcm, text: "the recorded audio")],
    parameters: [
      ParameterContract(
        "device", .string, default: "pulse", live: true,
        text: """
          the device to record from: pulse, pulse:NAME, alsa, alsa:NAME, file, or null (silence on the graph's clock, which cannot be \
          changed while the graph runs)
          """),
      ParameterContract("path", .path, text: "the WAV file of the device `file`"),
    ] + ParameterContract.optionalFormat + [
      ParameterContract(
        "frame", .number(AudioLimits.frame), unit: "ms", default: 10, text: "length of a packet"),
      ParameterContract(
        "interval", .number(1...100), unit: "ms", default: 5,
        text: "how often the device delivers audio; shorter lowers the latency and costs more CPU"),
      ParameterContract(
        "skew", .number(-1_000...1_000), unit: "ppm", default: 0,
        text: "how much faster than nominal the device `file` or `null` runs, to test clock drift"),
    ],
    events: [
      EventContract("deviceLost", text: "the device or its server disappeared: `count` so far"),
      EventContract("deviceBack", text: "the device records again: it was gone for `ms`"),
      EventContract(
        "overrun", text: "the graph did not keep up and audio was lost: `ms` lost, `count` so far"),
      EventContract(
        "deviceClock",
        text: "every ten seconds: `ppm` the device runs faster than nominal, measured on this machine's clock"
      ),
      EventContract("deviceChanged", text: "a `device` set while the graph runs records now"),
      EventContract(
        "error",
        text: """
          a `device` set while the graph runs cannot be recorded from, and everything continues as before: `text` says why and what to \
          do, `device`
          """),
    ],
    lane: .external, budget: 100, drive: .itself,
    examples: [
      #"{ "type": "audio.capture" }"#,
      #"{ "type": "audio.capture", "device": "alsa:hw:0", "rate": 16000, "frame": 20 }"#,
      #"{ "type": "audio.capture", "device": "file", "path": "microphone.wav" }"#,
    ],
    resolve: resolve)

  /// Most bytes of an event: room for an error that lists the available devices.
  private static let eventBytes = 2_048

  private static func resolve(_ resolution: inout Resolution) {
    guard DeviceName.resolved(&resolution) != nil else { return }
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: eventBytes)
    let values = resolution.parameters
    let (rate, channels, sample) = resolution.sourceFormat()
    let frames = AudioLimits.frames(milliseconds: values.number("frame"), rate: rate)
    resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: sample, frames: frames)
    resolution.pacing = .live
    resolution.latency = .samples(Int64(frames), rate: rate)
  }
}
