internal import MillraceCore

/// Tells a standby thread whether it is needed. Decided once; the thread sleeps until then.
final class StandbyDecision: Sendable {
  private static let needed: UInt32 = 1
  private static let notNeeded: UInt32 = 2

  /// 0 until decided.
  private let decision = Futex()

  func decide(isNeeded: Bool) {
    decision.store(isNeeded ? Self.needed : Self.notNeeded)
    decision.wake()
  }

  /// Waits for the decision; true when the thread is needed.
  func waitUntilDecided() -> Bool {
    while true {
      let value = decision.load()
      if value != 0 { return value == Self.needed }
      decision.wait(while: 0)
    }
  }
}
