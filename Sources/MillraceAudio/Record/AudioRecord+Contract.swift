public import MillraceCore

extension AudioRecord {
  /// Maximum number of inputs.
  static let most = 8

  public static let contract = NodeContract(
    "audio.record", "records several audio streams into one file, aligned to the sample",
    text: """
      The file holds the inputs side by side or mixed: WAV, FLAC, Ogg Opus, AAC or MP4. It can be played at any time up to the \
      last second or so, even if the process was killed. Missing audio is written as silence, so that all inputs stay aligned \
      however their packets arrive.
      """,
    inputs: [
      PortContract(
        "in",
        .pcm(rates: .range(AudioLimits.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "one side of the call", copies: 1...most, holds: 1)
    ],
    parameters: [
      ParameterContract(
        "path", .path, required: true,
        text: "the file to write, in an existing directory; replaced if it exists"),
      ParameterContract(
        "format", .choice(RecordingFormat.allCases.map(\.rawValue)),
        text:
          "file format; default: by the extension .wav, .flac, .ogg, .opus, .aac, .m4a or .mp4"),
      ParameterContract(
        "layout", .choice(["channels", "mix"]), default: "channels",
        text: "channels: the inputs' channels side by side; mix: all inputs added"),
      ParameterContract(
        "sample", SampleType.choice, text: "sample type of a WAV file; default: as the first input"),
      ParameterContract(
        "bitrate", .integer(6_000...510_000), unit: "bit/s",
        text: "bit rate of the whole file, for Opus and AAC; default: 32,000 and 64,000 per channel"),
      ParameterContract(
        "patience", .number(0...60_000), unit: "ms", default: 2_000,
        text: "how long to wait for missing audio before silence replaces it"),
      ParameterContract(
        "duration", .number(1...86_400_000), unit: "ms",
        text: "audio after which the file is complete; default: no limit"),
      ParameterContract(
        "progress", .number(10...60_000), unit: "ms", default: 300,
        text: "audio per `progress` event"),
      ParameterContract(
        "recording", .bool, default: true, live: true,
        text: "false: recording is paused; true: it is resumed"),
      ParameterContract("stop", .bool, default: false, live: true, text: "true: the file is completed now"),
      ParameterContract("cancel", .bool, default: false, live: true, text: "true: the file is removed"),
    ],
    events: [
      EventContract("began", text: "recording has begun: `path`, `rate`, `channels`"),
      EventContract(
        "progress",
        text:
          "another interval was recorded: `seconds` in total, `peak` and `average` of the interval in dBFS over all channels"
      ),
      EventContract(
        "completed",
        text: "the file is complete: `seconds`, `samples` per channel, `reason` duration, ended or stopped"),
      EventContract("cancelled", text: "the file was removed"),
      EventContract(
        "late",
        text: "audio arrived too late or twice and was dropped: `input`, `samples`; at most once a second"),
    ],
    lane: .bulk, budget: 5_000,
    examples: [
      #"{ "type": "audio.record", "path": "call.wav" }"#,
      #"{ "type": "audio.record", "path": "call.opus", "layout": "mix", "bitrate": 32000, "duration": 3600000 }"#,
    ],
    resolve: resolve)

  private static func resolve(_ resolution: inout Resolution) {
    do throws(NodeProblem) { try RecordingPath.check(resolution.parameters.string("path")) } catch {
      resolution.refuse("path", error.text, cure: error.cure)
    }
    checkRates(&resolution)
    // Room for a long path.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 1_024)
    guard let format = RecordingFormat(resolution.parameters) else {
      return resolution.refuse(
        "path", "\"\(resolution.parameters.string("path"))\" has no known audio file extension",
        cure: "use .wav, .flac, .opus, .aac or .m4a, or set \"format\"")
    }
    checkFormat(format, &resolution)
  }

  private static func checkRates(_ resolution: inout Resolution) {
    var first: (name: String, format: Format)?
    for name in resolution.linkedInputs {
      guard let format = resolution.inputs[name]?.format else { continue }
      let known = first ?? (name, format)
      first = known
      guard format.rate != known.format.rate else { continue }
      resolution.refuse(
        nil, "\(name) carries \(format) but \(known.name) carries \(known.format)",
        cure: "put audio.resample (rate \(known.format.rate ?? 0)) before \(name)")
    }
  }

  /// Checks the inputs against what the file format supports.
  private static func checkFormat(_ format: RecordingFormat, _ resolution: inout Resolution) {
    let values = resolution.parameters
    if values.has("bitrate"), !format.isLossy {
      resolution.refuse(
        "bitrate", "\(format.name) is lossless and has no bit rate", cure: "remove it")
    }
    if values.has("sample"), format != .wav {
      resolution.refuse(
        "sample", "\(format.name) has no choice of sample types, only WAV has", cure: "remove it")
    }
    let formats = resolution.linkedInputs.compactMap { resolution.inputs[$0]?.format }
    let layout = RecordingLayout(formats, mixes: values.string("layout") == "mix")
    if layout.channels > format.mostChannels {
      resolution.refuse(
        nil,
        "the file would have \(layout.channels) channels; \(format.name) supports \(format.mostChannels)",
        cure: "put audio.convert (channels 1) before stereo inputs, or set \"layout\" to \"mix\"")
    }
    guard let rate = formats.first?.rate, let rates = format.rates, !rates.contains(rate) else { return }
    let nearest = rates.min { abs($0 - rate) < abs($1 - rate) } ?? rate
    resolution.refuse(
      nil, "\(format.name) does not support \(rate) Hz",
      cure: "put audio.resample (rate \(nearest)) before each input")
  }
}
