import CMallocCount
import Foundation
import Testing

@testable import MillraceDSP

/// Stretches a whole signal and returns the output, checking the stretcher's accounting at every hop.
private func stretch(
  _ sound: [Float], rate: Int, channels: Int = 1, piece: Int = 331, speed: (Int) -> Double
) -> (output: [Float], splices: Int) {
  var stretcher = TimeStretcher(rate: rate, channels: channels, capacity: rate / 5)
  var output: [Float] = []
  var room = [Float](repeating: 0, count: stretcher.hop * channels)
  var taken = 0
  var hops = 0
  while true {
    while taken < sound.count {
      let count = min(piece * channels, sound.count - taken)
      let written = stretcher.write(sound.span.extracting(taken..<taken + count)) * channels
      taken += written
      if written < count { break }
    }
    stretcher.setSpeed(speed(hops))
    var span = room.mutableSpan
    let before = stretcher.speed
    var made = stretcher.read(into: &span)
    #expect(abs(stretcher.speed - before) <= stretcher.slew + 1e-12)
    if made == 0 && taken == sound.count { made = stretcher.drain(into: &span) }
    if made == 0 && taken == sound.count { break }
    output += room[..<(made * channels)]
    hops += made > 0 ? 1 : 0
    #expect(stretcher.produced - stretcher.inserted == stretcher.consumed)
    #expect(stretcher.produced == Int64(output.count / channels))
  }
  #expect(stretcher.consumed == Int64(sound.count / channels))
  return (output, stretcher.splices)
}

private func sine(_ frequency: Double, rate: Int, seconds: Double) -> [Float] {
  (0..<Int(Double(rate) * seconds)).map { Float(0.5 * sin(2 * .pi * frequency * Double($0) / Double(rate))) }
}

/// Synthetic speech: a pulse train with formants and a varying pitch.
private func voice(rate: Int, seconds: Double) -> [Float] {
  var phase = 0.0
  var (a, b) = (0.0, 0.0)
  return (0..<Int(Double(rate) * seconds)).map { index in
    let time = Double(index) / Double(rate)
    phase += (140 + 40 * sin(2 * .pi * 0.7 * time)) / Double(rate)
    let pulse = phase >= 1 ? 1.0 : 0
    if phase >= 1 { phase -= 1 }
    let radius = exp(-.pi * 90 / Double(rate))
    let next = pulse + 2 * radius * cos(2 * .pi * 650 / Double(rate)) * a - radius * radius * b
    (a, b) = (next, a)
    return Float(next * 0.15)
  }
}

/// Counts upward zero crossings, one per period for a signal without silence.
private func frequency(_ sound: ArraySlice<Float>, rate: Int) -> Double {
  let sound = Array(sound)
  var crossings: [Double] = []
  for index in 1..<sound.count where sound[index - 1] < 0 && sound[index] >= 0 {
    crossings.append(Double(index) - Double(sound[index] / (sound[index] - sound[index - 1])))
  }
  return Double(crossings.count - 1) / (crossings[crossings.count - 1] - crossings[0]) * Double(rate)
}

/// The largest second difference of neighbouring samples: a click is one.
private func bend(_ sound: [Float]) -> Float {
  var most: Float = 0
  for index in 2..<sound.count {
    let second = sound[index] - 2 * sound[index - 1] + sound[index - 2]
    most = max(most, abs(second))
  }
  return most
}

@Suite("Time stretching")
struct StretchTests {
  @Test("at speed 1 every sample passes unchanged", arguments: [8_000, 24_000, 44_100])
  func transparent(rate: Int) {
    let sound = voice(rate: rate, seconds: 1)
    let (output, splices) = stretch(sound, rate: rate) { _ in 1 }
    #expect(output == sound && splices == 0)
  }

  @Test("the length follows the speed and the pitch does not", arguments: [0.5, 0.8, 0.88, 1.15, 1.5, 2.0])
  func pitch(speed: Double) {
    for tone in [110.0, 220, 333, 950] {
      let sound = sine(tone, rate: 24_000, seconds: 3)
      let (output, splices) = stretch(sound, rate: 24_000) { _ in speed }
      #expect(splices > 0)
      let found = frequency(output[4_800...], rate: 24_000)
      #expect(abs(found / tone - 1) < 0.004, "\(tone) Hz at \(speed) became \(found)")
      #expect(bend(output) < 1.5 * bend(sound), "a click at \(tone) Hz, speed \(speed)")
      // The speed is reached in steps; from then on the length is as requested, except for one splice at each end.
      let ramp = abs(speed - 1) / 0.01 * 240
      let wanted = (Double(sound.count) - ramp * (1 + speed) / 2) / speed + ramp
      #expect(abs(Double(output.count) - wanted) < 24_000 * 0.04, "\(output.count) for \(wanted)")
    }
  }

