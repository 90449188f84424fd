import MillraceCore

/// Contracts with the names, ports and parameters of the standard nodes and no code behind them.
///
/// What a file holds is read off its name, so that graphs can be checked without files: `speech.wav` is 48 kHz mono, `…16k…` is
/// 16 kHz, `…stereo…` has two channels, `…f32…` floats, and `…missing…` does not exist.
enum TestCatalogue {
  static let contracts: [String: NodeContract] = Dictionary(
    uniqueKeysWithValues: all.map { ($0.type, $0) })

  private static let all: [NodeContract] = [
    audioRead, audioCapture, audioPlay, audioWrite, audioTone, audioResample, audioConvert, audioMix,
    audioGain, audioLevel,
    echoCancel, opusEncode, opusDecode, oggRead, oggWrite, tee, null, eventLog, textPrint, processPipe,
    videoRead,
  ]

  private static let sound = PortContract("in", .pcm(), text: "sound")
  private static let soundOut = PortContract("out", .pcm(), text: "the sound")
  private static let path = ParameterContract("path", .path, required: true, text: "The file.")
  private static let pace = ParameterContract("pace", .bool, default: false, text: "in time with the clock")

  private static func shape(of path: String) -> OutputShape {
    let rate = path.contains("16k") ? 16_000 : path.contains("44k") ? 44_100 : 48_000
    return .pcm(
      rate: rate, channels: path.contains("stereo") ? 2 : 1, sample: path.contains("f32") ? .f32 : .s16,
      frames: rate / 50)
  }

  static let audioRead = NodeContract(
    "audio.read", "reads a sound file", outputs: [soundOut],
    parameters: [
      path, pace, ParameterContract("loop", .bool, default: false, text: "begin again at the end"),
      ParameterContract("start", .number(0...86_400), unit: "s", default: 0, text: "where to begin"),
    ],
    lane: .bulk, drive: .itself,
    resolve: { resolution in
      let path = resolution.parameters.string("path")
      if path.contains("missing") {
        resolution.refuse("path", "cannot open \"\(path)\": there is no such file", cure: "check the path")
        return
      }
      resolution.outputs["out"] = shape(of: path)
      resolution.pacing = resolution.parameters.bool("pace") ? .paced : .waits
    })

  static let audioCapture = NodeContract(
    "audio.capture", "hears a microphone", outputs: [soundOut],
    parameters: [ParameterContract("device", .string, default: "default", text: "the device")],
    lane: .external, drive: .itself, followsVirtualClock: false,
    resolve: { resolution in
      resolution.outputs["out"] = shape(of: "")
      resolution.pacing = .live
    })

  static let audioPlay = NodeContract(
    "audio.play", "plays", inputs: [sound],
    outputs: [PortContract("reference", .pcm(), text: "what was really played", required: false)],
    lane: .external, asynchronousPaths: [AsynchronousPath(from: "in", to: "reference")],
    followsVirtualClock: false,
    resolve: { resolution in
      resolution.outputs["reference"] = resolution.input ?? shape(of: "")
      resolution.pacing = .live
    })

  static let audioWrite = NodeContract(
    "audio.write", "writes a WAV file", inputs: [sound],
    parameters: [
      path,
      ParameterContract("sample", .choice(["s16", "f32"]), default: "s16", text: "how samples are stored"),
    ],
    lane: .bulk, resolve: { _ in })

  static let audioTone = NodeContract(
    "audio.tone", "makes a signal", outputs: [soundOut],
    parameters: [
      ParameterContract(
        "kind", .choice(["sine", "sweep", "noise", "silence"]), default: "sine", text: "the signal"),
      ParameterContract("frequency", .number(0.01...96_000), unit: "Hz", default: 1_000, text: "of the sine"),
      ParameterContract("rate", .integer(8_000...192_000), unit: "Hz", default: 48_000, text: "sample rate"),
      ParameterContract("channels", .integer(1...8), default: 1, text: "channels"),
      ParameterContract(
        "level", .number(-120...0), unit: "dB", default: -20, text: "peak against full scale"),
      ParameterContract("pace", .bool, default: true, text: "in time with the clock"),
    ],
    budget: 300, drive: .itself,
    resolve: { resolution in
      let rate = resolution.parameters.integer("rate")
      if resolution.parameters.number("frequency") * 2 > Double(rate) {
        resolution.refuse(
          "frequency", "a tone above half of the sample rate cannot be made", cure: "raise \"rate\"")
      }
      resolution.outputs["out"] = .pcm(
        rate: rate, channels: resolution.parameters.integer("channels"), sample: .s16, frames: rate / 50)
      resolution.pacing = resolution.parameters.bool("pace") ? .paced : .waits
    })

