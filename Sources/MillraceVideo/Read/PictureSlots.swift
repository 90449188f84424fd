internal import MillraceCore

/// Selects the pictures of a video that are current at the slots of a grid. The first slot is when the first picture is due.
struct PictureSlots: Sendable {
  private let interval: Nanoseconds
  private var start: Nanoseconds?
  /// Time of the next slot.
  private var due: Nanoseconds = 0

  init(interval: Nanoseconds) { self.interval = interval }

  /// Starts the grid at a first slot, which may be far in the past.
  mutating func begin(at start: Nanoseconds) {
    self.start = start
    due = start
  }

  /// True for a picture that is current at a slot, from when it is due to the next picture. Times must not decrease.
  mutating func needs(from time: Nanoseconds, upTo end: Nanoseconds) -> Bool {
    guard let start else {
      self.start = time
      due = time &+ interval
      return true
    }
    if due < time { due = start &+ (time &- start &+ interval - 1) / interval &* interval }
    return due < end
  }
}