  @Test("speech keeps its loudness, its pitch and its smoothness", arguments: [0.6, 0.8, 0.88, 1.3])
  func speech(speed: Double) {
    let sound = voice(rate: 16_000, seconds: 4)
    let (output, _) = stretch(sound, rate: 16_000) { _ in speed }
    func rms(_ sound: [Float]) -> Double {
      (sound.reduce(0) { $0 + Double($1) * Double($1) } / Double(sound.count)).squareRoot()
    }
    #expect(abs(20 * log10(rms(output) / rms(sound))) < 0.7)
    #expect(bend(output) < 1.3 * bend(sound))
    // Loudness over 20 ms never drops: no splice cancels what it joins.
    let levels = stride(from: 3_200, to: output.count - 320, by: 320).map {
      rms(Array(output[$0..<$0 + 320]))
    }
    #expect(levels.min()! > 0.5 * rms(sound))
  }

  @Test("a constantly changing speed is followed without a click, the same on both stereo channels")
  func moving() {
    let mono = voice(rate: 24_000, seconds: 4)
    let sound = mono.flatMap { [$0, -0.5 * $0] }
    let (output, splices) = stretch(sound, rate: 24_000, channels: 2) { 1 + 0.4 * sin(Double($0) / 20) }
    #expect(splices > 10)
    #expect((0..<output.count / 2).allSatisfy { abs(output[2 * $0 + 1] + 0.5 * output[2 * $0]) < 1e-6 })
    #expect(bend(stride(from: 0, to: output.count, by: 2).map { output[$0] }) < 1.3 * bend(mono))
  }

  @Test("the result does not depend on how the input is chunked", arguments: [1, 240, 4_000])
  func cuts(piece: Int) {
    // As much as there is room for is written before each hop: only then is the look-ahead the same.
    let sound = voice(rate: 24_000, seconds: 1)
    let whole = stretch(sound, rate: 24_000, piece: 4_800) { _ in 0.8 }
    let other = stretch(sound, rate: 24_000, piece: piece) { _ in 0.8 }
    #expect(other.output == whole.output)
  }

  @Test("silence, DC, full-scale noise and a NaN do no harm")
  func badInput() {
    var random = Xoshiro256(seed: 3)
    let noise = (0..<24_000).map { _ in Float(random.nextUnit()) }
    for speed in [0.5, 0.8, 2] {
      #expect(
        stretch([Float](repeating: 0, count: 24_000), rate: 24_000) { _ in speed }.output.allSatisfy {
          $0 == 0
        })
      let constant = stretch([Float](repeating: 0.7, count: 24_000), rate: 24_000) { _ in speed }.output
      #expect(constant.allSatisfy { abs($0 - 0.7) < 1e-5 })
      let loud = stretch(noise, rate: 24_000) { _ in speed }.output
      #expect(loud.allSatisfy { abs($0) <= 1.0001 })
      var broken = noise
      broken[12_000] = .nan
      let spoilt = stretch(broken, rate: 24_000) { _ in speed }.output.count { $0.isNaN }
      #expect(spoilt <= 12)
    }
  }

  @Test("with little held, only the first part of the memory is touched, and the output is the same")
  func shortHold() {
    let rate = 48_000
    let sound = voice(rate: rate, seconds: 10)
    var stretcher = TimeStretcher(rate: rate, capacity: rate)
    var output: [Float] = []
    var room = [Float](repeating: 0, count: stretcher.hop)
    var furthest = 0
    for start in stride(from: 0, to: sound.count, by: 960) {
      let taken = stretcher.write(sound.span.extracting(start..<start + 960))
      #expect(taken == 960)
      furthest = max(furthest, stretcher.end)
      while true {
        var span = room.mutableSpan
        guard stretcher.read(into: &span) > 0 else { break }
        output += room
      }
    }
    // 80 ms and a piece.
    #expect(furthest <= rate / 10)
    #expect(output == sound)
  }

  @Test("processing allocates nothing")
  func heap() {
    guard millrace_malloc_counting_available() != 0 else { return }
    let sound = voice(rate: 24_000, seconds: 2)
    var stretcher = TimeStretcher(rate: 24_000, capacity: 4_800)
    var room = [Float](repeating: 0, count: stretcher.hop)
    stretcher.setSpeed(0.8)
    var before = millrace_malloc_thread_requests()
    var taken = 0
    while taken < sound.count {
      // The Swift runtime allocates per-type data in the first calls.
      if taken == 2_400 { before = millrace_malloc_thread_requests() }
      taken += stretcher.write(sound.span.extracting(taken..<min(taken + 240, sound.count)))
      var span = room.mutableSpan
      _ = stretcher.read(into: &span)
    }
    #expect(millrace_malloc_thread_requests() == before)
  }
}
