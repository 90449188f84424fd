import Glibc
import Testing

@testable import MillraceDSP

@Suite("Signal generators")
struct GeneratorTests {
  static let signals: [SignalGenerator.Signal] = [
    .silence, .sine(frequency: 997), .sweep(.linear, from: 20, to: 20000, frames: 900, repeats: true),
    .sweep(.logarithmic, from: 20, to: 20000, frames: 900, repeats: false), .noise(.white, seed: 3),
    .noise(.pink, seed: 3), .impulses(everyFrames: 37),
  ]

  static func render(_ signal: SignalGenerator.Signal, frames: Int, piece: Int, channels: Int) throws -> (
    [Float], [Int16]
  ) {
    var floats = try SignalGenerator(signal, sampleRate: 48000, amplitude: 0.9, channels: channels)
    var shorts = floats
    var (a, b): ([Float], [Int16]) = ([], [])
    for range in pieces(of: frames, length: piece) {
      var run = [Float](repeating: 9, count: range.count * channels)
      var span = run.mutableSpan
      floats.render(into: &span)
      a += run
      var run16 = [Int16](repeating: 9, count: range.count * channels)
      var span16 = run16.mutableSpan
      shorts.render(into: &span16)
      b += run16
    }
    #expect(floats.position == Int64(frames))
    return (a, b)
  }

  @Test("a signal does not depend on the block lengths requested", arguments: signals)
  func chunking(signal: SignalGenerator.Signal) throws {
    let whole = try Self.render(signal, frames: 2000, piece: 2000, channels: 2)
    for piece in [1, 7, 480, 0] {
      let cut = try Self.render(signal, frames: 2000, piece: piece, channels: 2)
      #expect(cut.0 == whole.0)
      #expect(cut.1 == whole.1)
    }
  }

  @Test("both sample types carry the same signal on every channel", arguments: signals)
  func types(signal: SignalGenerator.Signal) throws {
    let (floats, shorts) = try Self.render(signal, frames: 2000, piece: 480, channels: 3)
    for index in floats.indices {
      #expect(abs(Float(shorts[index]) - floats[index] * 32768) <= 0.51)
      #expect(floats[index] == floats[index / 3 * 3])
    }
  }

  @Test("a reset signal starts again", arguments: signals)
  func reset(signal: SignalGenerator.Signal) throws {
    var generator = try SignalGenerator(signal, sampleRate: 48000)
    var (first, second) = ([Float](repeating: 0, count: 777), [Float](repeating: 1, count: 777))
    var span = first.mutableSpan
    generator.render(into: &span)
    generator.reset()
    #expect(generator.position == 0)
    var again = second.mutableSpan
    generator.render(into: &again)
    #expect(first == second)
  }

  @Test("the polynomial sine equals the library's to 1e-12 over the whole turn")
  func sine() {
    var random = Xoshiro256(seed: 1)
    let corners: [UInt64] = [
      0, 1, 1 << 62, (1 << 62) - 1, (1 << 62) + 1, 1 << 63, (1 << 63) - 1, 3 << 62, .max,
    ]
    for turn in corners + (0..<10000).map({ _ in random.next() }) {
      let exact = sin(2 * .pi * (Double(turn) / 0x1p64))
      #expect(abs(Oscillator.sine(turn: turn) - exact) < 1e-12)
    }
  }

