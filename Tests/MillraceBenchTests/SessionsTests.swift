import Synchronization
import Testing

@testable import MillraceBench

/// Carries up to a number of sessions in time; with more it loses every hundredth packet.
private final class Scripted: LiveContestant {
  let name = "scripted"
  let most: Int
  /// Runs at the start that fail whatever the load is.
  var slips: Int
  private(set) var asked: [Int] = []

  init(most: Int, slips: Int = 0) {
    self.most = most
    self.slips = slips
  }

  func run(_ load: LiveLoad, _ bars: LatenessBars) throws {
    asked.append(load.sessions)
    let packets = load.sessions * load.measured
    slips -= 1
    if load.sessions <= most && slips < 0 {
      bars.add(1_000_000, count: packets)
    } else {
      bars.add(1_000_000, count: packets * 99 / 100)
    }
  }
}

@Suite("Live sessions", .serialized, .timeLimit(.minutes(30)))
struct SessionsTests {
  private func load(sessions: Int = 1, measured: Int = 100) -> LiveLoad {
    LiveLoad(
      sessions: sessions, voice: Sound.voice(seconds: 1, rate: 48_000), core: 0, warmUp: 2, measured: measured
    )
  }

  @Test(
    "the limit is found in steps of five, wherever the search begins",
    arguments: [5, 60, 135, 140, 145, 300], [5, 37, 140, 144])
  func search(from guess: Int, most: Int) throws {
    let contestant = Scripted(most: most)
    let found = try SessionsSuite.limit(of: contestant, load(), from: guess)
    #expect(found.sessions == most / 5 * 5)
    #expect(found.tail == 1.01)
    #expect(contestant.asked.count <= 24)
  }

  @Test("one failed attempt does not count, two do")
  func slips() throws {
    #expect(try SessionsSuite.limit(of: Scripted(most: 100, slips: 1), load(), from: 100).sessions == 100)
    #expect(try SessionsSuite.limit(of: Scripted(most: 100, slips: 2), load(), from: 100).sessions == 95)
  }

  @Test("every contestant delivers each measured packet", arguments: [0, 1])
  func contestants(which: Int) throws {
    let contestant: any LiveContestant = which == 0 ? LiveFloor() : LiveMillrace()
    let bars = LatenessBars()
    try contestant.run(load(sessions: 3, measured: 10), bars)
    #expect(bars.total == 30)
  }

  @Test("sessions begin at different offsets of the voice")
  func offsets() {
    let load = load()
    let places = (0..<50).map { load.offset(of: $0) }
    #expect(Set(places).count == 50)
    #expect(places.allSatisfy { $0 % LiveLoad.frame == 0 && $0 + LiveLoad.frame <= load.voice.count })
  }

  @Test("lateness is counted in bars, and everything later in the last one")
  func bars() {
    let bars = LatenessBars(step: 10, count: 4)
    for late in [-5, 3, 9, 12, 25, 99] { bars.add(late) }
    #expect(bars.total == 6)
    #expect(bars.count(within: 10) == 3)
    #expect(bars.count(within: 20) == 4)
    #expect(bars.percentile(0.5) == 10)
    #expect(bars.percentile(1) == 40)
    #expect(LatenessBars().percentile(0.5).isNaN)
  }

  @Test("an interruption reaches the last node, which receives no stale packet", arguments: [1, 2])
  func interruption(workers: Int) throws {
    let delays = try InterruptSuite.measure(backlog: 100, workers: workers, times: 5)
    #expect(delays.count == 5)
    #expect(delays.allSatisfy { $0 > 0 })
    #expect(ReplySink.stale.exchange(0, ordering: .relaxed) == 0)
  }
}
