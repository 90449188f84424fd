import Testing

@testable import MillraceRTCWire

@Suite("RTCP: schedule of reports") struct RTCPReportScheduleTests {
  /// The intervals of a thousand reports.
  private func intervals(_ schedule: inout ReportSchedule) -> [Int64] {
    var (intervals, last) = ([Int64](), schedule.deadline ?? 0)
    for _ in 0..<1_000 {
      _ = schedule.due(at: last)
      let next = schedule.deadline ?? 0
      intervals.append(next - last)
      last = next
    }
    return intervals
  }

  @Test("reports about sound are 2.5 to 7.5 s apart, 5 s in the mean, the first after half of that")
  func audio() throws {
    var schedule = ReportSchedule(.audio, seed: 1, at: 10 * second)
    let first = try #require(schedule.deadline)
    #expect((10 * second + 5 * second / 4...10 * second + 15 * second / 4).contains(first))
    let intervals = intervals(&schedule)
    #expect(intervals.allSatisfy { (5 * second / 2..<15 * second / 2).contains($0) })
    #expect(intervals.contains { $0 < 3 * second } && intervals.contains { $0 > 7 * second })
    #expect(abs(intervals.reduce(0, +) / 1_000 - 5 * second) < second / 10)
  }

  @Test(
    "reports about video are 360 divided by the bitrate in kbit/s apart, within 0.1 and 1 s",
    arguments: [
      (0, 1_000), (-5, 1_000), (100_000, 1_000), (720_000, 500), (2_000_000, 180), (50_000_000, 100),
      (.max, 100),
    ]
      as [(Int64, Int64)])
  func video(_ bitrate: Int64, _ milliseconds: Int64) {
    var schedule = ReportSchedule(.video, seed: 1, at: 0)
    schedule.bitrate = bitrate
    #expect(schedule.interval == milliseconds * millisecond)
    let intervals = intervals(&schedule)
    #expect(intervals.allSatisfy { (schedule.interval / 2..<schedule.interval * 3 / 2).contains($0) })
  }

  @Test("a seed gives the same times, another seed others")
  func seeds() {
    var schedules = [1, 1, 2].map { ReportSchedule(.audio, seed: $0, at: 0) }
    let times = schedules.indices.map { intervals(&schedules[$0]) }
    #expect(times[0] == times[1] && times[0] != times[2])
  }

  @Test("a late owner gets one report, not all that were missed")
  func late() {
    var schedule = ReportSchedule(.audio, seed: 1, at: 0)
    let actions = [schedule.due(at: second), schedule.due(at: 100 * second), schedule.due(at: 100 * second)]
    #expect(actions == [nil, .report, nil])
    #expect((schedule.deadline ?? 0) > 102 * second)
  }

  @Test("the end is reported at once and only once")
  func end() {
    var schedule = ReportSchedule(.audio, seed: 1, at: 0)
    _ = schedule.due(at: 10 * second)
    schedule.end(at: 11 * second, sentMedia: false)
    #expect(schedule.deadline == 11 * second)
    let actions = [schedule.due(at: 11 * second), schedule.due(at: 99 * second)]
    schedule.end(at: 100 * second, sentMedia: true)
    #expect(actions == [.goodbye, nil] && schedule.deadline == nil)
  }

  @Test("who sent nothing does not say goodbye", arguments: [false, true])
  func silent(_ sentMedia: Bool) {
    var schedule = ReportSchedule(.video, seed: 1, at: 0)
    schedule.end(at: 1, sentMedia: sentMedia)
    let action = schedule.due(at: 2)
    #expect(action == (sentMedia ? .goodbye : nil))
  }
}
