import CMillraceKernels
import Foundation

/// Measures by correlation, window by window, how far the loudspeaker lags the microphone.
struct LagMeter {
  /// Length of a window, and of a window whose lag is not known yet, in frames.
  private static let window = PulseServer.rate / 25
  /// Lags searched on either side of the previous one, in frames.
  private static let reach = 200

  /// Lags in ms of the windows that matched.
  private(set) var lags: [Double] = []
  /// Start times of those windows, in seconds.
  private(set) var times: [Double] = []
  /// Windows in which the loudspeaker plays something else, or nothing.
  private(set) var misses = 0
  /// Windows in which the microphone was silent because the stimulus stalled.
  private(set) var pauses = 0

  /// Deterministic noise, mostly below 4 kHz, so that it still correlates when the lag is half a sample or moves within a window.
  static func noise(seconds: Double) -> [Float] {
    var state: UInt64 = 88_172_645_463_325_252
    var (once, twice) = (Float(0), Float(0))
    return [Float](unsafeUninitializedCapacity: Int(seconds * Double(PulseServer.rate))) { target, count in
      for index in target.indices {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        once += 0.35 * (Float(Int64(bitPattern: state)) / Float(Int64.max) - once)
        twice += 0.35 * (once - twice)
        target[index] = twice * 0.6
      }
      count = target.count
    }
  }

  /// Measures windows of 40 ms from one second on. `longest`: the largest lag searched, in ms.
  init(_ microphone: [Float], _ loudspeaker: [Float], longest: Double = 250) {
    guard let first = loudspeaker.firstIndex(where: { abs($0) > 1e-3 }),
      let last = microphone.lastIndex(where: { abs($0) > 1e-3 })
    else { return }
    let rate = Double(PulseServer.rate)
    let most = Int(longest * rate / 1_000)
    var near: Int?
    var at = first + PulseServer.rate
    microphone.withUnsafeBufferPointer { microphone in
      loudspeaker.withUnsafeBufferPointer { loudspeaker in
        while at + Self.window < min(last + (near ?? 0), loudspeaker.count) {
          let heard = UnsafeBufferPointer(rebasing: loudspeaker[at..<at + Self.window])
          let found =
            near.flatMap { Self.best(microphone, heard, at, ($0 - Self.reach)...($0 + Self.reach)) }
            ?? Self.best(microphone, heard, at, 0...most)
          let source = at - (near ?? 0)
          if found == nil, source + Self.window <= microphone.count,
            Self.energy(UnsafeBufferPointer(rebasing: microphone[source..<source + Self.window])) < Self.least
          {
            pauses += 1
          } else if let found {
            near = found
            lags.append(Double(found) * 1_000 / rate)
            times.append(Double(at) / rate)
          } else {
            misses += 1
          }
          at += Self.window
        }
      }
    }
  }

  /// Windows with less energy count as silent.
  private static let least: Float = 1e-4

  private static func energy(_ samples: UnsafeBufferPointer<Float>) -> Float {
    mk_dot_f32(samples.baseAddress!, samples.baseAddress!, samples.count)
  }

  /// The lag at which the loudspeaker correlates best with the microphone; nil if it hardly does.
  private static func best(
    _ microphone: UnsafeBufferPointer<Float>, _ heard: UnsafeBufferPointer<Float>, _ at: Int,
    _ lags: ClosedRange<Int>
  ) -> Int? {
    let energy = energy(heard)
    guard energy > least else { return nil }
    var best = (lag: 0, value: Float(0))
    for lag in lags where at - lag >= 0 && at - lag + heard.count <= microphone.count {
      let from = microphone.baseAddress! + (at - lag)
      let product = mk_dot_f32(from, heard.baseAddress!, heard.count)
      let own = mk_dot_f32(from, from, heard.count)
      let value = product / max(1e-12, (own * energy).squareRoot())
      if value > best.value { best = (lag, value) }
    }
    return best.value > 0.6 ? best.lag : nil
  }

  var windows: Int { lags.count + misses }

  var median: Double { quantile(0.5) }

  /// A quantile of the lags, ms.
  func quantile(_ share: Double) -> Double {
    lags.sorted()[min(lags.count - 1, Int(share * Double(lags.count)))]
  }

  /// A larger change between windows is a step: audio was skipped or delayed. Milliseconds.
  private static let step = 0.3

  /// Number of steps. Unlike drift, they are audible.
  var steps: Int { zip(lags, lags.dropFirst()).count { abs($1 - $0) > Self.step } }

  /// How fast the lag grows between its steps, from a time on, in parts per million: the common slope of the straight lines through the
  /// segments between them.
  func drift(after start: Double) -> Double {
    var (product, square) = (0.0, 0.0)
    var stretch: [(time: Double, lag: Double)] = []
    func close() {
      let count = Double(max(1, stretch.count))
      let mean = stretch.reduce((0.0, 0.0)) { ($0.0 + $1.time / count, $0.1 + $1.lag / count) }
      for point in stretch {
        product += (point.time - mean.0) * (point.lag - mean.1)
        square += (point.time - mean.0) * (point.time - mean.0)
      }
      stretch = []
    }
    for (time, lag) in zip(times, lags) where time >= start {
      if let last = stretch.last, abs(lag - last.lag) > Self.step { close() }
      stretch.append((time, lag))
    }
    close()
    return square > 0 ? product / square * 1_000 : .nan
  }

  /// The results as text.
  var description: String {
    func text(_ value: Double) -> String { String(format: "%.2f", value) }
    guard !lags.isEmpty else { return "nothing heard in \(misses) windows" }
    return
      "median \(text(median)) ms, 1 % \(text(quantile(0.01))), 99 % \(text(quantile(0.99))), most \(text(quantile(1))); "
      + "\(steps) steps, \(misses) of \(windows) windows of 40 ms missed, \(pauses) without a stimulus"
  }
}
