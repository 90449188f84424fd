import MillraceCore
import Testing

@Suite("throttled events") struct EventThrottleTests {
  @Test("an event is posted at once, then once a second, and always at the end")
  func throttle() {
    var throttle = EventThrottle()
    let posted = (0..<350).filter { throttle.allows(at: .milliseconds(10 * Int64($0))) }
    #expect(posted == [0, 100, 200, 300])
    // Too early; the final post; after it, which counts as a post; a second later.
    let later = [(3_490, false), (3_490, true), (4_489, false), (4_490, false)].map { time, isLast in
      throttle.allows(at: .milliseconds(time), isLast: isLast)
    }
    #expect(later == [false, true, false, true])
  }
}
