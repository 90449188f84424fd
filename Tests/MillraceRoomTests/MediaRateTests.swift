import MillraceCore
import MillraceRTC
import MillraceRTCWire
import Testing

@testable import MillraceRoom

@Suite("Room: bit rates of media") struct MediaRateTests {
  private let second: Nanoseconds = .milliseconds(1_000)

  @Test("videos that do not fit pause from the last, and the first never while pictures are carried at all")
  func pauses() {
    var budget = VideoBudget()
    var counts = [budget.fit([500, 500, 500], into: 2_000, at: 0)]
    counts.append(budget.fit([500, 500, 500], into: 1_100, at: second))
    counts.append(budget.fit([500, 500, 500], into: 100, at: second))
    counts.append(budget.fit([500, 500, 500], into: 0, at: second))
    #expect(counts == [3, 2, 1, 0])
  }

  @Test("a video goes on where it fits with room to spare, one at a time, and not at once")
  func resumes() {
    var budget = VideoBudget()
    _ = budget.fit([500, 500, 500], into: 600, at: 0)
    var counts: [Int] = []
    for time in [second, 2 * second, 3 * second, 4 * second] {
      counts.append(budget.fit([500, 500, 500], into: 2_000, at: time))
    }
    #expect(counts == [1, 2, 2, 3])
    // 1,000 of 1,100 is too near; after a while it is tried.
    budget = VideoBudget()
    counts = [budget.fit([500, 500], into: 900, at: 0)]
    counts.append(budget.fit([500, 500], into: 1_100, at: 9 * second))
    counts.append(budget.fit([500, 500], into: 1_100, at: 10 * second))
    #expect(counts == [1, 1, 2])
  }

  @Test("a trial that fails makes the next one wait longer, up to a limit")
  func trials() {
    var budget = VideoBudget()
    var now: Nanoseconds = 0
    var changes: [Nanoseconds] = []
    var last = budget.fit([500, 500], into: 900, at: now)
    while now < 600 * second {
      now += .milliseconds(200)
      let count = budget.fit([500, 500], into: 900, at: now)
      if count > last { changes.append(now) }
      last = count
    }
    let waits = zip(changes, changes.dropFirst()).map { ($1 - $0) / second }
    #expect(waits.first == 22 && waits.dropFirst(3).allSatisfy { $0 == 82 })
  }

  @Test(
    "where nothing is left for pictures the first is tried after a while: no estimate rises without it"
  )
  func revived() {
    var budget = VideoBudget()
    var counts = [budget.fit([500, 500], into: 2_000, at: 0)]
    for time in [second, 10 * second, 11 * second, 12 * second, 13 * second] {
      counts.append(budget.fit([500, 500], into: 0, at: time))
    }
    // Nothing, a trial after ten seconds for two, and nothing again.
    #expect(counts == [2, 0, 0, 1, 1, 0])
    // The next one comes later.
    counts = [32, 33, 34].map { budget.fit([500, 500], into: 0, at: $0 * second) }
    #expect(counts == [0, 1, 1])
    // With the trial the estimate has risen.
    counts = [budget.fit([500, 500], into: 600, at: 35 * second)]
    counts.append(budget.fit([500, 500], into: 600, at: 60 * second))
    #expect(counts == [1, 2])
  }

  @Test("without a video there is nothing to try, and the first that comes does not wait longer for it")
  func noVideo() {
    var budget = VideoBudget()
    var counts: [Int] = []
    for time in 0..<300 { counts.append(budget.fit([], into: 0, at: Nanoseconds(time) * second)) }
    counts.append(budget.fit([500], into: 0, at: 300 * second))
    counts.append(budget.fit([500], into: 0, at: 310 * second))
    #expect(counts.dropLast().allSatisfy { $0 == 0 } && counts.last == 1)
  }

  @Test("sound passes in packets of 10 ms and after a pause of the network, and no more than that")
  func soundCeiling() {
    var ceiling = SoundCeiling()
    var passed = 0
    for number in 0..<1_000 {
      let isAdmitted = ceiling.admits(160, at: second + Nanoseconds(number) * .milliseconds(10))
      if isAdmitted { passed += 1 }
    }
    // Two seconds of packets of 20 ms that were held back.
    for _ in 0..<100 {
      let isAdmitted = ceiling.admits(160, at: 14 * second)
      if isAdmitted { passed += 1 }
    }
    #expect(passed == 1_100)
    var flood = SoundCeiling()
    var counts = (small: 0, large: 0)
    for number in 0..<20_000 {
      let isAdmitted = flood.admits(100, at: second + Nanoseconds(number) * .milliseconds(1) / 2)
      if isAdmitted { counts.small += 1 }
    }
    flood = SoundCeiling()
    for number in 0..<20_000 {
      let isAdmitted = flood.admits(1_100, at: second + Nanoseconds(number) * .milliseconds(1) / 2)
      if isAdmitted { counts.large += 1 }
    }
    // Ten seconds, and what a second holds.
    #expect((1_300...1_321).contains(counts.small))
    #expect((620...641).contains(counts.large))
  }

  @Test("a video is too much above twice what sessions send, and never below what browsers do")
  func tooMuch() {
    var settings = RoomForwardingSettings()
    #expect(settings.mostVideoBitrate == 5_000_000)
    settings.session.videoBitrate = 100_000...500_000
    #expect(settings.mostVideoBitrate == 5_000_000)
    settings.session.videoBitrate = 100_000...8_000_000
    #expect(settings.mostVideoBitrate == 16_000_000)
    settings.session.videoBitrate = 100_000...Int.max
    #expect(settings.mostVideoBitrate == Int.max - 1)
  }

  @Test("the rate of a video is measured over a second, and is 0 when none comes")
  func rate() {
    var rate = PictureRate()
    for number in 0...50 { rate.note(1_000, at: Nanoseconds(number) * .milliseconds(40)) }
    #expect(rate.bitrate(at: 2 * second) == 200_000)
    #expect(rate.bitrate(at: 5 * second) == 0)
  }

  @Test("captures are spaced as the timestamps are, and never later than the arrival; jumps begin anew")
  func captures() {
    var clock = CaptureClock()
    let start = 10 * second
    // The second picture came 10 ms late, the third 5 ms.
    var times = [clock.time(0, of: 1, arrival: start)]
    times.append(clock.time(3_600, of: 1, arrival: start + .milliseconds(50)))
    times.append(clock.time(7_200, of: 1, arrival: start + .milliseconds(85)))
    #expect(times[0] == start)
    #expect(abs(times[1] - start - .milliseconds(40)) < 50_000)
    #expect(abs(times[2] - start - .milliseconds(80)) < 100_000)
    let jumps: [(Int64, UInt32)] = [(.max, 1), (.min, 1), (0, 1), (90_000_000, 1), (3_600, 2)]
    for (timestamp, ssrc) in jumps {
      let arrival = start + second
      let time = clock.time(timestamp, of: ssrc, arrival: arrival)
      #expect(time == arrival)
    }
  }
}