  static let audioResample = NodeContract(
    "audio.resample", "changes the sample rate", inputs: [sound], outputs: [soundOut],
    parameters: [
      ParameterContract(
        "rate", .integer(8_000...192_000), unit: "Hz", required: true, text: "sample rate to make"),
      ParameterContract(
        "quality", .choice(["low", "voice", "high"]), default: "voice", text: "how sharp the filter is"),
    ],
    budget: 300,
    resolve: { resolution in
      guard let input = resolution.input, case .pcm(_, let channels, let sample) = input.format else {
        return
      }
      let rate = resolution.parameters.integer("rate")
      resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: sample, frames: rate / 50)
      resolution.latency = .milliseconds(2)
    })

  static let audioConvert = NodeContract(
    "audio.convert", "changes sample type, channels and packet length", inputs: [sound], outputs: [soundOut],
    parameters: [
      ParameterContract("sample", .choice(["s16", "f32"]), text: "sample type"),
      ParameterContract("channels", .integer(1...8), text: "channels"),
      ParameterContract("matrix", .list(of: .number(-8...8), count: 1...64), text: "factors"),
      ParameterContract("frame", .number(1...1_000), unit: "ms", text: "packet length"),
    ],
    budget: 150,
    resolve: { resolution in
      guard let input = resolution.input, case .pcm(let rate, let channels, let sample) = input.format else {
        return
      }
      let values = resolution.parameters
      let frames =
        values.has("frame") ? Int(values.number("frame") * Double(rate) / 1_000) : input.frames ?? rate / 50
      resolution.outputs["out"] = .pcm(
        rate: rate, channels: values.has("channels") ? values.integer("channels") : channels,
        sample: values.has("sample") ? SampleType(rawValue: values.string("sample")) ?? sample : sample,
        frames: frames)
    })

  static let audioMix = NodeContract(
    "audio.mix", "adds sounds", inputs: [PortContract("in", .pcm(), text: "a sound to add", copies: 1...8)],
    outputs: [soundOut],
    parameters: [
      ParameterContract(
        "gains", .list(of: .number(-120...60), count: 1...8), unit: "dB", text: "gains of the inputs")
    ],
    budget: 300, drive: .allInputs)

  static let audioGain = NodeContract(
    "audio.gain", "makes sound louder or quieter", inputs: [sound], outputs: [soundOut],
    parameters: [
      ParameterContract("gain", .number(-120...60), unit: "dB", default: 0, live: true, text: "the gain"),
      ParameterContract("ramp", .number(0...10_000), unit: "ms", default: 20, text: "time a change takes"),
    ],
    budget: 100)

  static let audioLevel = NodeContract(
    "audio.level", "measures", inputs: [sound],
    outputs: [PortContract("out", .pcm(), text: "the same packets", required: false)],
    parameters: [
      ParameterContract("window", .number(10...60_000), unit: "ms", default: 1_000, text: "window")
    ],
    events: [EventContract("level", text: "a window is full")], budget: 100)

  static let echoCancel = NodeContract(
    "audio.echoCancel", "takes the loudspeaker out of the microphone",
    inputs: [
      PortContract(
        "near", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "the microphone"),
      PortContract(
        "reference", .pcm(rates: .only(16_000), channels: .only(1)), text: "what was played", required: false,
        drives: false),
    ],
    outputs: [soundOut], budget: 400,
    resolve: { resolution in
      if let near = resolution.inputs["near"] { resolution.outputs["out"] = near }
    })

  private static let opusRates = ValueSet.oneOf([8_000, 12_000, 16_000, 24_000, 48_000])

  static let opusEncode = NodeContract(
    "opus.encode", "codes PCM as Opus",
    inputs: [PortContract("in", .pcm(rates: opusRates, channels: .range(1...2)), text: "samples")],
    outputs: [
      PortContract("out", .opus(rates: opusRates, channels: .range(1...2)), text: "one packet a frame")
    ],
    parameters: [
      ParameterContract(
        "bitrate", .integer(6_000...510_000), unit: "bit/s", default: 24_000, live: true, text: "rate"),
      ParameterContract("complexity", .integer(0...10), default: 5, live: true, text: "effort"),
      ParameterContract(
        "application", .choice(["voip", "audio", "lowdelay"]), default: "voip", text: "purpose"),
      ParameterContract("frame", .number(2.5...60), unit: "ms", default: 20, text: "packet length"),
      ParameterContract("dtx", .bool, default: false, text: "send next to nothing in silence"),
    ],
    resolve: { resolution in
      let frame = resolution.parameters.number("frame")
      guard [2.5, 5, 10, 20, 40, 60].contains(frame) else {
        return resolution.refuse(
          "frame", "an Opus packet cannot last \(frame) ms", cure: "use 2.5, 5, 10, 20, 40 or 60")
      }
      guard let input = resolution.input, case .pcm(let rate, let channels, _) = input.format else { return }
      resolution.outputs["out"] = OutputShape(
        .opus(rate: rate, channels: channels), packetDuration: Nanoseconds(frame * 1e6), packetBytes: 1_276)
    })

  static let opusDecode = NodeContract(
    "opus.decode", "decodes Opus",
    inputs: [PortContract("in", .opus(rates: opusRates), text: "Opus packets")],
    outputs: [soundOut],
    parameters: [ParameterContract("rate", .integer(8_000...48_000), unit: "Hz", text: "rate of the output")],
    budget: 400,
    resolve: { resolution in
      guard let input = resolution.input, case .opus(let rate, let channels) = input.format else { return }
      let values = resolution.parameters
      let chosen = values.has("rate") ? values.integer("rate") : rate
      resolution.outputs["out"] = .pcm(rate: chosen, channels: channels, sample: .s16, frames: chosen / 50)
    })

  static let oggRead = NodeContract(
    "ogg.read", "reads an Ogg Opus file",
    outputs: [PortContract("out", .opus(rates: opusRates), text: "the packets")], parameters: [path, pace],
    lane: .bulk, drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = OutputShape(
        .opus(rate: 48_000, channels: 1), packetDuration: .milliseconds(20), packetBytes: 1_276)
    })

  static let oggWrite = NodeContract(
    "ogg.write", "writes an Ogg Opus file",
    inputs: [PortContract("in", .opus(rates: opusRates), text: "Opus packets")],
    parameters: [
      path, ParameterContract("tags", .list(of: .string, count: 0...4), default: [], text: "remarks"),
    ],
    lane: .bulk, resolve: { _ in })

  static let tee = NodeContract(
    "flow.tee", "gives each packet to several", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same", required: false, copies: 2...4)], budget: 20,
    resolve: { resolution in
      guard let input = resolution.input else { return }
      for number in 1...4 { resolution.outputs["out\(number)"] = input }
    })

  static let null = NodeContract(
    "flow.null", "takes anything away", inputs: [PortContract("in", .any, text: "anything")], budget: 20,
    resolve: { _ in })

  static let eventLog = NodeContract(
    "event.log", "writes events as JSON lines",
    inputs: [PortContract("in", .kind(.event), text: "events", copies: 1...16)], parameters: [path],
    lane: .bulk,
    resolve: { _ in })

  static let textPrint = NodeContract(
    "text.print", "prints text", inputs: [PortContract("in", .kind(.text).or(.kind(.event)), text: "text")],
    lane: .bulk,
    resolve: { _ in })

  /// Its output is not computed in the call that took the input.
  static let processPipe = NodeContract(
    "process.pipe", "any program as a node",
    inputs: [PortContract("in", .pcm(samples: [.s16]), text: "what the program reads", required: false)],
    outputs: [PortContract("out", .pcm(), text: "what it writes", required: false)],
    parameters: [
      ParameterContract(
        "command", .list(of: .string, count: 1...64), required: true, text: "The program and its words."),
      ParameterContract(
        "rate", .integer(8_000...192_000), unit: "Hz", default: 16_000, text: "rate it writes at"),
    ],
    lane: .external, asynchronousPaths: [AsynchronousPath(from: "in", to: "out")], followsVirtualClock: false,
    resolve: { resolution in
      let rate = resolution.parameters.integer("rate")
      resolution.outputs["out"] = .pcm(rate: rate, channels: 1, sample: .s16, frames: rate / 50)
    })

  static let videoRead = NodeContract(
    "video.read", "reads pictures", outputs: [PortContract("out", .kind(.video), text: "pictures")],
    parameters: [path, pace], lane: .bulk, drive: .itself,
    resolve: { resolution in
      resolution.outputs["out"] = OutputShape(
        .video(width: 640, height: 480, pixel: .i420, rate: FrameRate(25)), packetDuration: .milliseconds(40),
        packetBytes: 460_800)
      resolution.pacing = resolution.parameters.bool("pace") ? .paced : .waits
    })
}
