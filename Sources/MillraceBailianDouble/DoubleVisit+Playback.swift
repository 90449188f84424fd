internal import MillraceCore

/// What the client says of its playback.
extension DoubleVisit {
  /// A reply that is told to be heard may be shorter by so much: what stretching and rounding take.
  private static let tolerance = 0.9

  func localStarted() {
    if isStartDue {
      isStartDue = false
    } else if crossings.start {
      crossings.start = false
    } else {
      double.violate("startedOutOfTurn", "LocalRespondingStarted while \(state.rawValue)")
    }
  }

  func localEnded() {
    // Of the reply before this one, which was cut off here while the client came to its end.
    if state != .listening && crossings.end && (isStartDue || !hasEnded) {
      crossings.end = false
      return
    }
    guard state == .responding && hasEnded else {
      // A reply that was cut off may be told of or not.
      if state != .listening {
        double.violate("endedOutOfTurn", "LocalRespondingEnded while \(state.rawValue)")
      }
      return
    }
    if hasAudio && double.scenario.checksPlayback { checkHeard() }
    double.change { $0.turns += 1 }
    crossings = Crossings()
    enter(.listening)
  }

  /// No reply is heard in less time than it lasts, and none of it before it was sent. Both ends of that time are this side's own: a client
  /// that is slow to tell of its beginning, or a machine that is slow to hand either on, only makes it longer.
  private func checkHeard() {
    guard !isStartDue else {
      return double.violate("endedBeforePlayed", "a reply was told to be heard that was not told to begin")
    }
    let passed = firstSent.map { Double(clock.now - $0) / 1e6 } ?? 0
    guard passed < Double(lasts) * Self.tolerance else { return }
    double.violate(
      "endedBeforePlayed",
      "\(lasts) ms were told to be heard \(Int(passed)) ms after the first of them was sent")
  }
}
