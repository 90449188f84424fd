internal import Glibc
internal import MillraceCore

/// Places audio in a recording: packets by their positions, and positions by their packets' times.
///
/// The first sample is placed by its time, all later ones by position, so that rounded timestamps neither cut nor stretch audio. But pictures
/// have only times; if the two disagree for long, times win. That happens if a source stopped without a gap in its positions, or if its
/// clock drifts: 100 ppm is one picture in seven minutes.
struct SoundTimeline {
  /// The placement of a packet.
  struct Place: Equatable {
    /// Frames of silence before it.
    var silence: Int64 = 0
    /// Frames of it that are too late.
    var cut = 0
    /// Frames of it to write after those.
    var count = 0
  }

  /// A deviation too large for timestamp rounding, however short.
  static let jump = Nanoseconds.milliseconds(250)
  /// An audible loss of sync, and how long it may last.
  static let tolerance = Nanoseconds.milliseconds(20)
  static let patience = Nanoseconds.milliseconds(200)
  /// Longest silence: times further away are ignored.
  static let longestSilence = Nanoseconds.milliseconds(3_600_000)

  let rate: Int
  /// Time of frame 0; nil before anything arrived.
  private(set) var start: Nanoseconds?
  /// Frames written so far.
  private(set) var written: Int64 = 0
  /// Frames by which audio was moved since the last call; positive: silence was inserted.
  private(set) var moved: Int64 = 0
  /// Difference between a frame's place on the timeline and its packet's position.
  private var offset: Int64?
  /// The smallest deviation on one side of the tolerance, and since when.
  private var suspicion: (frames: Int64, since: Nanoseconds)?

  init(rate: Int) { self.rate = rate }

  /// End of what is known.
  var front: Nanoseconds? { start.map { $0 &+ .samples(written, rate: rate) } }

  /// Starts the timeline, with silence, if nothing has arrived.
  mutating func begin(at time: Nanoseconds) { if start == nil { start = time } }

  /// The frames of silence needed up to a time.
  mutating func fill(to time: Nanoseconds) -> Int64 {
    begin(at: time)
    let count = max(0, frames(to: time) - written)
    written += count
    return count
  }

  /// Places a packet. Call `note` once it was written.
  mutating func place(
    frames count: Int, position: Int64, time: Nanoseconds, isNew: Bool
  ) -> Place {
    // A filter's or encoder's run-in lies before position 0.
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

  /// Records frames that were written.
  mutating func note(_ frames: Int64) { written += frames }

  /// Takes and resets the number of frames moved.
  mutating func takeMoved() -> Int64 {
    defer { moved = 0 }
    return moved
  }

  /// The frame due at a time.
  private func frames(to time: Nanoseconds) -> Int64 {
    Int64((Double(time &- (start ?? time)) * Double(rate) / 1e9).rounded())
  }

  /// The offset to use for a packet whose time implies the offset `timed`.
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
