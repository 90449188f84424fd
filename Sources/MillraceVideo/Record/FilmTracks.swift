internal import MillraceAudio
internal import MillraceCore

/// Encoded pictures and sound on their way into one stream, in the order of their times.
///
/// A packet may leave when the other track is known as far, has ended, or has been waited for long enough.
struct FilmTracks {
  private struct Lane {
    var waiting: [EncodedPacket] = []
    /// Up to when everything of it was given; nil: nothing yet.
    var front: Nanoseconds?
    var isRunning: Bool
  }

  private var lanes: [Lane]
  private var patience: Patience
  /// Time of the first packet that left: the film's 0.
  private(set) var origin: Nanoseconds?

  init(sound: Bool, patience: Nanoseconds) {
    lanes = [Lane(isRunning: true), Lane(isRunning: sound)]
    self.patience = Patience(patience)
  }

  // MARK: In

  mutating func put(_ packet: EncodedPacket) { lanes[packet.track.rawValue].waiting.append(packet) }

  /// Notes up to when a track is known.
  mutating func note(_ track: FilmTrack, upTo time: Nanoseconds) {
    lanes[track.rawValue].front = max(lanes[track.rawValue].front ?? .min, time)
  }

  /// Nothing more comes of a track.
  mutating func end(_ track: FilmTrack) { lanes[track.rawValue].isRunning = false }

  func isRunning(_ track: FilmTrack) -> Bool { lanes[track.rawValue].isRunning }
  func front(_ track: FilmTrack) -> Nanoseconds? { lanes[track.rawValue].front }

  /// How far a track is ahead of the other, if that runs.
  func lead(_ track: FilmTrack) -> Nanoseconds {
    let other = lanes[1 - track.rawValue]
    guard other.isRunning, let front = lanes[track.rawValue].front else { return 0 }
    let first = lanes[track.rawValue].waiting.first?.time ?? front
    return front - (other.front ?? first)
  }

  /// The later of both fronts; nil before anything came.
  var front: Nanoseconds? { lanes.compactMap(\.front).max() }

  // MARK: Waiting

  /// Up to when nobody waits any longer.
  mutating func expired(at now: Nanoseconds) -> Nanoseconds {
    if let front { patience.note(front, at: now) }
    return patience.over(at: now)
  }

  /// When the patience with what is missing ends; nil when nothing waits.
  func nextExpiry() -> Nanoseconds? {
    let known = lanes.filter(\.isRunning).map { $0.front ?? .min }.min() ?? .max
    return known == .max ? nil : patience.nextExpiry(beyond: known)
  }

  // MARK: Out

  /// The next packet that may leave.
  mutating func next(expired: Nanoseconds) -> EncodedPacket? {
    guard let index = lanes.indices.filter({ !lanes[$0].waiting.isEmpty }).min(by: { head($0) < head($1) })
    else { return nil }
    let time = head(index)
    let other = lanes[1 - index]
    guard !other.isRunning || time <= other.front ?? .min || time <= expired else { return nil }
    if origin == nil { origin = time }
    return lanes[index].waiting.removeFirst()
  }

  private func head(_ index: Int) -> Nanoseconds { lanes[index].waiting.first?.time ?? .max }
}
