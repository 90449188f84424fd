internal import MillraceCore

/// How long the samples that came have waited for those that did not.
///
/// Notes at which time the line had grown how far, in steps of a thirty-second of the patience; what was there a patience ago
/// need not wait any longer.
struct Patience {
  private struct Mark {
    var begun: Nanoseconds
    var time: Nanoseconds
    var front: Int64
  }

  private static let steps: Nanoseconds = 32
  /// Two more than there are steps: the one begun and the one that ends.
  private static let capacity = Int(steps) + 2

  private let patience: Nanoseconds
  private var marks: [Mark] = []
  private var expired = Int64.min

  init(_ patience: Nanoseconds) {
    self.patience = patience
    marks.reserveCapacity(Self.capacity)
  }

  /// Notes how far the line reaches now.
  mutating func note(_ front: Int64, at now: Nanoseconds) {
    guard front > marks.last?.front ?? expired else { return }
    if let last = marks.last,
      now - last.begun < patience / Self.steps || marks.count == Self.capacity
    {
      marks[marks.count - 1] = Mark(begun: last.begun, time: now, front: front)
    } else {
      marks.append(Mark(begun: now, time: now, front: front))
    }
  }

  /// The position for which all patience is used up.
  mutating func over(at now: Nanoseconds) -> Int64 {
    while let first = marks.first, first.time + patience <= now {
      expired = first.front
      marks.removeFirst()
    }
    return expired
  }

  /// When a position beyond `base` is given up; nil when none waits.
  func nextExpiry(beyond base: Int64) -> Nanoseconds? {
    for mark in marks where mark.front > base { return mark.time + patience }
    return nil
  }
}
