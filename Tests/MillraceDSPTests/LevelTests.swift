import Glibc
import Testing

@testable import MillraceDSP

@Suite("Levels, gain and channels")
struct LevelTests {
  @Test("decibels round-trip, and stop at the floor")
  func decibels() {
    #expect(Decibels.decibels(amplitude: 1) == 0)
    #expect(abs(Decibels.decibels(amplitude: 0.5) - -6.0206) < 1e-4)
    #expect(abs(Decibels.decibels(power: 0.5) - -3.0103) < 1e-4)
    for silent in [0.0, -1, .nan, 1e-7] { #expect(Decibels.decibels(amplitude: silent) == -120) }
    for silent in [0.0, -1, .nan, 1e-13] { #expect(Decibels.decibels(power: silent) == -120) }
    #expect(Decibels.amplitude(decibels: -120) == 0)
    #expect(Decibels.amplitude(decibels: .nan) == 0)
    #expect(Decibels.power(decibels: -500) == 0)
    for value in [-119.0, -60, -3, 0, 12] {
      #expect(abs(Decibels.decibels(amplitude: Decibels.amplitude(decibels: value)) - value) < 1e-9)
      #expect(abs(Decibels.decibels(power: Decibels.power(decibels: value)) - value) < 1e-9)
    }
  }

  @Test("a full-scale square reads 0 dBFS, a full-scale sine -3.01")
  func reference() {
    let square = (0..<480).map { Float($0 % 2 == 0 ? 1 : -1) }
    #expect(LevelReading(of: square.span) == LevelReading(rms: 1, peak: 1))
    let sine = LevelReading(of: tone(1000, rate: 48000, count: 4800, amplitude: 1).span)
    #expect(abs(sine.rmsDecibels - -3.0103) < 1e-3)
    #expect(abs(sine.peakDecibels) < 1e-6)
    #expect(LevelReading(of: [Int16.min].span).peak == 1)
    #expect(LevelReading(of: [Int16]().span).rmsDecibels == -120)
  }

  @Test("a meter reports each window once, however the stream is chunked", arguments: [1, 7, 160, 480, 0])
  func windows(piece: Int) {
    let samples = noise16(3000)
    let floats = samples.map { Float($0) / 32768 }
    let expected = stride(from: 0, through: 2400, by: 480).map {
      LevelReading(of: samples.span.extracting($0..<$0 + 480))
    }
    var (meter, floatMeter) = (LevelMeter(windowFrames: 240, channels: 2), LevelMeter(windowFrames: 480))
    var (levels, floatLevels): ([LevelReading], [LevelReading]) = ([], [])
    for range in pieces(of: 3000, length: piece) {
      meter.measure(samples.span.extracting(range)) { levels.append($0) }
      floatMeter.measure(floats.span.extracting(range)) { floatLevels.append($0) }
    }
    #expect(levels == expected)
    for (a, b) in zip(floatLevels, expected) {
      #expect(a.peak == b.peak)
      #expect(abs(a.rms - b.rms) < 1e-12)
    }
    #expect(meter.unfinished?.samples == 120)
    #expect(meter.unfinished?.level == LevelReading(of: samples.span.extracting(2880...)))
    meter.reset()
    #expect(meter.unfinished == nil)
  }

  @Test("a ramp moves by equal steps and then stays", arguments: [1, 7, 100, 0])
  func ramp(piece: Int) {
    var (ramp, ramp16) = (GainRamp(gain: 0), GainRamp(gain: 0))
    for one in [0, 1] {
      if one == 0 { ramp.ramp(to: 1, milliseconds: 10, sampleRate: 8000) }
      if one == 0 { ramp16.ramp(to: 1, frames: 80) }
    }
    var samples = [Float](repeating: 1, count: 400)
    var shorts = [Int16](repeating: 1000, count: 400)
    for range in pieces(of: 200, length: piece) {
      var span = samples.mutableSpan
      var part = span._mutatingExtracting(range.lowerBound * 2..<range.upperBound * 2)
      ramp.apply(to: &part, channels: 2)
      var span16 = shorts.mutableSpan
      var part16 = span16._mutatingExtracting(range.lowerBound * 2..<range.upperBound * 2)
      ramp16.apply(to: &part16, channels: 2)
    }
    for frame in 0..<200 {
      let gain = Float(min(Double(frame) / 80, 1))
      #expect(samples[2 * frame] == gain)
      #expect(samples[2 * frame + 1] == gain)
      #expect(shorts[2 * frame] == Int16((gain * 1000).rounded(.toNearestOrEven)))
    }
    #expect(!ramp.isRamping)
  }

  @Test("a ramp that is redirected continues from its present gain")
  func turned() {
    var ramp = GainRamp(gain: 1)
    ramp.ramp(to: 0, frames: 10)
    var samples = [Float](repeating: 1, count: 5)
    var span = samples.mutableSpan
    ramp.apply(to: &span)
    #expect(ramp.current == 0.5)
    #expect(ramp.isRamping)
    ramp.ramp(to: 1, frames: 5)
    #expect(ramp.current == 0.5)
    ramp.ramp(to: 0.25, frames: 0)
    #expect(ramp.current == 0.25)
    #expect(ramp.target == 0.25)
    var rest = [Float](repeating: 1, count: 3)
    var restSpan = rest.mutableSpan
    ramp.apply(to: &restSpan)
    #expect(rest == [0.25, 0.25, 0.25])
  }

  @Test("channel counts change with the stated gains")
  func matrices() {
    func mixed(_ matrix: ChannelMatrix, _ input: [Int16]) -> [Int16] {
      var output = [Int16](repeating: 7, count: input.count / matrix.inputs * matrix.outputs)
      var span = output.mutableSpan
      let frames = matrix.apply(input.span, into: &span)
      #expect(frames == input.count / matrix.inputs)
      return output
    }
    #expect(mixed(ChannelMatrix(inputs: 1, outputs: 2), [5, -6]) == [5, 5, -6, -6])
    #expect(
      mixed(ChannelMatrix(inputs: 2, outputs: 1), [32767, 32767, -32768, -32768, 3, 4]) == [32767, -32768, 4])
    #expect(mixed(ChannelMatrix(inputs: 2, outputs: 1, downMix: .equalPower), [1000, 1000]) == [1414])
    #expect(mixed(ChannelMatrix(inputs: 2, outputs: 1, downMix: .equalPower), [32000, 32000]) == [32767])
    #expect(mixed(ChannelMatrix(inputs: 2, outputs: 1, downMix: .first), [1, 2, 3, 4]) == [1, 3])
    #expect(mixed(ChannelMatrix(inputs: 2, outputs: 2), [1, 2]) == [1, 2])
    #expect(mixed(ChannelMatrix(inputs: 2, outputs: 3), [1, 2]) == [1, 2, 0])
    #expect(mixed(ChannelMatrix(inputs: 3, outputs: 2), [1, 2, 3]) == [1, 2])
    var floats = [Float](repeating: 0, count: 2)
    var span = floats.mutableSpan
    ChannelMatrix(inputs: 2, outputs: 1).apply([0.5, 0.25, -1, 1].span, into: &span)
    #expect(floats == [0.375, 0])
  }

  @Test("rounding to 16 bits saturates and makes NaN 0")
  func rounding() {
    let values: [Float] = [.nan, .infinity, -.infinity, 32767.4, 32766.5, -32768.9, 0.5, 1.5, -0.5]
    #expect(values.map { Int16(rounding: $0) } == [0, 32767, -32768, 32767, 32766, -32768, 0, 2, 0])
  }

  @Test("levels, gain and channels allocate nothing")
  func heap() {
    var meter = LevelMeter(windowFrames: 100)
    var ramp = GainRamp(gain: 0)
    let matrix = ChannelMatrix(inputs: 2, outputs: 1)
    let shorts = noise16(480)
    var (output, mono) = (shorts, shorts)
    var total = 0.0
    let requests = heapRequests {
      for _ in 0..<20 {
        meter.measure(shorts.span) { total += $0.rmsDecibels }
        ramp.ramp(to: 1, frames: 300)
        var span = output.mutableSpan
        ramp.apply(to: &span)
        var monoSpan = mono.mutableSpan
        matrix.apply(shorts.span, into: &monoSpan)
      }
    }
    #expect(requests == 0)
    #expect(total < 0)
  }
}
