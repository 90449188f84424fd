import Testing

@testable import MillraceRTCWire

/// 2026-01-01 in nanoseconds since 1970.
private let newYear: Int64 = 1_767_225_600 * second

@Suite("RTP: clocks") struct RTPClockTests {
  @Test("1970 is 2,208,988,800 s after the NTP epoch")
  func epoch() {
    #expect(NTPTime(unixNanoseconds: 0).rawValue == 0x83AA_7E80_0000_0000)
    #expect(NTPTime(unixNanoseconds: second / 2).rawValue == 0x83AA_7E80_8000_0000)
    #expect(NTPTime(unixNanoseconds: -second / 4).rawValue == 0x83AA_7E7F_C000_0000)
    #expect(NTPTime(rawValue: 0x1122_3344_5566_7788).middle == 0x3344_5566)
  }

  @Test("nanoseconds survive the way to NTP and back, also beyond 2036")
  func roundTrip() {
    var random = SeededRandom(seed: 4)
    for _ in 0..<10_000 {
      let time = Int64.random(in: 0...130 * 365 * 86_400 * second, using: &random)
      #expect(NTPTime(unixNanoseconds: time).unixNanoseconds == time)
    }
  }

  @Test("durations in 1/65,536 s are limited to what 32 bits hold")
  func short() {
    #expect(NTPTime.short(nanoseconds: 5 * second + second / 4) == 0x0005_4000)
    #expect(NTPTime.short(nanoseconds: -1) == 0)
    #expect(NTPTime.short(nanoseconds: 65_536 * second) == .max)
    #expect(NTPTime.short(nanoseconds: .max) == .max)
    #expect(NTPTime.nanoseconds(short: 0x0005_4000) == 5 * second + second / 4)
  }

  @Test("timestamps are mapped by the last report, over the wrap and before it")
  func mapping() {
    var clock = MediaClock(clockRate: 90_000)
    #expect(clock.time(of: 0) == nil && clock.timestamp(at: 0) == nil && !clock.isSynchronized)
    clock.note(NTPTime(unixNanoseconds: newYear), timestamp: 0xFFFF_FFFF)
    #expect(clock.time(of: 89_999) == newYear + second)
    #expect(clock.time(of: 0xFFFF_FFFF - 45_000) == newYear - second / 2)
    #expect(clock.timestamp(at: newYear + second) == 89_999)
    clock.reset()
    #expect(clock.time(of: 0) == nil)
  }

  @Test("a media clock that is 200 ppm fast is followed between reports")
  func drift() throws {
    var clock = MediaClock(clockRate: 48_000)
    clock.note(NTPTime(unixNanoseconds: newYear), timestamp: 0)
    // 5 s of a clock with 48,009.6 Hz.
    clock.note(NTPTime(unixNanoseconds: newYear + 5 * second), timestamp: 240_048)
    #expect(abs(clock.drift - 0.0002) < 1e-9)
    let time = try #require(clock.time(of: 240_048 + 480_096))
    #expect(abs(time - (newYear + 15 * second)) < 1_000)
  }

  @Test("a rate that is no drift is replaced by the nominal rate, and the last report counts")
  func implausible() {
    var clock = MediaClock(clockRate: 48_000)
    clock.note(NTPTime(unixNanoseconds: newYear), timestamp: 0)
    clock.note(NTPTime(unixNanoseconds: newYear + 5 * second), timestamp: 250_000)
    #expect(clock.drift == 0)
    #expect(clock.time(of: 298_000) == newYear + 6 * second)
  }

  @Test("a report that comes twice or was overtaken is ignored, a wall clock that is set back is not")
  func order() {
    var clock = MediaClock(clockRate: 48_000)
    clock.note(NTPTime(unixNanoseconds: newYear + 5 * second), timestamp: 240_000)
    clock.note(NTPTime(unixNanoseconds: newYear), timestamp: 77)
    clock.note(NTPTime(rawValue: 0), timestamp: 5)
    #expect(clock.timestamp(at: newYear + 5 * second) == 240_000)
    clock.note(NTPTime(unixNanoseconds: newYear), timestamp: 480_000)
    #expect(clock.time(of: 480_000) == newYear)
    clock.note(NTPTime(unixNanoseconds: newYear - 3_600 * second), timestamp: 10)
    #expect(clock.time(of: 10) == newYear - 3_600 * second)
  }

  @Test("sound and picture of the same instant have the same time within a millisecond, at 100 ppm apart")
  func lipSync() throws {
    var (audio, video) = (MediaClock(clockRate: 48_000), MediaClock(clockRate: 90_000))
    func audioTimestamp(_ time: Int64) -> UInt32 {
      UInt32(truncatingIfNeeded: 77 + time / 1_000 * 480_048 / 10_000_000)
    }
    func videoTimestamp(_ time: Int64) -> UInt32 {
      UInt32(truncatingIfNeeded: 4_294_000_000 + time / 1_000 * 90_000 / 1_000_000)
    }
    for report in 0..<20 as Range<Int64> {
      let (a, v) = (report * 5 * second, report * second + 300 * millisecond)
      audio.note(NTPTime(unixNanoseconds: newYear + a), timestamp: audioTimestamp(a))
      video.note(NTPTime(unixNanoseconds: newYear + v), timestamp: videoTimestamp(v))
    }
    let now = 97 * second
    let (heard, seen) = (
      try #require(audio.time(of: audioTimestamp(now))), try #require(video.time(of: videoTimestamp(now)))
    )
    #expect(abs(heard - seen) < millisecond)
  }

  @Test("any report and timestamp are taken without a trap")
  func hostile() {
    var random = SeededRandom(seed: 5)
    for rate in [Int.min, 0, 1, 8_000, 90_000, Int.max] {
      var clock = MediaClock(clockRate: rate)
      for _ in 0..<4_000 {
        clock.note(NTPTime(rawValue: random.next()), timestamp: UInt32(truncatingIfNeeded: random.next()))
        #expect(clock.time(of: UInt32(truncatingIfNeeded: random.next())) != nil)
        _ = clock.timestamp(at: Int64(bitPattern: random.next()))
      }
    }
  }
}
