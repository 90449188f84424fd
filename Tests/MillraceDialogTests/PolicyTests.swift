import MillraceCore
import MillraceDialog
import TestSystem
import Testing

private let ms: Nanoseconds = 1_000_000

@Suite("reconnect policy, pacer and pre-roll") struct PolicyTests {
  @Test("the backoff doubles up to its limit, and restarts after a success")
  func doubling() {
    var backoff = Backoff(jitter: 0, seed: 1)
    #expect(
      (0..<6).map { backoff.next(at: Nanoseconds($0)) }
        == [500, 1000, 2000, 4000, 8000, 8000].map { $0 * ms })
    backoff.reset()
    #expect(backoff.next(at: 0) == 500 * ms && backoff.attempts == 1)
  }

  @Test("jitter shortens a delay by at most its fraction, and depends only on the seed")
  func jitter() {
    func waits(_ seed: UInt64) -> [Nanoseconds] {
      var backoff = Backoff(first: 1000 * ms, most: 1000 * ms, jitter: 0.2, seed: seed)
      return (0..<500).compactMap { _ in backoff.next(at: 0) }
    }
    #expect(waits(1) == waits(1) && waits(1) != waits(2))
    #expect(waits(1).allSatisfy { $0 > 800 * ms - 1 && $0 <= 1000 * ms })
    #expect(waits(1).min()! < 810 * ms && waits(1).max()! > 990 * ms)
  }

  @Test("no attempt is made that would end after the time to give up, counted from the first failure")
  func givingUp() {
    var backoff = Backoff(first: 100 * ms, most: 100 * ms, jitter: 0, giveUp: 1000 * ms, seed: 1)
    #expect(backoff.next(at: 5000 * ms) != nil)
    #expect(backoff.next(at: 5900 * ms) != nil)
    #expect(backoff.next(at: 5901 * ms) == nil)
    backoff.reset()
    #expect(backoff.next(at: 9000 * ms) != nil)
  }

  @Test("a delay does not overflow after very many attempts")
  func many() {
    var backoff = Backoff(first: 1, most: .max / 4, jitter: 0, seed: 1)
    for _ in 0..<1000 { #expect(backoff.next(at: 0)! > 0) }
    var endless = Backoff(first: .max, most: .max, jitter: 0, seed: 1)
    for _ in 0..<3 { #expect(endless.next(at: 0)! > 0) }
  }

  @Test("a refusal and an intended end are never followed by a new connection")
  func reactions() {
    var policy = ReconnectPolicy(Backoff(jitter: 0, seed: 1))
    #expect(policy.decide(.refuse, at: 0) == .stop(isFailure: true))
    #expect(policy.decide(.ended, at: 0) == .stop(isFailure: false))
    #expect(policy.decide(.continue, at: 0) == .continue)
    #expect(policy.decide(.retry(afterMilliseconds: 30), at: 0) == .retry(after: 30 * ms))
    #expect(policy.decide(.retry(afterMilliseconds: -30), at: 0) == .retry(after: 0))
    #expect(policy.decide(.reconnect, at: 0) == .reconnect(after: 500 * ms))
    #expect(policy.decide(.reconnect, at: 0) == .reconnect(after: 1000 * ms))
    policy.noteSuccess()
    #expect(policy.decide(.reconnect, at: 0) == .reconnect(after: 500 * ms))
    policy.isOn = false
    #expect(policy.decide(.reconnect, at: 0) == .stop(isFailure: true))
  }

  @Test("six pieces are sent at once, then one every 120 ms from the first, however late each wake-up is")
  func pacing() {
    var pacer = Pacer(interval: 120 * ms, burst: 6)
    var now: Nanoseconds = 7 * ms
    var sent: [Nanoseconds] = []
    for index in 0..<1000 {
      now = pacer.due(at: now)
      sent.append(now)
      // Late by up to 9 ms every time.
      now += Nanoseconds(index % 10) * ms
      pacer.noteSent(at: now)
    }
    #expect(sent.prefix(6).allSatisfy { $0 < 60 * ms })
    for (index, time) in sent.enumerated().dropFirst(6) {
      #expect(
        time >= 7 * ms + Nanoseconds(index - 5) * 120 * ms
          && time < 16 * ms + Nanoseconds(index - 5) * 120 * ms)
    }
  }

  @Test("after a stall, missed pieces are not caught up")
  func stall() {
    var pacer = Pacer(interval: 20 * ms)
    pacer.noteSent(at: 0)
    #expect(pacer.due(at: 0) == 20 * ms)
    pacer.noteSent(at: 1000 * ms)
    #expect(pacer.due(at: 1000 * ms) == 1020 * ms)
    pacer.noteSent(at: 1020 * ms)
    #expect(pacer.due(at: 1020 * ms) == 1040 * ms)
    pacer.begin()
    #expect(pacer.due(at: 1021 * ms) == 1021 * ms)
  }

  private func contents(_ roll: inout PreRoll) -> [[UInt8]] {
    var result: [[UInt8]] = []
    while roll.pop({ span in result.append(span.indices.map { span[$0] }) }) {}
    return result
  }

  @Test("packets come back complete and in order, after the oldest were discarded")
  func preRoll() {
    var roll = PreRoll(bytes: 10, packets: 8, longest: 100 * ms)
    for index in 0..<7 {
      let bytes = [UInt8](repeating: UInt8(index), count: 3)
      roll.push(bytes.span, duration: 10 * ms)
    }
    #expect(roll.duration == 30 * ms && roll.lost == 40 * ms && roll.firstCount == 3)
    #expect(contents(&roll) == [[4, 4, 4], [5, 5, 5], [6, 6, 6]])
    #expect(roll.isEmpty && roll.duration == 0)
  }

  @Test("time and count are limited too, and a packet larger than the whole capacity is discarded")
  func preRollBounds() {
    var roll = PreRoll(bytes: 1000, packets: 4, longest: 25 * ms)
    for index in 0..<5 { roll.push([UInt8(index)].span, duration: 10 * ms) }
    #expect(contents(&roll) == [[3], [4]])
    for index in 0..<6 { roll.push([UInt8(index)].span, duration: 0) }
    #expect(roll.count == 4)
    roll.clear()
    roll.push([UInt8](repeating: 0, count: 1001).span, duration: 5 * ms)
    roll.push([1].span, duration: 26 * ms)
    #expect(roll.isEmpty && roll.lost == 31 * ms)
  }

  @Test("after any sequence of pushes and pops, the latest packets are kept, byte for byte")
  func preRollRandom() {
    var dice = Dice(seed: 3)
    var roll = PreRoll(bytes: 64, packets: 7, longest: 50 * ms)
    var model: [[UInt8]] = []
    for step in 0..<20_000 {
      if dice.below(4) == 0 {
        let expected = model.isEmpty ? nil : model.removeFirst()
        var found: [UInt8]?
        _ = roll.pop { span in found = span.indices.map { span[$0] } }
        #expect(found == expected)
      } else {
        let bytes = (0..<dice.below(40)).map { UInt8(truncatingIfNeeded: step + $0) }
        roll.push(bytes.span, duration: 10 * ms)
        model.append(bytes)
        model = model.suffix(roll.count)
      }
      #expect(model.count == roll.count && roll.duration <= 50 * ms)
    }
  }
}
