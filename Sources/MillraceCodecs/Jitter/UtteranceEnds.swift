/// Ends of utterances on their way through a jitter buffer: from a place in the stream that comes in to a place in what is played.
///
/// They are known by position, as packets are, so that they may come late, early or double. What is played has another count,
/// since time is stretched and sound made up: an end passes to it when the sound before it has been decoded. A pure struct; no heap
/// after `init`.
struct UtteranceEnds {
  /// Ends it holds at most; one more takes the place of the last.
  private static let most = 8

  /// Positions in the stream, rising, whose sound has not been decoded.
  private var ahead: [Int64] = []
  /// Counts of played frames behind which an end is due, rising.
  private var due: [Int64] = []
  /// The newest position that was passed: the same end again is a duplicate.
  private var passed: Int64?

  init() {
    ahead.reserveCapacity(Self.most)
    due.reserveCapacity(Self.most)
  }

  /// The first end whose sound has not been decoded.
  var next: Int64? { ahead.first }

  /// Ends that were noted and not taken.
  var count: Int { ahead.count + due.count }

  /// Notes an end at a position in the stream.
  mutating func note(_ position: Int64) {
    if let passed, position <= passed { return }
    var place = ahead.count
    while place > 0, ahead[place - 1] >= position {
      if ahead[place - 1] == position { return }
      place -= 1
    }
    if ahead.count == Self.most { ahead.removeLast() }
    ahead.insert(position, at: min(place, ahead.count))
  }

  /// The stream was decoded up to `end`; its sound will have been played when `frames` are.
  mutating func pass(upTo end: Int64, playedAt frames: Int64) {
    while let first = ahead.first, first <= end {
      ahead.removeFirst()
      passed = first
      if due.count == Self.most { due.removeLast() }
      due.append(frames &- (end &- first))
    }
  }

  /// Takes an end that is due when `frames` have been played.
  mutating func take(playedTo frames: Int64) -> Bool {
    guard let first = due.first, first <= frames else { return false }
    due.removeFirst()
    return true
  }

  /// Forgets all of them.
  mutating func clear() {
    ahead.removeAll(keepingCapacity: true)
    due.removeAll(keepingCapacity: true)
    passed = nil
  }
}
