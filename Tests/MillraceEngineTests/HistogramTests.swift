import MillraceCore
import Testing

@testable import MillraceEngine

@Suite("Histograms")
struct HistogramTests {
  @Test(
    "every value lies between the start of its bucket and the start of the next, which is at most an eighth away"
  )
  func buckets() {
    var dice = SeededGenerator(state: 1)
    let random = (0..<10_000).map { _ in
      UInt64.random(in: 0..<1 << 35, using: &dice) >> UInt64.random(in: 0..<30, using: &dice)
    }
    for value in random + [0, 1, 63, 64, 65, 71, 72, 127, 128, (1 << 35) - 1] {
      let bucket = HistogramCounters.bucket(of: value)
      let (start, end) = (HistogramCounters.start(of: bucket), HistogramCounters.start(of: bucket + 1))
      #expect(start <= value && value < end)
      if value >= 64 { #expect(Double(end - start) <= Double(start) / 8) }
    }
  }

  @Test("values above the last octave are in the last bucket")
  func overflow() {
    let counters = HistogramCounters()
    for value in [1 << 35, 1 << 40, UInt64.max] { counters.add(value) }
    #expect(HistogramCounters.bucket(of: 1 << 35 - 1) == HistogramCounters.bucketCount - 2)
    let histogram = counters.read(largest: .max) { Nanoseconds(clamping: $0) }
    #expect(histogram.buckets == [.init(range: 1 << 35 ..< .max, count: 3)])
  }

  @Test(
    "quantiles are never below the true ones and at most an eighth above", arguments: [1, 2, 10, 999, 5_000])
  func quantiles(count: Int) {
    let counters = HistogramCounters()
    var dice = SeededGenerator(state: 1)
    let values = (0..<count).map { _ in UInt64.random(in: 64..<50_000_000, using: &dice) }.sorted()
    for value in values { counters.add(value) }
    let histogram = counters.read(largest: Nanoseconds(values[count - 1])) { Nanoseconds($0) }
    #expect(histogram.count == count)
    for share in [0.001, 0.5, 0.9, 0.99, 1] {
      let exact = Double(values[max(1, Int((share * Double(count)).rounded(.up))) - 1])
      let read = Double(histogram.quantile(share) ?? 0)
      #expect(read >= exact && read <= exact * 1.125 + 1)
    }
    #expect(histogram.quantile(1) == Nanoseconds(values[count - 1]), "the largest is known exactly")
  }

  @Test("an empty histogram has no quantile")
  func empty() {
    #expect(Histogram().quantile(0.5) == nil)
    #expect(Histogram().count == 0)
  }

  @Test("merging adds two histograms")
  func merging() {
    let first = HistogramCounters()
    let second = HistogramCounters()
    let both = HistogramCounters()
    for value in [100, 100, 5_000, 70_000] as [UInt64] {
      first.add(value)
      both.add(value)
    }
    for value in [100, 6_000, 900_000] as [UInt64] {
      second.add(value)
      both.add(value)
    }
    let merged = first.read(largest: 70_000) { Nanoseconds($0) }
      .merged(with: second.read(largest: 900_000) { Nanoseconds($0) })
    #expect(merged == both.read(largest: 900_000) { Nanoseconds($0) })
  }

  @Test("ages are counted at sinks, call times everywhere")
  func ofARun() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 10, "interval": 20])
    let middle = builder.add("ageing", "test.ageing")
    let sink = builder.add("sink", "test.collect", ["probe": "ages"])
    builder.link(source, middle)
    builder.link(middle, sink)
    let report = try builder.plan.runToEnd(.virtual)
    let ages = try #require(report.nodes[sink].ages)
    #expect(ages.count == 10)
    #expect(ages.largest == .milliseconds(90))
    let median = try #require(ages.quantile(0.5))
    #expect(median >= .milliseconds(40) && median <= .milliseconds(45))
    #expect(ages.buckets.first == .init(range: 0..<64, count: 1), "the first packet was not old at all")
    #expect(report.nodes[source].ages == nil && report.nodes[middle].ages == nil)
    for node in report.nodes { #expect(node.callTimes.count == node.activations) }
  }

  @Test("a graph that follows no clock has no ages")
  func withoutClock() throws {
    let report = try PlanBuilder.chain(source: ["count": 10], passes: 0, probe: "ageless").runToEnd()
    #expect(report.nodes.allSatisfy { $0.ages == nil && $0.worstAge == nil })
  }
}
