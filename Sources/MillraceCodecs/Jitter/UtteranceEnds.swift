/// Carries the ends of utterances through a jitter buffer, from positions in the input stream to positions in the output.
///
/// Ends are identified by position, as packets are, so that they may arrive late, early or twice. The output is counted differently, because
/// time is stretched and audio concealed: an end passes over when the audio before it has been decoded. A pure struct; no heap after
/// `init`.
struct UtteranceEnds {
  /// Most ends held; one more replaces the last.
  private static let most = 8

  /// Input positions, ascending, whose audio has not been decoded.
  private var ahead: [Int64] = []
  /// Counts of played frames, ascending, after which an end is due.
  private var due: [Int64] = []
  /// The newest position that was passed, to detect duplicates.
  private var passed: Int64?

  init() {
    ahead.reserveCapacity(Self.most)
    due.reserveCapacity(Self.most)
  }

  /// The first end whose audio has not been decoded.
  var next: Int64? { ahead.first }

  /// Ends recorded but not taken.
  var count: Int { ahead.count + due.count }

  /// Records an end at a position in the stream.
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

  /// Passes ends up to the decoded position `end`, whose audio will have been played after `frames` frames.
  mutating func pass(upTo end: Int64, playedAt frames: Int64) {
    while let first = ahead.first, first <= end {
      ahead.removeFirst()
      passed = first
      if due.count == Self.most { due.removeLast() }
      due.append(frames &- (end &- first))
    }
  }

  /// Takes an end that is due once `frames` have been played.
  mutating func take(playedTo frames: Int64) -> Bool {
    guard let first = due.first, first <= frames else { return false }
    due.removeFirst()
    return true
  }

  /// Removes all ends.
  mutating func clear() {
    ahead.removeAll(keepingCapacity: true)
    due.removeAll(keepingCapacity: true)
    passed = nil
  }
}
