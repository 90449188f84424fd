/// Positions at which a recording is paused and resumed.
struct RecordingSwitches {
  private struct Switch {
    var position: Int64
    var isOn: Bool
  }

  /// Most pending switches; another one replaces the newest.
  private static let most = 16
  private var present: Bool
  private var ahead: [Switch] = []

  init(isOn: Bool) {
    present = isOn
    ahead.reserveCapacity(Self.most)
  }

  /// Switches at a position, or at once if nothing has arrived yet; what has left the timeline is unaffected.
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

  /// The next position at which recording is paused or resumed.
  var next: Int64? { ahead.first?.position }
}
