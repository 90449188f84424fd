internal import MillraceCore

/// Parameters that recording and sending films have in common.
extension ParameterContract {
  static let filmSoundBitrate = ParameterContract(
    "soundBitrate", .integer(6_000...510_000), unit: "bit/s",
    text: "of the sound; absent: 64,000 (AAC) or 32,000 (Opus) for each channel")
  static let filmKeyInterval = ParameterContract(
    "keyInterval", .number(100...60_000), unit: "ms", default: 2_000,
    text: "from key frame to key frame: where players can begin")
  static let filmThreads = ParameterContract(
    "threads", .integer(1...8), default: 1, text: "threads that encode pictures")
}

/// Events that recording and sending films have in common.
extension EventContract {
  static let filmLate = EventContract(
    "late",
    text: "what came too late, twice or damaged was left out: `pictures`, `samples`; at most once a second")
  static let filmMoved = EventContract(
    "moved",
    text: "sound was off its pictures and is in step again: `ms` of silence put in, or less than 0: left out")
}

/// The length of a parameter in milliseconds.
extension ParameterValues {
  func nanoseconds(_ name: String) -> Nanoseconds { Nanoseconds((number(name) * 1e6).rounded()) }
}

/// What the linked inputs of a node carry, compared with what a film can hold.
enum FilmCheck {
  static func pictures(_ coding: PictureCoding, _ resolution: inout Resolution) {
    guard case .video(let width, let height, _, _)? = resolution.input?.format,
      max(width, height) > coding.mostSide
    else { return }
    resolution.refuse(
      nil, "\(coding.name) has no pictures of \(width)x\(height); the longest side is \(coding.mostSide)",
      cure: "put video.scale before it")
  }

  static func sound(_ name: String, rates: [Int]?, _ resolution: inout Resolution) {
    guard let rate = resolution.inputs["audio"]?.format.rate, let rates, !rates.contains(rate) else { return }
    let nearest = rates.min { abs($0 - rate) < abs($1 - rate) } ?? rate
    resolution.refuse(
      nil, "\(name) has no sound of \(rate) Hz",
      cure: "put audio.resample (rate \(nearest)) before the input \"audio\"")
  }
}
