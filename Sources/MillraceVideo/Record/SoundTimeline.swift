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
    /// Frames of it that are too late. Those before a recording that begins after a pause do not count.
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
  /// The earliest time at which it may start; nil: with the first packet.
  private let earliest: Nanoseconds?
  /// True if frames that are due before `earliest` are too late; false if they were not to be recorded.
  private let countsEarlier: Bool

  init(rate: Int, from earliest: Nanoseconds? = nil, countsEarlier: Bool = true) {
    self.rate = rate
    self.earliest = earliest
    self.countsEarlier = countsEarlier
  }

  /// The timeline of the next file, which begins at the time at which this one ends. Positions keep their places, so that no frame is
  /// lost between the files or written to both.
  func continued(at end: Nanoseconds, countsEarlier: Bool) -> SoundTimeline {
    guard let start else { return SoundTimeline(rate: rate, from: end, countsEarlier: countsEarlier) }
    // A frame more or less is the rounding of the time: what was written counts.
    let due = frames(to: end)
    let length = abs(due - written) <= 1 ? written : max(written, due)
    var next = SoundTimeline(
      rate: rate, from: start &+ .samples(length, rate: rate), countsEarlier: countsEarlier)
    next.offset = offset.map { $0 &- length }
    next.suspicion = suspicion
    return next
  }

  /// End of what is known.
  var front: Nanoseconds? { start.map { $0 &+ .samples(written, rate: rate) } }

  /// Starts the timeline, with silence, if nothing has arrived.
  mutating func begin(at time: Nanoseconds) {
    guard start == nil else { return }
    start = max(time, earliest ?? time)
    guard let earliest, let offset else { return }
    // Whole frames later, so that positions keep their places.
    let frames = Int64((Double(max(0, time &- earliest)) * Double(rate) / 1e9).rounded())
    start = earliest &+ .samples(frames, rate: rate)
    self.offset = offset &- frames
  }

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
    // Where a recording continues another, positions decide. A time may be off by the length of its jitter.
    if start == nil, offset != nil { start = earliest }
    begin(at: time)
    let due = frames(to: time)
    let offset = follow(due &- position, isNew: isNew, at: time, first: position)
    self.offset = offset
    var first = position &+ offset
    if earliest != nil, written == 0, first > 0 {
      // Nothing precedes it: audio starts later, and not with silence.
      start = start.map { $0 &+ .samples(first, rate: rate) }
      self.offset = offset &- first
      first = 0
    }
    let usable = Int64(count - runIn)
    let early = countsEarlier ? 0 : Int(max(0, min(usable, 0 &- first)))
    let cut = Int(max(0, min(usable, written &- first))) - early
    let left = Int(usable) - early - cut
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
