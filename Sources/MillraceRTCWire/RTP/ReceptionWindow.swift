/// Finds packets that came twice or too late, over a window of the latest 512 sequence numbers (RFC 3711, section 3.3.2).
///
/// Takes unwrapped numbers, see `SequenceUnwrapper`. No heap request.
public struct ReceptionWindow: Sendable {
  /// Sequence numbers in the window.
  public static let size: Int64 = 512

  /// What a packet is.
  public enum Verdict: Sendable, Equatable {
    /// New, and the highest so far.
    case inOrder
    /// New, but after a higher one.
    case reordered
    /// It came before: refuse it.
    case duplicate
    /// Below the window: refuse it, whether it came before is not known.
    case tooOld
  }

  private var highest: Int64?
  /// One bit for each number of the window, at the number modulo 512.
  private var seen = InlineArray<8, UInt64>(repeating: 0)

  /// Creates a window that has seen nothing.
  public init() {}

  /// Notes a packet by its unwrapped sequence number.
  public mutating func note(_ number: Int64) -> Verdict {
    guard let highest else {
      self.highest = number
      mark(number)
      return .inOrder
    }
    let advance = number &- highest
    if advance > 0 {
      clear(after: highest, advance)
      self.highest = number
      mark(number)
      return .inOrder
    }
    guard advance > -Self.size else { return .tooOld }
    guard !isMarked(number) else { return .duplicate }
    mark(number)
    return .reordered
  }

  /// Forgets all packets, for a source that restarted.
  public mutating func reset() { self = ReceptionWindow() }

  /// Clears the bits of the numbers that enter the window.
  private mutating func clear(after number: Int64, _ count: Int64) {
    guard count < Self.size else {
      seen = InlineArray(repeating: 0)
      return
    }
    // A range of Int: iterating one of Int64 makes heap requests in debug builds.
    for step in 1..<Int(count) + 1 {
      let (word, bit) = Self.place(number &+ Int64(step))
      seen[word] &= ~bit
    }
  }

  private mutating func mark(_ number: Int64) {
    let (word, bit) = Self.place(number)
    seen[word] |= bit
  }

  private func isMarked(_ number: Int64) -> Bool {
    let (word, bit) = Self.place(number)
    return seen[word] & bit != 0
  }

  private static func place(_ number: Int64) -> (word: Int, bit: UInt64) {
    let index = Int(truncatingIfNeeded: number & (size - 1))
    return (index >> 6, 1 << UInt64(index & 63))
  }
}
