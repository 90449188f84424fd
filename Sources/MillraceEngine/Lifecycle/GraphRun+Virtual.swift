internal import MillraceCore
internal import Synchronization

/// Keeps runs on a virtual clock reproducible although the supervisor is a second thread: time does not advance while a decision
/// of the supervisor is pending.
extension GraphRun {
  /// A decision is about to be requested from the supervisor. Call it before posting the message.
  func beginDecision() {
    if engine.clock == .virtual { pendingDecisions.add(1, ordering: .relaxed) }
  }

  /// The supervisor has decided and posted every request that follows from it.
  func endDecision() {
    if engine.clock == .virtual { pendingDecisions.subtract(1, ordering: .releasing) }
  }

  /// Records the graph time at which the run ended: the worker's clock may advance further for other runs.
  func recordEnd() {
    guard engine.clock == .virtual else { return }
    _ = endTime.compareExchange(expected: Nanoseconds.min, desired: graphTime, ordering: .releasing)
  }

  /// Recreates a failed node at a graph time.
  func restart(_ node: Int, at time: Nanoseconds) {
    at(.nanoseconds(time)) { [self] in
      beginDecision()
      engine.supervisor.post(.restart(self, node: node))
    }
  }
}
