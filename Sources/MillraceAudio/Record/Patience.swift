package import MillraceCore

/// How long the samples that came have waited for those that did not.
///
/// Notes at which time the line had grown how far, in steps of a thirty-second of the patience; what was there a patience ago
/// need not wait any longer.
package struct Patience {
  private struct Mark {
    var begun: Nanoseconds
    var time: Nanoseconds
    var front: Int64
  }

  private static let steps: Nanoseconds = 32
  /// Two more than there are steps: the one begun and the one that ends.
  private static let capacity = Int(steps) + 2

  private let patience: Nanoseconds
  /// A ring of them: the oldest, and how many there are.
  private var marks: [Mark]
  private var oldest = 0
  private var count = 0
  private var expired = Int64.min

  package init(_ patience: Nanoseconds) {
    self.patience = patience
    marks = Array(repeating: Mark(begun: 0, time: 0, front: 0), count: Self.capacity)
  }

  private func place(_ index: Int) -> Int { (oldest + index) % Self.capacity }

  /// Notes how far the line reaches now.
  package mutating func note(_ front: Int64, at now: Nanoseconds) {
    guard count > 0 else {
      if front > expired { append(Mark(begun: now, time: now, front: front)) }
      return
    }
    let last = marks[place(count - 1)]
    guard front > last.front else { return }
    if now - last.begun < patience / Self.steps || count == Self.capacity {
      marks[place(count - 1)] = Mark(begun: last.begun, time: now, front: front)
    } else {
      append(Mark(begun: now, time: now, front: front))
    }
  }

  private mutating func append(_ mark: Mark) {
    marks[place(count)] = mark
    count += 1
  }

  /// The position for which all patience is used up.
  package mutating func over(at now: Nanoseconds) -> Int64 {
    while count > 0, marks[oldest].time + patience <= now {
      expired = marks[oldest].front
      oldest = place(1)
      count -= 1
    }
    return expired
  }

  /// When a position beyond `base` is given up; nil when none waits.
  package func nextExpiry(beyond base: Int64) -> Nanoseconds? {
    for index in 0..<count {
      let mark = marks[place(index)]
      if mark.front > base { return mark.time + patience }
    }
    return nil
  }
}
