internal import Glibc
internal import MillraceCore

/// Where the sound of a film goes: packets by their positions, and positions by their packets' times.
///
/// The first sample is placed by its time, and all after it by position, so that nothing is cut or stretched by the coarseness of
/// times. But pictures have only times; where the two disagree for long, times win. That is a source that stopped and counts
/// on, or one whose clock goes wrong: 100 ppm are a picture in seven minutes.
struct SoundPlaces {
  /// Where a packet goes.
  struct Place: Equatable {
    /// Frames of silence before it.
    var silence: Int64 = 0
    /// Frames of it that came too late.
    var cut = 0
    /// Frames of it that are written after those.
    var count = 0
  }

  /// A disagreement that is no coarseness of times, however short it lasts.
  static let jump = Nanoseconds.milliseconds(250)
  /// One that is heard beside pictures when it lasts, and how long it may.
  static let tolerance = Nanoseconds.milliseconds(20)
  static let patience = Nanoseconds.milliseconds(200)
  /// Longest silence: a time further away is not believed.
  static let longestSilence = Nanoseconds.milliseconds(3_600_000)

  let rate: Int
  /// Time of frame 0 of the line; nil before anything came.
  private(set) var start: Nanoseconds?
  /// Frames that have a place.
  private(set) var written: Int64 = 0
  /// Frames by which the line was moved to follow the times, since the last look: more than 0 is silence put in.
  private(set) var moved: Int64 = 0
  /// What a packet's position lacks to its place.
  private var offset: Int64?
  /// The smallest disagreement of those seen on one side of the tolerance, and since when.
  private var suspicion: (frames: Int64, since: Nanoseconds)?

  init(rate: Int) { self.rate = rate }

  /// Up to when everything is known.
  var front: Nanoseconds? { start.map { $0 &+ .samples(written, rate: rate) } }

  /// Begins the line, with silence, where nothing has come yet.
  mutating func begin(at time: Nanoseconds) { if start == nil { start = time } }

  /// Silence up to a time; the frames it takes.
  mutating func fill(to time: Nanoseconds) -> Int64 {
    begin(at: time)
    let count = max(0, frames(to: time) - written)
    written += count
    return count
  }

  /// Finds the place of so many frames. Nothing of it is written yet: see `note`.
  mutating func place(
    frames count: Int, position: Int64, time: Nanoseconds, isNew: Bool
  ) -> Place {
    // The run-in of a filter or an encoder lies before position 0.
    let runIn = offset == nil ? Int(max(0, min(Int64(count), -position))) : 0
    guard count > runIn else { return Place() }
    let position = position &+ Int64(runIn)
    let time = time &+ .samples(Int64(runIn), rate: rate)
    begin(at: time)
    let due = frames(to: time)
    let offset = follow(due &- position, isNew: isNew, at: time, first: position)
    self.offset = offset
    let first = position &+ offset
    let cut = Int(max(0, min(Int64(count - runIn), written &- first)))
    let left = count - runIn - cut
    return Place(silence: left > 0 ? max(0, first - written) : 0, cut: cut, count: left)
  }

  /// Notes what was written of a place.
  mutating func note(_ frames: Int64) { written += frames }

  /// Takes the count of frames the line was moved by.
  mutating func takeMoved() -> Int64 {
    defer { moved = 0 }
    return moved
  }

  /// The frame due at a time.
  private func frames(to time: Nanoseconds) -> Int64 {
    Int64((Double(time &- (start ?? time)) * Double(rate) / 1e9).rounded())
  }

  /// The offset to use, when by its time a packet would have `timed`.
  private mutating func follow(
    _ timed: Int64, isNew: Bool, at time: Nanoseconds, first position: Int64
  ) -> Int64 {
    let limit = Int64(rate) * (Self.longestSilence / 1_000_000_000)
    let distance = timed &+ position &- written
    guard (-limit...limit).contains(distance) else {
      let kept = offset ?? written &- position
      return (-limit...limit).contains(position &+ kept &- written) ? kept : written &- position
    }
    guard let offset else { return timed }
    let error = timed &- offset
    let length = Nanoseconds.samples(abs(error), rate: rate)
    if isNew || length > Self.jump {
      suspicion = nil
      return timed
    }
    guard length > Self.tolerance else {
      suspicion = nil
      return offset
    }
    guard let seen = suspicion, (seen.frames < 0) == (error < 0) else {
      suspicion = (error, time)
      return offset
    }
    let least = abs(error) < abs(seen.frames) ? error : seen.frames
    suspicion = (least, seen.since)
    guard time - seen.since >= Self.patience else { return offset }
    suspicion = nil
    moved += least
    return offset &+ least
  }
}
