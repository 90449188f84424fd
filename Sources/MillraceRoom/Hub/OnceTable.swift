internal import MillraceCore

/// Values of tokens that have let somebody in, each kept until its token has ended by itself.
///
/// A token ends by the wall clock, which may be set: a value is kept until its end has passed by that clock and by the one that only rises,
/// so that a clock that jumps ahead and back lets nobody in again. When the table is full, no further value is let in until one of these
/// ends: forgetting one early would let its token in again.
struct OnceTable: Sendable {
  private let most: Int
  private var values: Set<String> = []
  /// By the clock that only rises, and in Unix time in milliseconds.
  private var ends = Deadlines<String>()
  private var unixEnds = Deadlines<String>()

  init(most: Int) { self.most = most }

  var count: Int { values.count }

  func contains(_ value: String) -> Bool { values.contains(value) }

  /// Keeps a value that is not there yet; false: the table is full.
  mutating func insert(_ value: String, until end: RoomInstant) -> Bool {
    guard values.count < most else { return false }
    values.insert(value)
    ends.set(value, end.now)
    unixEnds.set(value, end.unixMilliseconds)
    return true
  }

  mutating func forget(at time: RoomInstant) {
    while let value = ends.popDue(at: time.now) { if unixEnds[value] == nil { values.remove(value) } }
    while let value = unixEnds.popDue(at: time.unixMilliseconds) {
      if ends[value] == nil { values.remove(value) }
    }
  }
}
