internal import MillraceAudio
internal import MillraceCore

/// Parameters shared by recording and streaming.
extension ParameterContract {
  static let soundBitrate = ParameterContract(
    "soundBitrate", .integer(6_000...510_000), unit: "bit/s",
    text: "audio bitrate; default: 64,000 (AAC) or 32,000 (Opus) per channel")
  static let keyInterval = ParameterContract(
    "keyInterval", .number(100...60_000), unit: "ms", default: 2_000,
    text: "interval between key frames, where players can start")
  static let encoderThreads = ParameterContract(
    "threads", .integer(1...8), default: 1, text: "encoding threads")
}

/// Events shared by recording and streaming.
extension EventContract {
  static let videoLate = EventContract(
    "late",
    text: "late, duplicate or damaged input was dropped: `pictures`, `samples`; at most once a second")
  static let soundMoved = EventContract(
    "moved",
    text: "audio was out of sync and was corrected: `ms` of silence inserted, or audio removed if negative")
}

/// A parameter in milliseconds, as nanoseconds.
extension ParameterValues {
  func nanoseconds(_ name: String) -> Nanoseconds { Nanoseconds((number(name) * 1e6).rounded()) }
}

/// Checks a node's linked inputs against what the formats support.
enum VideoInputCheck {
  /// The problem of pictures that are too large for a codec.
  static func pictures(_ coding: PictureCoding, _ format: Format?) -> NodeProblem? {
    guard case .video(let width, let height, _, _)? = format, max(width, height) > coding.longestSide else {
      return nil
    }
    return NodeProblem(
      "\(coding.name) does not support pictures of \(width)x\(height); the longest side is \(coding.longestSide)",
      cure: "add video.scale before it")
  }

  /// The problem of audio at a rate that a format does not support.
  static func sound(_ name: String, rates: [Int]?, _ format: Format?) -> NodeProblem? {
    guard let rate = format?.rate, let rates, !rates.contains(rate) else { return nil }
    let nearest = rates.min { abs($0 - rate) < abs($1 - rate) } ?? rate
    return NodeProblem(
      "\(name) does not support audio of \(rate) Hz",
      cure: "add audio.resample (rate \(nearest)) before the input \"audio\"")
  }
}

/// Checks a recording against what its file format supports, before the graph starts and when a path is set while it runs.
enum VideoRecordCheck {
  /// The problem of a path without a known extension.
  static func unknownExtension(_ path: String) -> NodeProblem {
    NodeProblem(
      "\"\(path)\" has no known video extension", parameter: "path",
      cure: "use .mp4, .mkv or .webm, or set \"format\"")
  }

  /// What the format does not support.
  static func problems(
    _ format: VideoFileFormat, _ coding: PictureCoding, pictures: Format?, sound: Format?
  ) -> [NodeProblem] {
    var problems: [NodeProblem] = []
    if !format.codings.contains(coding) {
      problems.append(
        NodeProblem(
          "\(format.name) does not support \(coding.name)", parameter: "video",
          cure: "record as mkv, or set \"video\" to \"\(coding.other.rawValue)\""))
    }
    let name = "\(format.name) with \(format.sound.soundName)"
    let inputs = [
      VideoInputCheck.pictures(coding, pictures),
      VideoInputCheck.sound(name, rates: format.sound.rates, sound),
    ]
    return problems + inputs.compactMap { $0 }
  }
}

extension Resolution {
  mutating func refuse(_ problem: NodeProblem) {
    refuse(problem.parameter, problem.text, cure: problem.cure)
  }
}
