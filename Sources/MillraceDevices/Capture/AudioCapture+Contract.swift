internal import MillraceAudio
public import MillraceCore

extension AudioCapture {
  public static let contract = NodeContract(
    "audio.capture", "records from a microphone",
    text: """
      The device is a sound server's (PulseAudio, PipeWire), ALSA's, a WAV file at the pace of a device, or silence; \
      "millrace devices" lists them. One that goes away comes back by itself; the time between is a gap in the positions.
      """,
    outputs: [PortContract("out", AudioLimits.pcm, text: "what the microphone hears")],
    parameters: [
      ParameterContract(
        "device", .string, default: "pulse",
        text: "where to record: pulse, pulse:NAME, alsa, alsa:NAME, file, null"),
      ParameterContract("path", .path, text: "the WAV file of the device `file`"),
    ] + ParameterContract.optionalFormat + [
      ParameterContract(
        "frame", .number(AudioLimits.frame), unit: "ms", default: 10, text: "sound in one packet"),
      ParameterContract(
        "interval", .number(1...100), unit: "ms", default: 5,
        text: "how often the device hands sound over; shorter is earlier and costs more"),
      ParameterContract(
        "skew", .number(-1_000...1_000), unit: "ppm", default: 0,
        text: "how much faster than its rate the device `file` or `null` runs, to try what drifts apart"),
    ],
    events: [
      EventContract("deviceLost", text: "the device or its server is gone: `count` so far"),
      EventContract("deviceBack", text: "the device records again: `ms` it was away"),
      EventContract(
        "overrun", text: "the graph took too little and sound was lost: `ms` of it, `count` so far"),
      EventContract(
        "deviceClock",
        text: "every ten seconds: `ppm` by which the device runs faster than its rate on this machine's clock"
      ),
    ],
    lane: .external, budget: 100, drive: .itself,
    examples: [
      #"{ "type": "audio.capture" }"#,
      #"{ "type": "audio.capture", "device": "alsa:hw:0", "rate": 16000, "frame": 20 }"#,
      #"{ "type": "audio.capture", "device": "file", "path": "microphone.wav" }"#,
    ],
    resolve: resolve)

  private static func resolve(_ resolution: inout Resolution) {
    guard DeviceName.resolved(&resolution) != nil else { return }
    let values = resolution.parameters
    let (rate, channels, sample) = resolution.sourceFormat()
    let frames = AudioLimits.frames(milliseconds: values.number("frame"), rate: rate)
    resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: sample, frames: frames)
    resolution.pacing = .live
    resolution.latency = .samples(Int64(frames), rate: rate)
  }
}
