import Foundation
import MillraceDSP
import Testing

@Suite("concealment of lost PCM") struct LossConcealerTests {
  private let rate = 16_000

  private func tone(_ frames: Int) -> [Float] {
    (0..<frames).map { Float(0.5 * sin(2 * Double.pi * 200 * Double($0) / 16_000)) }
  }

  private func expand(_ concealer: inout LossConcealer, _ frames: Int) -> [Float] {
    var made = [Float](repeating: 1, count: frames)
    var span = made.mutableSpan
    concealer.expand(into: &span)
    return made
  }

  private func note(_ samples: [Float], _ concealer: inout LossConcealer) { concealer.note(samples.span) }

  @Test("the last period continues")
  func period() {
    var concealer = LossConcealer(rate: rate, channels: 1)
    note(tone(640), &concealer)
    let made = expand(&concealer, 80)
    #expect(made.contains { abs($0) > 0.3 })
  }

  @Test("after a reset, nothing of the source before is heard, not even with a short history")
  func reset() {
    var concealer = LossConcealer(rate: rate, channels: 1)
    note(tone(640), &concealer)
    concealer.reset()
    let empty = expand(&concealer, 320)
    #expect(empty.allSatisfy { $0 == 0 })
    concealer.reset()
    note([Float](repeating: 0, count: 32), &concealer)
    let short = expand(&concealer, 320)
    #expect(short.allSatisfy { abs($0) < 1e-3 })
  }
}
