internal import MillraceCore
internal import Synchronization

/// What keeps a run on a virtual clock the same every time, although a second thread has a say in it: whatever that thread
/// decides about, time stands still until it has.
extension GraphRun {
  /// The supervisor is about to be asked. Before the message is posted.
  func beginDecision() {
    if engine.clock == .virtual { pendingDecisions.add(1, ordering: .relaxed) }
  }

  /// The supervisor has answered, and every request that follows from it is on its way.
  func endDecision() {
    if engine.clock == .virtual { pendingDecisions.subtract(1, ordering: .releasing) }
  }

  /// Notes that nothing happens any more from this graph time on: on one worker the clock may go on for other runs.
  func recordEnd() {
    guard engine.clock == .virtual else { return }
    _ = endTime.compareExchange(expected: Nanoseconds.min, desired: graphTime, ordering: .releasing)
  }

  /// Has a failed node made anew at a graph time.
  func restart(_ node: Int, at time: Nanoseconds) {
    at(.nanoseconds(time)) { [self] in
      beginDecision()
      engine.supervisor.post(.restart(self, node: node))
    }
  }
}
