import Foundation
import MillraceDSP
import Testing

/// Pseudo-random numbers, the same in every run.
private struct Dice {
  var state: UInt64
  mutating func uniform() -> Double {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Double(state >> 11) / 9_007_199_254_740_992
  }
  /// When a thread sees a block: mostly within a millisecond, sometimes 15 ms late.
  mutating func lateness() -> Double {
    let usual = -log(1 - uniform()) * 400_000
    return uniform() < 0.0003 ? usual + uniform() * 15_000_000 : usual
  }
}

/// Two devices with independent clocks, and the buffer between them.
private struct TwoClocks {
  static let rate = 48_000.0
  static let block = 480
  var result = (ppm: 0.0, noise: 0.0, latency: 0.0, spread: 0.0, worst: 0.0, jumps: 0)

  /// Runs `seconds` with a writer that is `skew` ppm fast, and looks at the last two fifths. At `stop` the writer's blocks jump by
  /// `gap` seconds.
  init(skew: Double, seconds: Int, seed: UInt64 = 1, stop: Int? = nil, gap: Double = 0) {
    var dice = Dice(state: seed)
    let count = seconds * 100
    let writerRate = Self.rate * (1 + skew * 1e-6)
    var (writer, reader) = (TimestampLoop(rate: 48_000), TimestampLoop(rate: 48_000))
    var control = DriftController(rate: 48_000)
    let target = 0.03 * Self.rate
    var (written, next, lastWrite) = (Int64(0), 1, 0.0)
    var (read, started) = (0.0, false)
    var (ratios, latencies): ([Double], [Double]) = ([], [])
    func writeTime(_ index: Int) -> Double {
      Double(index * Self.block) / writerRate * 1e9 + (stop.map { index > $0 * 100 } ?? false ? gap * 1e9 : 0)
    }
    var lastSeen = 0.0
    for index in 1...count {
      let due = 4_200_000 + Double(index * Self.block) / Self.rate * 1e9
      let seen = max(lastSeen, due + dice.lateness())
      lastSeen = seen
      while true {
        let time = max(lastWrite, writeTime(next) + dice.lateness())
        guard time <= seen else { break }
        lastWrite = time
        written += Int64(Self.block)
        writer.update(position: written, at: Int64(time))
        next += 1
      }
      reader.update(position: Int64(index * Self.block), at: Int64(seen))
      guard writer.isRunning else { continue }
      let now = reader.time(of: Double(index * Self.block))
      if !started {
        guard Double(written) >= target + Double(Self.block) else { continue }
        (started, read) = (true, Double(written) - target)
      }
      let error = writer.position(at: now) - read - target - Double(Self.block) / 2
      if control.mustJump(error) {
        read += error
        control.settle()
        result.jumps += 1
        continue
      }
      let correction = control.update(error: error, frames: Self.block)
      read += Double(Self.block) * (1 + correction)
      let between =
        (due - (stop.map { due > Double($0) * 1e9 } ?? false ? gap * 1e9 : 0)) * writerRate / 1e9 - read
      if stop == nil { result.worst = max(result.worst, abs(between - target) / Self.rate) }
      if index > count * 3 / 5 {
        ratios.append(correction * 1e6)
        latencies.append(between / Self.rate * 1e3)
      }
    }
    func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(values.count) }
    func deviation(_ values: [Double]) -> Double {
      let middle = mean(values)
      return mean(values.map { ($0 - middle) * ($0 - middle) }).squareRoot()
    }
    result.ppm = mean(ratios)
    result.noise = deviation(ratios)
    result.latency = mean(latencies)
    result.spread = deviation(latencies)
  }
}

