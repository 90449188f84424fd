/// Values of tokens that have let somebody in, each kept until its token has ended by itself.
///
/// Times are Unix time in milliseconds. When it is full, no further value is let in until one of these ends: forgetting one early would
/// let its token in again.
struct OnceTable: Sendable {
  private let most: Int
  private var ends = Deadlines<String>()

  init(most: Int) { self.most = most }

  var count: Int { ends.count }
  /// When the next value is forgotten.
  var deadline: Int64? { ends.next }

  func contains(_ value: String) -> Bool { ends[value] != nil }

  /// Keeps a value that is not there yet; false: the table is full.
  mutating func insert(_ value: String, until end: Int64) -> Bool {
    guard ends.count < most else { return false }
    ends.set(value, end)
    return true
  }

  mutating func forget(at unix: Int64) {
    while ends.popDue(at: unix) != nil {}
  }
}