  @Test("after ten hours the phase of a sine is still exact")
  func drift() {
    // 36,000 s of 1000.3 Hz at 44.1 kHz is a whole number of turns, so the sample there equals the first.
    var late = Oscillator(frequency: 1000.3, sampleRate: 44100)
    for _ in 0..<44_100 * 10 { _ = late.next() }
    var early = Oscillator(frequency: 1000.3, sampleRate: 44100)
    for _ in 0..<100 { #expect(abs(late.next() - early.next()) < 1e-9) }
    // The step itself is exact to a few 2^-64 of a turn: ten hours multiply that by 1.6e9.
    let hours = Oscillator(frequency: 1000.3 * 44100 * 36000, sampleRate: 44100, phase: 0)
    #expect(abs(hours.peek()) < 1e-9)
  }

  @Test("a sine has the requested frequency and no DC", arguments: [0.01, 1, 440.0, 997.3, 19999.9])
  func frequency(frequency: Double) {
    var oscillator = Oscillator(frequency: frequency, sampleRate: 48000)
    for index in 0..<5000 {
      #expect(abs(oscillator.next() - sin(2 * .pi * frequency * Double(index) / 48000)) < 1e-8)
    }
  }

  @Test("a sweep reaches its frequencies at the right times", arguments: Sweep.Curve.allCases)
  func sweep(curve: Sweep.Curve) {
    var sweep = Sweep(curve, from: 100, to: 6400, frames: 48000, sampleRate: 48000)
    let samples = (0..<48000).map { _ in sweep.next() }
    #expect(sweep.next() == 0)
    // Around each place the sign changes twice a turn.
    for share in [0.25, 0.5, 0.75] {
      let middle = Int(48000 * share)
      let crossings = ((middle - 1200)..<(middle + 1200)).count { (samples[$0] < 0) != (samples[$0 + 1] < 0) }
      let expected = curve == .linear ? 100 + 6300 * share : 100 * pow(64, share)
      #expect(abs(Double(crossings) / 2 / 0.05 - expected) < expected * 0.02 + 20)
    }
  }

  @Test("white noise has the stated level and no correlation")
  func white() {
    var source = NoiseSource(.white, seed: 5)
    let samples = (0..<200_000).map { _ in source.next() }
    let power = samples.reduce(0) { $0 + $1 * $1 } / 200_000
    #expect(abs(power - 1.0 / 3) < 0.005)
    #expect(samples.allSatisfy { $0 >= -1 && $0 < 1 })
    let next = zip(samples, samples.dropFirst()).reduce(0) { $0 + $1.0 * $1.1 } / 200_000
    #expect(abs(next) < 0.003)
    var other = NoiseSource(.white, seed: 6)
    #expect(other.next() != samples[0])
  }

  @Test("pink noise has the stated level and falls by 3 dB an octave")
  func pink() {
    var source = NoiseSource(.pink, seed: 5)
    let count = 1 << 18
    let samples = (0..<count).map { _ in source.next() }
    let power = samples.reduce(0) { $0 + $1 * $1 } / Double(count)
    #expect(abs(power.squareRoot() - 0.25) < 0.015)
    #expect(samples.count { abs($0) == 1 } < 100)
    // Power of octave bands by halving: the difference of two neighbours' sum and difference splits the band
    // in two.
    var (low, bands) = (samples, [Double]())
    for _ in 0..<8 {
      let half = low.count / 2
      var (sums, power) = ([Double](), 0.0)
      for index in 0..<half {
        let (a, b) = (low[2 * index], low[2 * index + 1])
        power += (a - b) * (a - b) / 4
        sums.append((a + b) / 2)
      }
      bands.append(power / Double(half))
      low = sums
    }
    // Equal power an octave: every band within 1.5 dB of its neighbours.
    for (a, b) in zip(bands.dropFirst(), bands.dropFirst(2)) { #expect(abs(10 * log10(a / b)) < 1.5) }
  }

  @Test("impulses are spaced exactly")
  func impulses() throws {
    let (floats, _) = try Self.render(.impulses(everyFrames: 37), frames: 1000, piece: 100, channels: 1)
    #expect(floats.indices.allSatisfy { floats[$0] == ($0 % 37 == 0 ? 0.9 : 0) })
  }

  @Test("full scale saturates in 16 bits")
  func fullScale() throws {
    var generator = try SignalGenerator(.sine(frequency: 12000), sampleRate: 48000, amplitude: 1)
    var samples = [Int16](repeating: 0, count: 4)
    var span = samples.mutableSpan
    generator.render(into: &span)
    #expect(samples == [0, 32767, 0, -32768])
  }

  @Test("an invalid signal is refused with a message")
  func problems() {
    func text(_ signal: SignalGenerator.Signal, rate: Int = 48000, channels: Int = 1, amplitude: Double = 1)
      -> String
    {
      do {
        _ = try SignalGenerator(signal, sampleRate: rate, amplitude: amplitude, channels: channels)
        return "no problem"
      } catch { return error.description }
    }
    #expect(
      text(.sine(frequency: 30000))
        == "a frequency of 30000.0 Hz is out of range at 48000 Hz; use 0.0 to 24000 Hz")
    #expect(
      text(.sweep(.logarithmic, from: 0, to: 100, frames: 10, repeats: false))
        == "a frequency of 0.0 Hz is out of range at 48000 Hz; use 0.001 to 24000 Hz")
    #expect(text(.sine(frequency: .nan)).hasPrefix("a frequency of nan Hz"))
    #expect(
      text(.sweep(.linear, from: 0, to: 9, frames: 0, repeats: false))
        == "a sweep of 0 samples is not supported; use 1 or more")
    #expect(text(.impulses(everyFrames: 0)) == "impulses every 0 samples are not supported; use 1 or more")
    #expect(text(.silence, rate: 0) == "a sample rate of 0 Hz is not supported; use 1 Hz to 1000000 Hz")
    #expect(text(.silence, channels: 0) == "0 channels are not supported; use 1 to 255")
    #expect(text(.silence, amplitude: .nan) == "an amplitude of nan is not supported; use 0 to 1")
  }

  @Test("rendering allocates nothing", arguments: signals)
  func heap(signal: SignalGenerator.Signal) throws {
    var generator = try SignalGenerator(signal, sampleRate: 48000, channels: 2)
    var (floats, shorts) = ([Float](repeating: 0, count: 960), [Int16](repeating: 0, count: 960))
    let requests = heapRequests {
      for _ in 0..<20 {
        var span = floats.mutableSpan
        generator.render(into: &span)
        var span16 = shorts.mutableSpan
        generator.render(into: &span16)
      }
    }
    #expect(requests == 0)
  }
}
