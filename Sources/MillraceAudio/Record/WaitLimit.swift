package import MillraceCore

/// How long the samples that arrived have waited for those that did not.
///
/// Records how far the timeline reached at which time, in steps of 1/32 of the limit; what was there one limit ago need not wait any
/// longer.
package struct WaitLimit {
  private struct Mark {
    var begun: Nanoseconds
    var time: Nanoseconds
    var front: Int64
  }

  private static let steps: Nanoseconds = 32
  /// Two more than there are steps: the incomplete one and the one that expires.
  private static let capacity = Int(steps) + 2

  private let limit: Nanoseconds
  /// A ring: index of the oldest mark, and their number.
  private var marks: [Mark]
  private var oldest = 0
  private var count = 0
  private var expiredFront = Int64.min

  package init(_ limit: Nanoseconds) {
    self.limit = limit
    marks = Array(repeating: Mark(begun: 0, time: 0, front: 0), count: Self.capacity)
  }

  private func place(_ index: Int) -> Int { (oldest + index) % Self.capacity }

  /// Records how far the timeline reaches now.
  package mutating func note(_ front: Int64, at now: Nanoseconds) {
    guard count > 0 else {
      if front > expiredFront { append(Mark(begun: now, time: now, front: front)) }
      return
    }
    let last = marks[place(count - 1)]
    guard front > last.front else { return }
    if now - last.begun < limit / Self.steps || count == Self.capacity {
      marks[place(count - 1)] = Mark(begun: last.begun, time: now, front: front)
    } else {
      append(Mark(begun: now, time: now, front: front))
    }
  }

  private mutating func append(_ mark: Mark) {
    marks[place(count)] = mark
    count += 1
  }

  /// The position up to which the wait has expired.
  package mutating func expired(at now: Nanoseconds) -> Int64 {
    while count > 0, marks[oldest].time + limit <= now {
      expiredFront = marks[oldest].front
      oldest = place(1)
      count -= 1
    }
    return expiredFront
  }

  /// When the wait for a position beyond `base` expires; nil if none waits.
  package func nextExpiry(beyond base: Int64) -> Nanoseconds? {
    for index in 0..<count {
      let mark = marks[place(index)]
      if mark.front > base { return mark.time + limit }
    }
    return nil
  }
}
