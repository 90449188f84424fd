/// Where on the line a recording is paused and goes on.
struct RecordingSwitches {
  private struct Switch {
    var position: Int64
    var isOn: Bool
  }

  /// Switches that may be ahead of what was written; more replace the newest.
  private static let most = 16
  private var present: Bool
  private var ahead: [Switch] = []

  init(isOn: Bool) {
    present = isOn
    ahead.reserveCapacity(Self.most)
  }

  /// Switches at a position, or at once when nothing came yet; what has left the line stays as it was.
  mutating func set(_ isOn: Bool, at position: Int64?, base: Int64?) {
    guard let position, let base else {
      present = isOn
      return
    }
    let place = max(position, base, ahead.last?.position ?? base)
    if ahead.count == Self.most { ahead.removeLast() }
    ahead.append(Switch(position: place, isOn: isOn))
  }

  /// Whether the sample at a position is recorded. Positions only grow.
  mutating func isOn(at position: Int64) -> Bool {
    while let first = ahead.first, first.position <= position {
      present = first.isOn
      ahead.removeFirst()
    }
    return present
  }

  /// The next position at which it changes.
  var next: Int64? { ahead.first?.position }
}
