public import MillraceCore

extension AudioRecord {
  /// Maximum number of inputs.
  static let most = 8

  public static let contract = NodeContract(
    "audio.record", "records several audio streams into one file, aligned to the sample",
    text: """
      The file holds the inputs side by side or mixed: WAV, FLAC, Ogg Opus, AAC or MP4. It can be played at any time up to the \
      last second or so, even if the process was killed. Missing audio is written as silence, so that all inputs stay aligned \
      however their packets arrive. Recordings can be begun and ended at will while the graph runs: set `path`.
      """,
    inputs: [
      PortContract(
        "in",
        .pcm(rates: .range(AudioLimits.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "one side of the call", copies: 1...most, holds: 1)
    ],
    parameters: [
      ParameterContract(
        "path", .path, required: true, live: true,
        text:
          "the file to write, in an existing directory; replaced if it exists; empty: nothing is recorded until a path is set"
      ),
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
        text: "audio after which a file is complete; default: no limit"),
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
        text: """
          the file is complete: `seconds`, `samples` per channel, `bytes`, `reason` duration, ended, stopped or replaced (by another \
          path), `path`
          """),
      EventContract("cancelled", text: "the file was removed"),
      EventContract(
        "late",
        text: "audio arrived too late or twice and was dropped: `input`, `samples`; at most once a second"),
      EventContract(
        "error",
        text: """
          a `path` set while the graph runs cannot be recorded to, and everything continues as before: `text` says why and what to do, \
          `path`; so does the last one when the node is restarted after a fault, which then waits for the next path
          """),
    ],
    lane: .bulk, budget: 5_000,
    examples: [
      #"{ "type": "audio.record", "path": "call.wav" }"#,
      #"{ "type": "audio.record", "path": "call.opus", "layout": "mix", "bitrate": 32000, "duration": 3600000 }"#,
    ],
    resolve: resolve)

  /// Most bytes of an event: room for a long path, twice.
  private static let eventBytes = 2_048

  private static func resolve(_ resolution: inout Resolution) {
    let (values, path) = (resolution.parameters, resolution.parameters.string("path"))
    if !path.isEmpty {
      do throws(NodeProblem) { try RecordingPath.check(path) } catch { resolution.refuse(error) }
    }
    checkRates(&resolution)
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: eventBytes)
    guard let format = RecordingFormat(values) else {
      // Without a path the format is not known yet.
      if !path.isEmpty { resolution.refuse(RecordingCheck.unknownExtension(path)) }
      return
    }
    let formats = resolution.linkedInputs.compactMap { resolution.inputs[$0]?.format }
    for problem in RecordingCheck.problems(format, RecordingCheck.Content(formats, values)) {
      resolution.refuse(problem)
    }
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
}

extension Resolution {
  fileprivate mutating func refuse(_ problem: NodeProblem) {
    refuse(problem.parameter, problem.text, cure: problem.cure)
  }
}
