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
  static func pictures(_ coding: PictureCoding, _ resolution: inout Resolution) {
    guard case .video(let width, let height, _, _)? = resolution.input?.format,
      max(width, height) > coding.longestSide
    else { return }
    resolution.refuse(
      nil,
      "\(coding.name) does not support pictures of \(width)x\(height); the longest side is \(coding.longestSide)",
      cure: "add video.scale before it")
  }

  static func sound(_ name: String, rates: [Int]?, _ resolution: inout Resolution) {
    guard let rate = resolution.inputs["audio"]?.format.rate, let rates, !rates.contains(rate) else { return }
    let nearest = rates.min { abs($0 - rate) < abs($1 - rate) } ?? rate
    resolution.refuse(
      nil, "\(name) does not support audio of \(rate) Hz",
      cure: "add audio.resample (rate \(nearest)) before the input \"audio\"")
  }
}
