import Foundation
import MillraceCore
import Synchronization
import Testing

@Suite("futex", .timeLimit(.minutes(30)))
struct FutexTests {
  /// A ball between two threads: each waits for its own value and answers with the other's. Both go when a wait takes as long as it may.
  private final class Ball: Sendable {
    let word = Futex()
    let returns = Atomic<Int>(0)
    let isLost = Atomic<Bool>(false)
    private static let patience = Nanoseconds.milliseconds(120_000)

    func play(_ own: UInt32, rounds: Int) {
      for _ in 0..<rounds {
        var value = word.load()
        while value != own {
          let begin = ContinuousClock.now
          word.wait(while: value, for: Self.patience)
          value = word.load()
          if ContinuousClock.now - begin >= .nanoseconds(Self.patience) {
            isLost.store(true, ordering: .relaxed)
          }
          if isLost.load(ordering: .relaxed) { return }
        }
        returns.add(1, ordering: .relaxed)
        word.store(1 - own)
        word.wake()
      }
    }
  }

  @Test("a change and a wake-up end a wait, whatever their order and timing")
  func neverMissed() {
    let ball = Ball()
    let other = Thread { ball.play(1, rounds: 20_000) }
    other.start()
    ball.play(0, rounds: 20_000)
    while ball.returns.load(ordering: .relaxed) < 40_000 && !ball.isLost.load(ordering: .relaxed) {
      usleep(1_000)
    }
    #expect(ball.returns.load(ordering: .relaxed) == 40_000)
    #expect(ball.word.load() == 0)
  }

  @Test(
    "a wait for a changed value returns at once, a wait without a wake-up times out, and exchange returns the previous value"
  )
  func values() {
    let word = Futex()
    #expect(word.exchange(7) == 0)
    word.wait(while: 0)
    word.wait(while: 7, for: 1_000_000)
    #expect(word.load() == 7)
  }
}
