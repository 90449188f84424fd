internal import MillraceAudio
public import MillraceCore

extension VideoRecord {
  public static let contract = NodeContract(
    "video.record", "records pictures and audio to a video file: MP4, Matroska or WebM",
    text: """
      H.264 or VP8, with AAC or Opus. Pictures keep their timestamps, and audio stays in sync: gaps in it become silence. The file is \
      playable at any time up to the last second or two, even if the process is killed. Recordings can be begun and ended at will while \
      the graph runs: set `path`.
      """,
    inputs: [
      PortContract("in", .video(), text: "pictures to record", holds: 1),
      PortContract(
        "audio", .pcm(rates: .range(AudioLimits.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "audio to record", required: false, holds: 1),
    ],
    parameters: [
      ParameterContract(
        "path", .path, required: true, live: true,
        text: """
          the file to write, in an existing folder; an existing file is replaced; empty: nothing is recorded until a path is set
          """),
      ParameterContract(
        "format", .choice(VideoFileFormat.allCases.map(\.rawValue)),
        text: "container format; default: from the extension .mp4, .mkv or .webm"),
      ParameterContract(
        "video", .choice(PictureCoding.allCases.map(\.rawValue)),
        text: "video codec; default: h264 in MP4 and Matroska, vp8 in WebM"),
      ParameterContract(
        "bitrate", .integer(16_000...100_000_000), unit: "bit/s",
        text: "video bitrate; default: constant quality"),
      .soundBitrate, .keyInterval, .encoderThreads,
      ParameterContract(
        "patience", .number(0...60_000), unit: "ms", default: 2_000,
        text: "longest wait of pictures for audio, and of audio for pictures"),
      ParameterContract(
        "duration", .number(100...86_400_000), unit: "ms",
        text: "length at which the recording is complete; default: no limit"),
      ParameterContract(
        "progress", .number(100...60_000), unit: "ms", default: 1_000,
        text: "length of video between `progress` events"),
      ParameterContract("stop", .bool, default: false, live: true, text: "completes the file now"),
      ParameterContract(
        "cancel", .bool, default: false, live: true, text: "cancels the recording and removes the file"),
    ],
    events: [
      EventContract(
        "began",
        text:
          "recording starts: `path`, `width` and `height` in the file, and audio `rate`"
      ),
      EventContract("progress", text: "progress: total `seconds`, `pictures` and `bytes`"),
      EventContract(
        "completed",
        text: """
          the file is complete: `seconds`, `pictures`, `samples` per channel if it has audio, `bytes`, `reason` duration, ended, \
          stopped or replaced (by another path), `path`
          """),
      EventContract("cancelled", text: "the file was removed"),
      .videoLate, .soundMoved,
      EventContract(
        "refused", text: "a write failed, which ends the recording: the first `seconds` are playable"
      ),
      EventContract(
        "error",
        text: """
          a `path` set while the graph runs cannot be recorded to, and everything continues as before: `text` says why and what to do, \
          `path`
          """),
    ],
    lane: .bulk, budget: 100_000,
    examples: [
      #"{ "type": "video.record", "path": "call.mp4" }"#,
      #"{ "type": "video.record", "path": "screen.webm", "bitrate": 800000, "duration": 3600000 }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case began, progress, completed, cancelled, late, moved, refused, error
  }

  /// Most bytes of an event: room for a long path, twice.
  private static let eventBytes = 2_048

  private static func resolve(_ resolution: inout Resolution) {
    let (values, path) = (resolution.parameters, resolution.parameters.string("path"))
    if !path.isEmpty {
      do throws(NodeProblem) { try RecordingPath.check(path, medium: "pictures") } catch {
        resolution.refuse("path", error.text, cure: error.cure)
      }
    }
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: eventBytes)
    guard let format = VideoFileFormat(values) else {
      // Without a path the format is not known yet.
      if !path.isEmpty { resolution.refuse(VideoRecordCheck.unknownExtension(path)) }
      return
    }
    let coding = values.has("video") ? PictureCoding(rawValue: values.string("video")) : nil
    let problems = VideoRecordCheck.problems(
      format, coding ?? format.codings[0], pictures: resolution.input?.format,
      sound: resolution.inputs["audio"]?.format)
    for problem in problems { resolution.refuse(problem) }
  }
}

extension RecordingFormat {
  /// The name of the audio codec alone.
  var soundName: String { self == .opus ? "Opus" : "AAC" }
}
