internal import MillraceCore
internal import MillraceDoubles

/// The client's playback reports.
extension DoubleConnection {
  /// A reply may be reported as played in this fraction of its duration: time-stretching and rounding shorten it.
  private static let tolerance = 0.9

  func localStarted() {
    if isStartDue {
      isStartDue = false
    } else if !crossings.take(.started) {
      double.violate("startedOutOfTurn", "LocalRespondingStarted while \(state.rawValue)")
    }
  }

  func localEnded() {
    // Belongs to the previous reply, which was cut off here just when the client had played it.
    if state != .listening && (isStartDue || !hasEnded) && crossings.take(.ended) { return }
    guard state == .responding && hasEnded else {
      // The end of a reply that was cut off may be reported or not.
      if state != .listening {
        double.violate("endedOutOfTurn", "LocalRespondingEnded while \(state.rawValue)")
      }
      return
    }
    if hasAudio && double.scenario.checksPlayback { checkHeard() }
    double.change { $0.turns += 1 }
    crossings.clear()
    enter(.listening)
  }

  /// Checks that a reply was not played faster than its duration, counted from when its first audio was sent. Both times are taken here:
  /// a slow client or a busy machine only makes the difference longer.
  private func checkHeard() {
    guard !isStartDue else {
      return double.violate("endedBeforePlayed", "the end of a reply was reported, but not its beginning")
    }
    let passed = firstSent.map { Double(clock.now - $0) / 1e6 } ?? 0
    guard passed < Double(lasts) * Self.tolerance else { return }
    double.violate(
      "endedBeforePlayed",
      "\(lasts) ms were reported as played \(Int(passed)) ms after the first audio was sent")
  }
}
