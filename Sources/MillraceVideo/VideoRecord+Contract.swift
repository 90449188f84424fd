internal import MillraceAudio
public import MillraceCore

extension VideoRecord {
  public static let contract = NodeContract(
    "video.record", "records pictures and audio to a video file: MP4, Matroska or WebM",
    text: """
      H.264 or VP8, with AAC or Opus. Pictures keep their timestamps, and audio stays in sync: gaps in it become silence. The file is \
      playable at any time up to the last second or two, even if the process is killed.
      """,
    inputs: [
      PortContract("in", .video(), text: "pictures to record"),
      PortContract(
        "audio", .pcm(rates: .range(AudioLimits.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "audio to record", required: false, holds: 1),
    ],
    parameters: [
      ParameterContract(
        "path", .path, required: true,
        text: "the file to write, in an existing folder; an existing file is replaced"),
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
        text: "the file is complete: `seconds`, `pictures`, `bytes`, `reason` is duration, ended or stopped"),
      EventContract("cancelled", text: "the file was removed"),
      .videoLate, .soundMoved,
      EventContract(
        "refused", text: "a write failed, which ends the recording: the first `seconds` are playable"
      ),
    ],
    lane: .bulk, budget: 100_000,
    examples: [
      #"{ "type": "video.record", "path": "call.mp4" }"#,
      #"{ "type": "video.record", "path": "screen.webm", "bitrate": 800000, "duration": 3600000 }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case began, progress, completed, cancelled, late, moved, refused
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    do throws(NodeProblem) { try RecordingPath.check(values.string("path"), medium: "pictures") } catch {
      resolution.refuse("path", error.text, cure: error.cure)
    }
    // Room for a long path.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 1_024)
    guard let format = VideoFileFormat(values) else {
      return resolution.refuse(
        "path", "\"\(values.string("path"))\" has no known video extension",
        cure: "use .mp4, .mkv or .webm, or set \"format\"")
    }
    let coding = Self.coding(values, format)
    if !format.codings.contains(coding) {
      resolution.refuse(
        "video", "\(format.name) does not support \(coding.name)",
        cure: "record as mkv, or set \"video\" to \"\(coding.other.rawValue)\"")
    }
    VideoInputCheck.pictures(coding, &resolution)
    VideoInputCheck.sound(
      "\(format.name) with \(format.sound.soundName)", rates: format.sound.rates, &resolution)
  }

  static func coding(_ values: ParameterValues, _ format: VideoFileFormat) -> PictureCoding {
    values.has("video") ? PictureCoding(rawValue: values.string("video")) ?? .h264 : format.codings[0]
  }
}

extension RecordingFormat {
  /// The name of the audio codec alone.
  var soundName: String { self == .opus ? "Opus" : "AAC" }
}
