internal import Glibc

/// Finds the quantization table scale at which a JPEG is just under its byte budget.
///
/// A state machine without an encoder: it returns the next step and takes the resulting size.
/// ```swift
/// var step = control.begin(limit: 179_999, rows: 45)
/// // .probe(scale):  encode every `control.rowStep`-th row at the scale,  step = control.probed(bytes)
/// // .encode(scale): encode the picture at the scale,                     step = control.encoded(bytes)
/// ```
/// The logarithm of the size is locally linear in the logarithm of the scale, with a slope near -0.62 for photographs and video
/// (measured on 104 pictures; -0.3 to -1.2). A probe of every eighth row predicts the size, the first encode corrects the prediction, the second
/// hits the target. What was learnt (scale, slope, how the probed rows differ from the whole) is kept for the next picture of the
/// stream, since it hardly changes within a scene. The probe detects a scene change.
///
/// Scales are percent of the standard tables: 100 is libjpeg quality 50. No memory beyond its fields, no allocation.
package struct RateControl: Sendable {
  /// The next step.
  package enum Step: Sendable, Equatable {
    /// Encode every `rowStep`-th row and pass the size to `probed`.
    case probe(scale: Double)
    /// Encode the whole picture and pass the size to `encoded`.
    case encode(scale: Double)
    /// Use the last encode or, if `last` is false, the best earlier one that fits.
    case keep(last: Bool)
    /// Nothing fits at this size: a picture smaller by this factor is likely to.
    case shrink(factor: Double)
  }

  /// The finest scale, beyond which a picture looks no better: quality 98.
  package static let finest = 4.0
  /// The coarsest scale: every divisor has reached 255, the maximum of baseline JPEG.
  package static let coarsest = 3_000.0
  /// Most encodes of one picture at one size.
  package static let maximumEncodes = 4

  /// Size of a JPEG without image data: markers, tables, Huffman tables of medium length.
  private static let header = 330.0
  /// The initial scale of a stream: quality 75.
  private static let firstScale = 50.0
  private static let usualSlope = -0.62
  /// A first encode that uses less of the budget than this is worth a second.
  private static let leastUse = 0.96
  /// If the best fit uses this much, a second encode that is too large is not worth a third.
  private static let enoughUse = 0.85
  /// A size this far from the last picture's means another scene.
  private static let sceneCut = 0.2
  /// Below this scale the size changes in steps instead of linearly: divisors are whole numbers, and few of them change with a small
  /// step. (Quality 85 and better.)
  private static let stairs = 30.0

  // Learnt from picture to picture.
  private var scale: Double?
  /// Size of the last picture at that scale.
  private var kept = 0.0
  private var slope = usualSlope
  /// Ratio of the whole picture's size to the size predicted from the probed rows.
  private var bias = 1.0
  /// The usual error of a first encode, as a logarithm.
  private var error = 0.02

  // For the current picture.
  private var limit = 0.0
  /// The probe encodes one of this many rows; 1: too few rows to be probed.
  package private(set) var rowStep = 1
  private var share = 1.0
  private var probes = 0
  /// Encodes of the current picture so far.
  package private(set) var encodes = 0
  /// Scale and size of the last attempt.
  private var last: (scale: Double, bytes: Double)?
  /// The size that the last probe predicted for the current scale.
  private var predicted: Double?
  /// The finest scale that fitted and the coarsest that did not.
  private var fitting: (scale: Double, bytes: Double)?
  private var overflowing: (scale: Double, bytes: Double)?
  /// The scale of the last step.
  package private(set) var present = firstScale

  package init() {}

  /// The first row of a probe.
  package var firstRow: Int { rowStep / 2 }

  /// The libjpeg quality with the nearest tables.
  package static func quality(ofScale scale: Double) -> Double {
    scale <= 100 ? (200 - scale) / 2 : 5_000 / scale
  }

  // MARK: Steps

  /// Starts a picture of `rows` rows of 16 lines and at most `limit` bytes.
  package mutating func begin(limit: Int, rows: Int) -> Step {
    self.limit = Double(limit)
    // At least four rows represent a picture.
    rowStep = rows >= 32 ? 8 : rows >= 16 ? 4 : 1
    share = Double(rows) / Double(max(1, (rows - firstRow + rowStep - 1) / rowStep))
    probes = 0
    encodes = 0
    last = nil
    predicted = nil
    fitting = nil
    overflowing = nil
    if rowStep > 1 {
      present = scale ?? Self.firstScale
      return .probe(scale: present)
    }
    // Such a small picture usually fits at any quality.
    present = scale ?? Self.finest
    return .encode(scale: present)
  }

  /// Takes the size of a probe.
  package mutating func probed(_ bytes: Int) -> Step {
    probes += 1
    var whole = Self.header + max(1, Double(bytes) - Self.header) * share
    let isNew = scale == nil || abs(log(whole * bias / kept)) > Self.sceneCut
    if probes == 1 && isNew { bias = 1 }
    whole *= bias
    if probes == 2 { learnSlope(whole, within: -1.2 ... -0.3) }
    last = (present, whole)
    let from = present
    present = Self.within(from * exp(log(aim / whole) / slope), 6, of: from)
    predicted = whole * pow(present / from, slope)
    // A second probe at the new scale: the model had to extrapolate far, in an unknown scene.
    return probes == 1 && isNew ? .probe(scale: present) : .encode(scale: present)
  }

  /// Takes the size of an encode.
  package mutating func encoded(_ bytes: Int) -> Step {
    let bytes = max(1, Double(bytes))
    encodes += 1
    if encodes == 1, let predicted { learnBias(bytes / predicted) }
    if encodes > 1 { learnSlope(bytes, within: -1.5 ... -0.25) }
    last = (present, bytes)
    if bytes <= limit {
      if bytes > fitting?.bytes ?? 0 { fitting = (present, bytes) }
      let isEnough = bytes >= Self.leastUse * limit || present <= Self.finest || encodes > 1
      if isEnough { return keep() }
    } else {
      if present > overflowing?.scale ?? 0 { overflowing = (present, bytes) }
      if let fitting, fitting.bytes >= Self.enoughUse * limit { return keep() }
    }
    return another(after: bytes)
  }

  /// Ends a picture after its probes, because it is encoded at another size; the next picture uses what they found.
  package mutating func leave() {
    guard let predicted else { return }
    scale = present
    kept = predicted
  }

  private mutating func keep() -> Step {
    guard let fitting, let last else { fatalError("no encode that fits") }
    scale = fitting.scale
    kept = fitting.bytes
    return .keep(last: fitting.scale == last.scale)
  }

  /// A scale closer to the budget, or the end of the attempts.
  private mutating func another(after bytes: Double) -> Step {
    guard encodes < Self.maximumEncodes, present < Self.coarsest || bytes <= limit else {
      if fitting != nil { return keep() }
      scale = nil
      return .shrink(factor: min(0.8, max(0.25, 0.9 * (limit / bytes).squareRoot())))
    }
    // The larger the step, the less certain its result. After a second failure, certainty matters more than size.
    let miss = min(1, abs(log(bytes / limit)))
    var margin = 0.008 + 0.2 * miss + 0.03 * Double(encodes - 1)
    if bytes > limit && present < Self.stairs { margin += 0.01 + 0.2 * miss }
    let from = present
    present = Self.within(from * exp(log(limit * exp(-margin) / bytes) / slope), 5, of: from)
    if bytes > limit { present = max(present, min(Self.coarsest, from * 1.01)) }
    if let fitting, let overflowing, !(overflowing.scale..<fitting.scale).contains(present) {
      present = (fitting.scale * overflowing.scale).squareRoot()
    }
    return .encode(scale: present)
  }

  // MARK: Learning

  /// The target size of a first encode: below the limit by slightly more than first encodes usually miss it.
  private var aim: Double { limit * exp(-min(0.03, max(0.008, 0.005 + 1.3 * error))) }

  private mutating func learnBias(_ ratio: Double) {
    bias = min(1.4, max(0.7, bias * ratio))
    error += 0.25 * (min(0.1, abs(log(ratio))) - error)
  }

  private mutating func learnSlope(_ bytes: Double, within range: ClosedRange<Double>) {
    guard let last, abs(log(present / last.scale)) > 0.02 else { return }
    let measured = log(bytes / last.bytes) / log(present / last.scale)
    if range.contains(measured) { slope = measured }
  }

  /// A scale, limited to a factor of `times` coarser or finer than another.
  private static func within(_ scale: Double, _ times: Double, of other: Double) -> Double {
    min(coarsest, max(finest, min(other * times, max(other / times, scale))))
  }
}
