internal import MillraceAudio
public import MillraceCore

extension VideoRecord {
  public static let contract = NodeContract(
    "video.record", "records pictures and sound into a film: MP4, Matroska or WebM",
    text: """
      H.264 or VP8, with AAC or Opus. Pictures go by their times, and sound stays with them: what is missing of it is silence. The file \
      can be played at every moment up to the last second or two, also when the process was killed.
      """,
    inputs: [
      PortContract("in", .video(), text: "the pictures"),
      PortContract(
        "audio", .pcm(rates: .range(AudioLimits.rates), channels: .range(1...2), samples: [.s16, .f32]),
        text: "the sound", required: false, holds: 1),
    ],
    parameters: [
      ParameterContract(
        "path", .path, required: true,
        text: "the file to write, in a folder that exists; replaced if it exists"),
      ParameterContract(
        "format", .choice(FilmFormat.allCases.map(\.rawValue)),
        text: "kind of file; absent: by the path's ending .mp4, .mkv or .webm"),
      ParameterContract(
        "video", .choice(PictureCoding.allCases.map(\.rawValue)),
        text: "how pictures are coded; absent: h264 in MP4 and Matroska, vp8 in WebM"),
      ParameterContract(
        "bitrate", .integer(16_000...100_000_000), unit: "bit/s",
        text: "of the pictures; absent: as much as good pictures take"),
      .filmSoundBitrate, .filmKeyInterval, .filmThreads,
      ParameterContract(
        "patience", .number(0...60_000), unit: "ms", default: 2_000,
        text: "how long one of pictures and sound waits for the other, before it goes on without"),
      ParameterContract(
        "duration", .number(100...86_400_000), unit: "ms",
        text: "length at which the film is complete; absent: no limit"),
      ParameterContract(
        "progress", .number(100...60_000), unit: "ms", default: 1_000,
        text: "film one `progress` event stands for"),
      ParameterContract("stop", .bool, default: false, live: true, text: "true: the file is completed now"),
      ParameterContract("cancel", .bool, default: false, live: true, text: "true: the file is removed"),
    ],
    events: [
      EventContract(
        "began",
        text:
          "the first picture or sound is being written: `path`, `width` and `height` in the file, and `rate` of sound"
      ),
      EventContract("progress", text: "so much is recorded: `seconds`, `pictures` and `bytes` in all"),
      EventContract(
        "completed",
        text: "the file is complete: `seconds`, `pictures`, `bytes`, `reason` duration, ended or stopped"),
      EventContract("cancelled", text: "the file was removed"),
      .filmLate, .filmMoved,
      EventContract(
        "refused", text: "the system refused a write, which ends the film: the `seconds` before can be played"
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
    guard let format = FilmFormat(values) else {
      return resolution.refuse(
        "path", "\"\(values.string("path"))\" does not end like a film",
        cure: "end it in .mp4, .mkv or .webm, or say the \"format\"")
    }
    let coding = Self.coding(values, format)
    if !format.codings.contains(coding) {
      resolution.refuse(
        "video", "\(format.name) has no pictures of \(coding.name)",
        cure: "record as mkv, or set \"video\" to \"\(coding.other.rawValue)\"")
    }
    FilmCheck.pictures(coding, &resolution)
    FilmCheck.sound("\(format.name) with \(format.sound.soundName)", rates: format.sound.rates, &resolution)
  }

  static func coding(_ values: ParameterValues, _ format: FilmFormat) -> PictureCoding {
    values.has("video") ? PictureCoding(rawValue: values.string("video")) ?? .h264 : format.codings[0]
  }
}

extension RecordingFormat {
  /// The name of the sound alone, without its container.
  var soundName: String { self == .opus ? "Opus" : "AAC" }
}