@Suite("Device clocks")
struct ClockTests {
  @Test("the loop recovers a device's rate and time from late blocks", arguments: [-300.0, 0, 100, 300])
  func finds(skew: Double) {
    var dice = Dice(state: 7)
    var loop = TimestampLoop(rate: 48_000)
    let period = 1e9 / (48_000 * (1 + skew * 1e-6))
    let start: Int64 = 5_000_000_000_000_000
    for index in 1...12_000 {
      let exact = Double(index * 480) * period
      loop.update(position: Int64(index * 480), at: start + Int64(exact + dice.lateness()))
    }
    #expect(abs(loop.skew - skew) < 15)
    let end = 12_000.0 * 480
    #expect(abs(Double(loop.time(of: end) - start) - end * period - 400_000) < 300_000)
    #expect(abs(loop.position(at: loop.time(of: 1_234_567)) - 1_234_567) < 0.001)
    #expect(loop.jumps == 0)
  }

  @Test("blocks of any length give the same line")
  func lengths() {
    var dice = Dice(state: 3)
    var loop = TimestampLoop(rate: 16_000)
    var position: Int64 = 0
    for _ in 1...20_000 {
      position += Int64(1 + dice.uniform() * 400)
      loop.update(position: position, at: Int64(Double(position) / 16_000 * 1e9 * (1 - 100e-6)))
    }
    #expect(abs(loop.skew - 100) < 1)
  }

  @Test("a jump restarts the line and keeps the rate; a block that does not advance changes nothing")
  func jump() {
    var loop = TimestampLoop(rate: 48_000)
    for index in 1...3_000 { loop.update(position: Int64(index * 480), at: Int64(index * 9_998_000)) }
    let skew = loop.skew
    loop.update(position: 3_000 * 480, at: 40_000_000_000)
    #expect(loop.skew == skew && loop.jumps == 0)
    loop.update(position: 3_001 * 480, at: 31_000_000_000)
    #expect(loop.jumps == 1 && loop.skew == skew)
    #expect(loop.time(of: 3_001 * 480) == 31_000_000_000)
  }

  @Test("no input drives the rate out of its bounds")
  func bounds() {
    var dice = Dice(state: 9)
    var loop = TimestampLoop(rate: 48_000)
    var (position, time): (Int64, Int64) = (0, 0)
    for _ in 1...10_000 {
      position += Int64(dice.uniform() * 5_000)
      time += Int64(dice.uniform() * 60_000_000)
      loop.update(position: position, at: time)
      #expect(abs(loop.skew) < 1_010)
    }
  }

  @Test(
    "drift is tracked to a few ppm, and the latency stays on target",
    arguments: [-300.0, 0, 100, 200])
  func follows(skew: Double) {
    let run = TwoClocks(skew: skew, seconds: 300).result
    #expect(abs(run.ppm - skew) < 3, "\(run)")
    #expect(run.noise < 12, "\(run)")
    #expect(run.spread < 0.3, "\(run)")
    #expect(abs(run.latency - 30) < 6, "\(run)")
    #expect(run.jumps == 0)
    #expect(run.worst < 0.02, "\(run)")
  }

  @Test("a stall of the writer is one jump, counted once, and the latency recovers")
  func stall() {
    let run = TwoClocks(skew: 100, seconds: 200, stop: 60, gap: 0.2).result
    #expect(run.jumps == 1, "\(run)")
    #expect(abs(run.latency - 30) < 6, "\(run)")
    #expect(abs(run.ppm - 100) < 3, "\(run)")
  }

  @Test("above the target the reader speeds up, below it slows down, both within bounds")
  func signs() {
    for sign in [1.0, -1] {
      var control = DriftController(rate: 48_000)
      #expect(sign * control.update(error: sign * 100, frames: 480) > 0)
      for _ in 0..<100_000 { _ = control.update(error: sign * 2_000, frames: 480) }
      #expect(abs(control.correction - sign * 1e-3) < 1e-12)
      #expect(abs(control.drift - sign * 800) < 1e-6)
      control.settle()
      #expect(abs(control.correction - sign * 8e-4) < 1e-12)
    }
    let control = DriftController(rate: 48_000)
    #expect(!control.mustJump(2_880) && control.mustJump(2_881) && control.mustJump(-2_881))
  }
}
