import MillraceCore
import Testing

@Suite("An event that comes in swarms") struct EventPaceTests {
  @Test("is told at once, then once a second, and at the end whatever the time")
  func pace() {
    var pace = EventPace()
    let told = (0..<350).filter { pace.allows(at: .milliseconds(10 * Int64($0))) }
    #expect(told == [0, 100, 200, 300])
    // Between two tellings, at the end, and after it, which counts as a telling too.
    let later = [(3_490, false), (3_490, true), (4_489, false), (4_490, false)].map { time, isLast in
      pace.allows(at: .milliseconds(time), isLast: isLast)
    }
    #expect(later == [false, true, false, true])
  }
}
