internal import Glibc
internal import Synchronization

/// The coefficients of one ratio at one quality: a low-pass, split into one row of taps per fractional position.
///
/// Row `p` holds the taps for an output that lies `p / phases` of an input sample after an input sample; they apply to `tapCount`
/// consecutive input samples, the last of which is `lookahead` samples after that input sample. Rows are contiguous, 64-byte aligned
/// and zero-padded at their old end. Immutable after `init`; shared by all resamplers of the process (see
/// ``shared(from:to:quality:)``).
@safe final class ResamplerTable: @unchecked Sendable {
  /// Interpolation factor L: the number of fractional positions, and of rows.
  let phases: Int
  /// Decimation factor M: an output lies M / L input samples after the one before.
  let step: Int
  /// Taps in a row, a multiple of 8.
  let tapCount: Int
  /// Input samples after the output's own position that the output depends on: the delay of the filter.
  let lookahead: Int
  /// `phases * tapCount` coefficients.
  let coefficients: UnsafePointer<Float>

  /// The parameters of a quality: half width in zero crossings of the low-pass, Kaiser window shape, and the -6 dB point as a
  /// fraction of the lower Nyquist frequency. Chosen by measuring alias, image and pass band; see the limits in the tests.
  private struct Design {
    var zeros: Double
    var beta: Double
    var cut: Double

    init(_ quality: Resampler.Quality) {
      switch quality {
      case .low: (zeros, beta, cut) = (16, 7, 0.86)
      case .voice: (zeros, beta, cut) = (40, 11.5, 0.915)
      case .high: (zeros, beta, cut) = (80, 12.5, 0.955)
      }
    }

    /// The low-pass, a sinc under a Kaiser window, `distance` input samples from its centre, unscaled. `lower` is the lower Nyquist
    /// frequency as a fraction of the input's.
    func tap(at distance: Double, lower: Double) -> Double {
      let share = distance * lower / zeros
      guard abs(share) < 1 else { return 0 }
      let window = besselI0(beta * (1 - share * share).squareRoot())
      let angle = Double.pi * cut * lower * distance
      return window * (angle == 0 ? 1 : sin(angle) / angle)
    }
  }

  private init(from inputRate: Int, to outputRate: Int, quality: Resampler.Quality) throws(ResamplerProblem) {
    let divisor = greatestCommonDivisor(inputRate, outputRate)
    phases = outputRate / divisor
    step = inputRate / divisor
    guard phases != step else {
      // Equal rates: a single tap of 1, so that samples pass unchanged and undelayed.
      (tapCount, lookahead) = (8, 0)
      let taps = unsafe Self.allocate(tapCount)
      unsafe taps[tapCount - 1] = 1
      unsafe coefficients = UnsafePointer(taps)
      return
    }
    let design = Design(quality)
    let lower = Double(min(inputRate, outputRate)) / Double(inputRate)
    let halfWidth = design.zeros / lower
    lookahead = Int(halfWidth.rounded(.up))
    tapCount = (2 * lookahead + 7) / 8 * 8
    let count = phases * tapCount
    guard count <= Resampler.maximumCoefficients else {
      throw .tableTooLarge(inputRate: inputRate, outputRate: outputRate, coefficients: count)
    }
    let (rows, length, ahead) = (phases, tapCount, lookahead)
    let values = (0..<count).map { index in
      let (row, tap) = index.quotientAndRemainder(dividingBy: length)
      let centre = Double(length - 1 - ahead) + Double(row) / Double(rows)
      return design.tap(at: Double(tap) - centre, lower: lower)
    }
    // One scale for all rows: scaling each to the same sum would distort the filter and raise the images by 3 dB.
    let scale = Double(phases) / values.reduce(0, +)
    let taps = unsafe Self.allocate(count)
    for index in 0..<count { unsafe taps[index] = Float(values[index] * scale) }
    unsafe coefficients = UnsafePointer(taps)
  }

  deinit { unsafe coefficients.deallocate() }

  private static func allocate(_ count: Int) -> UnsafeMutablePointer<Float> {
    let raw = UnsafeMutableRawPointer.allocate(byteCount: count * MemoryLayout<Float>.stride, alignment: 64)
    let taps = unsafe raw.bindMemory(to: Float.self, capacity: count)
    unsafe taps.initialize(repeating: 0, count: count)
    return unsafe taps
  }

  // MARK: Sharing

  private struct Key: Hashable {
    var inputRate: Int
    var outputRate: Int
    var quality: Resampler.Quality
  }

  private struct WeakTable {
    weak var table: ResamplerTable?
  }

  private struct Cache {
    var tables: [Key: WeakTable] = [:]
    /// Strong references, so that sessions that come and go one at a time do not recompute their table.
    var recent: [ResamplerTable] = []
  }

  private static let cache = Mutex(Cache())
  private static let recentLimit = 16

  /// The table for this ratio and quality, reused if it is in use.
  ///
  /// Takes a lock and may compute for milliseconds: control side only.
  static func shared(
    from inputRate: Int, to outputRate: Int, quality: Resampler.Quality
  ) throws(ResamplerProblem) -> ResamplerTable {
    let divisor = greatestCommonDivisor(inputRate, outputRate)
    let key = Key(inputRate: inputRate / divisor, outputRate: outputRate / divisor, quality: quality)
    return try cache.withLock { cache throws(ResamplerProblem) in
      if let known = cache.tables[key]?.table { return known }
      let made = try ResamplerTable(from: inputRate, to: outputRate, quality: quality)
      cache.tables = cache.tables.filter { $0.value.table != nil }
      cache.tables[key] = WeakTable(table: made)
      cache.recent.append(made)
      if cache.recent.count > recentLimit { cache.recent.removeFirst() }
      return made
    }
  }
}

/// Modified Bessel function of the first kind and order 0, by its power series; the kernel of the Kaiser
/// window.
private func besselI0(_ x: Double) -> Double {
  var sum = 1.0
  var term = 1.0
  var k = 1.0
  while term > 1e-17 * sum {
    term *= (x / (2 * k)) * (x / (2 * k))
    sum += term
    k += 1
  }
  return sum
}

private func greatestCommonDivisor(_ a: Int, _ b: Int) -> Int {
  b == 0 ? a : greatestCommonDivisor(b, a % b)
}
