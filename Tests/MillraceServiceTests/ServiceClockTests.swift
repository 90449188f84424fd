import MillraceCore
import MillraceNet
import MillraceService
import Synchronization
import Testing

@Suite("The clock of a session", .timeLimit(.minutes(30))) struct ServiceClockTests {
  @Test("beyond the sessions that one thread serves, a session has its calls, timers and signals on another")
  func spreading() async {
    await #expect(processExitsWith: .success) {
      var leases: [NetLoop.Lease] = []
      for _ in 0..<NetLoop.sessionsPerLoop { leases.append(try NetLoop.assign()) }
      let clock = try NetServiceClock()
      #expect(clock.loop !== NetLoop.shared && clock.loop.sessions == 1)
      let places = Mutex<[Bool]>([])
      let note = { @Sendable in places.withLock { $0.append(clock.loop.isCurrent) } }
      let signal = NetWakeSignal()
      clock.begin(signal, note)
      clock.run(note)
      _ = clock.run(after: 1_000_000, note)
      signal.signal()
      // The suite's time limit would not end this process.
      let limit = ContinuousClock.now + .seconds(600)
      while places.withLock({ $0.count }) < 3, ContinuousClock.now < limit {
        try await Task.sleep(for: .milliseconds(1))
      }
      #expect(places.withLock { $0 } == [true, true, true])
      signal.end()
      leases = []
      #expect(NetLoop.shared.sessions == 0)
    }
  }
}
