import CMillraceKernels
import Foundation

/// How far the loudspeaker is behind the microphone, window by window, by correlation.
struct LagMeter {
  /// Lags in ms of the windows in which the loudspeaker plays what the microphone heard.
  private(set) var lags: [Double] = []
  /// Windows in which it plays something else, or nothing.
  private(set) var misses = 0

  /// White noise of a fixed kind.
  static func noise(seconds: Double) -> [Float] {
    var state: UInt64 = 88_172_645_463_325_252
    return (0..<Int(seconds * Double(PulseServer.rate))).map { _ in
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return Float(Int64(bitPattern: state)) / Float(Int64.max) * 0.3
    }
  }

  /// Measures windows of 40 ms. `longest`: the largest lag looked for, ms.
  init(_ microphone: [Float], _ loudspeaker: [Float], longest: Double = 250) {
    let rate = PulseServer.rate
    let window = rate / 25
    let reach = Int(longest * Double(rate) / 1_000)
    guard let first = microphone.firstIndex(where: { abs($0) > 1e-3 }),
      let last = microphone.lastIndex(where: { abs($0) > 1e-3 })
    else { return }
    var near: Int?
    var at = first + rate
    while at + window < min(last, loudspeaker.count) {
      let heard = loudspeaker[at..<at + window]
      let found =
        near.flatMap { Self.best(microphone, heard, at, ($0 - 200)...($0 + 200)) }
        ?? Self.best(microphone, heard, at, 0...reach)
      if let found {
        near = found
        lags.append(Double(found) * 1_000 / Double(rate))
      } else {
        misses += 1
      }
      at += window
    }
  }

  /// The lag at which a stretch of the loudspeaker resembles the microphone most; nil when it hardly does.
  private static func best(
    _ microphone: [Float], _ heard: ArraySlice<Float>, _ at: Int, _ lags: ClosedRange<Int>
  )
    -> Int?
  {
    let energy = heard.reduce(0) { $0 + $1 * $1 }
    guard energy > 1e-4 else { return nil }
    var best = (lag: 0, value: Float(0))
    microphone.withUnsafeBufferPointer { source in
      heard.withUnsafeBufferPointer { target in
        for lag in lags where lag >= 0 && at - lag >= 0 {
          let from = source.baseAddress! + (at - lag)
          let product = mk_dot_f32(from, target.baseAddress!, target.count)
          let own = mk_dot_f32(from, from, target.count)
          let value = product / max(1e-12, (own * energy).squareRoot())
          if value > best.value { best = (lag, value) }
        }
      }
    }
    return best.value > 0.6 ? best.lag : nil
  }

  var median: Double { lags.sorted()[lags.count / 2] }

  /// A quantile of the lags.
  func quantile(_ share: Double) -> Double {
    lags.sorted()[min(lags.count - 1, Int(share * Double(lags.count)))]
  }

  /// Steps of more than 0.3 ms from one window to the next.
  var steps: Int { zip(lags, lags.dropFirst()).count { abs($1 - $0) > 0.3 } }
}
