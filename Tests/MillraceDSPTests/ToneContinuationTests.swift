import Foundation
import MillraceDSP
import Testing

@Suite("continuation of a steady tone over a loss")
struct ToneContinuationTests {
  /// A tone of 1 kHz from a frame on, the same in all channels.
  private func tone(
    _ rate: Int, channels: Int = 1, from start: Int, count: Int, amplitude: Double = 0.2, shift: Double = 0
  ) -> [Float] {
    (0..<count * channels).map { index in
      let time = Double(start + index / channels) / Double(rate)
      return Float(amplitude * sin(2 * Double.pi * 1_000 * time + shift))
    }
  }

  private func rms(_ samples: [Float]) -> Double {
    (samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(samples.count)).squareRoot()
  }

  /// The next 10 ms of a loss for which the codec has made silence.
  private func conceal(
    _ continuation: inout ToneContinuation, _ rate: Int, channels: Int = 1
  ) -> [Float] {
    var made = [Float](repeating: 0, count: rate / 100 * channels)
    var span = made.mutableSpan
    continuation.conceal(&span)
    continuation.note(made.span)
    return made
  }

  /// Decoded audio.
  private func decode(_ samples: [Float], _ continuation: inout ToneContinuation) -> [Float] {
    var samples = samples
    var span = samples.mutableSpan
    continuation.merge(&span)
    continuation.note(samples.span)
    return samples
  }

  @Test(
    "a tone continues at its level and in its phase for 100 ms, and is silent after 350 ms",
    arguments: [8_000, 16_000, 48_000], [1, 2])
  func lasts(rate: Int, channels: Int) {
    var continuation = ToneContinuation(rate: rate, channels: channels)
    _ = decode(tone(rate, channels: channels, from: 0, count: rate / 10), &continuation)
    var made: [[Float]] = []
    for _ in 0..<40 { made.append(conceal(&continuation, rate, channels: channels)) }
    let expected = tone(rate, channels: channels, from: rate / 10, count: rate / 100)
    #expect(zip(made[0], expected).allSatisfy { abs($0 - $1) < 0.001 })
    for hop in 0..<10 { #expect(abs(rms(made[hop]) - 0.1414) < 0.002) }
    for hop in 10..<34 { #expect(rms(made[hop + 1]) < rms(made[hop])) }
    #expect(made[36].allSatisfy { $0 == 0 })
  }

  @Test("the first audio behind the loss follows without a step, and the rest is as it was decoded")
  func follows() {
    let rate = 48_000
    var continuation = ToneContinuation(rate: rate, channels: 1)
    _ = decode(tone(rate, from: 0, count: 4_800), &continuation)
    for _ in 0..<4 { _ = conceal(&continuation, rate) }
    let decoded = [Float](repeating: 0, count: 1_920)
    let heard = decode(decoded, &continuation)
    // The fade from the tone to silence.
    #expect(rms(Array(heard[..<96])) > 0.12)
    #expect(rms(Array(heard[864..<960])) < 0.02)
    #expect(heard[960...].allSatisfy { $0 == 0 })
    let isActive = continuation.isActive
    #expect(!isActive)
  }

  @Test("noise, quiet sound and too short a beginning are left to the codec")
  func leaves() {
    let rate = 48_000
    var state: UInt32 = 1
    let noise = (0..<4_800).map { _ -> Float in
      state = state &* 1_664_525 &+ 1_013_904_223
      return Float(Int32(bitPattern: state)) / Float(Int32.max) * 0.3
    }
    let quiet = tone(rate, from: 0, count: 4_800, amplitude: 0.002)
    for sound in [noise, quiet, tone(rate, from: 0, count: 960), []] {
      var continuation = ToneContinuation(rate: rate, channels: 1)
      _ = decode(sound, &continuation)
      let made = conceal(&continuation, rate)
      let isActive = continuation.isActive
      #expect(!isActive && made.allSatisfy { $0 == 0 })
    }
  }

  @Test("a loss right behind another continues with the same tone, though what came between is not steady")
  func again() {
    let rate = 48_000
    var continuation = ToneContinuation(rate: rate, channels: 1)
    _ = decode(tone(rate, from: 0, count: 4_800), &continuation)
    for _ in 0..<4 { _ = conceal(&continuation, rate) }
    // A decoder that has not found its way back: the phase jumps, then the level.
    _ = decode(tone(rate, from: 6_720, count: 960, shift: 2), &continuation)
    _ = decode(tone(rate, from: 7_680, count: 480, amplitude: 0.05, shift: 1), &continuation)
    let between = tone(rate, from: 8_160, count: 480, amplitude: 0.1)
    _ = decode(between, &continuation)
    let made = conceal(&continuation, rate)
    let isActive = continuation.isActive
    #expect(isActive)
    #expect(abs(rms(made) - 0.1414) < 0.005)
    let expected = tone(rate, from: 8_640, count: 480)
    #expect(zip(made, expected).allSatisfy { abs($0 - $1) < 0.01 })
  }

  @Test("a tone that has ended since the last loss is not heard again")
  func ended() {
    let rate = 48_000
    var continuation = ToneContinuation(rate: rate, channels: 1)
    _ = decode(tone(rate, from: 0, count: 4_800), &continuation)
    _ = conceal(&continuation, rate)
    _ = decode([Float](repeating: 0, count: 1_920), &continuation)
    let after = conceal(&continuation, rate)
    continuation.reset()
    let afterReset = conceal(&continuation, rate)
    #expect(after.allSatisfy { $0 == 0 } && afterReset.allSatisfy { $0 == 0 })
  }
}
