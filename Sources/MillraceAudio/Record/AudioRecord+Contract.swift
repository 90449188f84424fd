public import MillraceCore

extension AudioRecord {
  /// Most inputs.
  static let most = 8

  public static let contract = NodeContract(
    "audio.record", "records several sounds into one file, aligned to the sample",
    text: """
      The file holds the inputs side by side or added up: WAV, FLAC, Ogg Opus, AAC or MP4. It can be played at every \
      moment up to the last second or so, also when the process was killed. What is silent is written as silence, so \
      that all inputs stay in step however their packets come.
      """,
    inputs: [
      PortContract(
        "in",
        .pcm(rates: .range(SoundBounds.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "one side of the call", copies: 1...most, holds: 1)
    ],
    parameters: [
      ParameterContract(
        "path", .path, required: true,
        text: "the file to write, in a folder that exists; replaced if it exists"),
      ParameterContract(
        "format", .choice(RecordingFormat.allCases.map(\.rawValue)),
        text:
          "kind of file; absent: by the path's ending .wav, .flac, .ogg, .opus, .aac, .m4a or .mp4"),
      ParameterContract(
        "layout", .choice(["channels", "mix"]), default: "channels",
        text: "channels: the inputs' channels one after the other; mix: all added up"),
      ParameterContract(
        "sample", SampleType.choice, text: "sample type of a WAV file; absent: as the first input"),
      ParameterContract(
        "bitrate", .integer(6_000...510_000), unit: "bit/s",
        text: "of the whole file, for Opus and AAC; absent: 32,000 and 64,000 for each channel"),
      ParameterContract(
        "patience", .number(0...60_000), unit: "ms", default: 2_000,
        text: "how long what came waits for what did not, before silence takes its place"),
      ParameterContract(
        "duration", .number(1...86_400_000), unit: "ms",
        text: "sound after which the file is complete; absent: no limit"),
      ParameterContract(
        "progress", .number(10...60_000), unit: "ms", default: 300,
        text: "sound one `progress` event stands for"),
      ParameterContract(
        "recording", .bool, default: true, live: true,
        text: "false: what is said from here on is left out; true: it is recorded again"),
      ParameterContract("stop", .bool, default: false, live: true, text: "true: the file is completed now"),
      ParameterContract("cancel", .bool, default: false, live: true, text: "true: the file is removed"),
    ],
    events: [
      EventContract("began", text: "the first sound is being written: `path`, `rate`, `channels`"),
      EventContract(
        "progress",
        text: "so much more is recorded: `seconds` in all, `peak` and `average` of it in dBFS, all channels"),
      EventContract(
        "completed",
        text: "the file is complete: `seconds`, `samples` per channel, `reason` duration, ended or stopped"),
      EventContract("cancelled", text: "the file was removed"),
      EventContract(
        "late",
        text: "sound came too late or again and was cut: `input`, `samples`; at most once a second"),
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
        "path", "\"\(resolution.parameters.string("path"))\" does not end like a sound file",
        cure: "end it in .wav, .flac, .opus, .aac or .m4a, or say the \"format\"")
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

  /// Compares what the inputs are with what the kind of file can hold.
  private static func checkFormat(_ format: RecordingFormat, _ resolution: inout Resolution) {
    let values = resolution.parameters
    if values.has("bitrate"), !format.isLossy {
      resolution.refuse(
        "bitrate", "\(format.name) keeps every sample and has no bit rate", cure: "leave it out")
    }
    if values.has("sample"), format != .wav {
      resolution.refuse(
        "sample", "only WAV has a choice of sample types, not \(format.name)", cure: "leave it out")
    }
    let formats = resolution.linkedInputs.compactMap { resolution.inputs[$0]?.format }
    let layout = RecordingLayout(formats, mixes: values.string("layout") == "mix")
    if layout.channels > format.mostChannels {
      resolution.refuse(
        nil,
        "the file would have \(layout.channels) channels; \(format.name) can have \(format.mostChannels)",
        cure: "put audio.convert (channels 1) before stereo inputs, or set \"layout\" to \"mix\"")
    }
    guard let rate = formats.first?.rate, let rates = format.rates, !rates.contains(rate) else { return }
    let nearest = rates.min { abs($0 - rate) < abs($1 - rate) } ?? rate
    resolution.refuse(
      nil, "\(format.name) has no rate of \(rate) Hz",
      cure: "put audio.resample (rate \(nearest)) before each input")
  }
}
