internal import MillraceCore

/// Which pictures of a film a grid of slots needs: those that stand at a slot. The first slot is when the first picture is due.
struct PictureSlots: Sendable {
  private let interval: Nanoseconds
  private var start: Nanoseconds?
  /// When the next slot is.
  private var due: Nanoseconds = 0

  init(interval: Nanoseconds) { self.interval = interval }

  /// Has the grid go by a first slot that may long be over.
  mutating func begin(at start: Nanoseconds) {
    self.start = start
    due = start
  }

  /// True for a picture that stands at a slot, from when it is due to the next one. Times only grow.
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
