internal import Glibc

/// Finds the scale of the tables at which a JPEG comes out close under its byte budget.
///
/// A machine without an encoder in it: it says what to do next and is told how many bytes came out.
/// ```swift
/// var step = control.begin(limit: 179_999, rows: 45)
/// // .probe(scale):  encode every `control.rowStep`-th row at the scale,  step = control.probed(bytes)
/// // .encode(scale): encode the picture at the scale,                     step = control.encoded(bytes)
/// ```
/// The logarithm of the size is locally a straight line over the logarithm of the scale, with a slope near -0.62 for photographs
/// and films (measured on 104 pictures; -0.3 to -1.2). A probe of every eighth row foretells the size, the first encode corrects
/// it, the second hits. What was learnt (scale, slope, how far the probed rows differ from the whole) is kept for the next
/// picture of the stream: between two pictures of a scene hardly anything of it changes. A change of scene is seen by the probe.
///
/// Scales are percent of the standard tables: 100 is quality 50 of libjpeg. No memory beyond its fields, no allocation.
package struct RateControl: Sendable {
  /// What to do next.
  package enum Step: Sendable, Equatable {
    /// Encode every `rowStep`-th row and tell the bytes to `probed`.
    case probe(scale: Double)
    /// Encode the whole picture and tell the bytes to `encoded`.
    case encode(scale: Double)
    /// The picture encoded last is the one; or, when `last` is false, the best of those before it that fitted.
    case keep(last: Bool)
    /// Nothing that fits came out at this size: a picture smaller by this factor is likely to.
    case shrink(factor: Double)
  }

  /// The finest scale, beyond which a picture looks no better: quality 98.
  package static let finest = 4.0
  /// The coarsest: every divisor has reached 255, the most that baseline JPEG stores.
  package static let coarsest = 3_000.0
  /// Encodes of one picture at one size, at most.
  package static let mostEncodes = 4

  /// Bytes of a JPEG without any picture in it: markers, tables, Huffman tables of medium length.
  private static let header = 330.0
  /// Where a stream begins: quality 75.
  private static let firstScale = 50.0
  private static let usualSlope = -0.62
  /// A first encode that uses less of the budget than this is worth a second.
  private static let leastUse = 0.96
  /// With this much in hand a second encode that came out too large is not worth a third.
  private static let enoughUse = 0.85
  /// A size this far from what the last picture's was means another scene.
  private static let sceneCut = 0.2
  /// Below this scale the size falls in stairs and not along a line: divisors are whole numbers, and few of them change with a small
  /// step. (Quality 85 and better.)
  private static let stairs = 30.0

  // Learnt from picture to picture.
  private var scale: Double?
  /// Bytes of the last picture at that scale.
  private var kept = 0.0
  private var slope = usualSlope
  /// The whole picture's bytes over those foretold from the probed rows.
  private var bias = 1.0
  /// The usual error of a first encode, as a logarithm.
  private var error = 0.02

  // Of the present picture.
  private var limit = 0.0
  /// One of how many rows a probe looks at; 1: rows are too few to be probed.
  package private(set) var rowStep = 1
  private var share = 1.0
  private var probes = 0
  /// Encodes of the present picture so far.
  package private(set) var encodes = 0
  /// Scale and bytes of the last attempt.
  private var last: (scale: Double, bytes: Double)?
  /// What the last probe foretold for the present scale.
  private var foretold: Double?
  /// The finest scale that fitted and the coarsest that did not.
  private var fitting: (scale: Double, bytes: Double)?
  private var overflowing: (scale: Double, bytes: Double)?
  /// The scale of the step given last.
  package private(set) var present = firstScale

  package init() {}

  /// The first of the rows a probe looks at.
  package var firstRow: Int { rowStep / 2 }

  /// libjpeg's quality with the nearest tables.
  package static func quality(ofScale scale: Double) -> Double {
    scale <= 100 ? (200 - scale) / 2 : 5_000 / scale
  }

  // MARK: Steps

  /// Begins a picture of so many rows of 16 lines that may have `limit` bytes at most.
  package mutating func begin(limit: Int, rows: Int) -> Step {
    self.limit = Double(limit)
    // Four rows are the fewest that stand for a picture.
    rowStep = rows >= 32 ? 8 : rows >= 16 ? 4 : 1
    share = Double(rows) / Double(max(1, (rows - firstRow + rowStep - 1) / rowStep))
    probes = 0
    encodes = 0
    last = nil
    foretold = nil
    fitting = nil
    overflowing = nil
    if rowStep > 1 {
      present = scale ?? Self.firstScale
      return .probe(scale: present)
    }
    // So small a picture usually fits whatever its quality.
    present = scale ?? Self.finest
    return .encode(scale: present)
  }

  /// Takes the bytes of a probe.
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
    foretold = whole * pow(present / from, slope)
    // A second probe at the new scale: the model was asked to reach far, and from a scene it does not know.
    return probes == 1 && isNew ? .probe(scale: present) : .encode(scale: present)
  }

  /// Takes the bytes of an encode.
  package mutating func encoded(_ bytes: Int) -> Step {
    let bytes = max(1, Double(bytes))
    encodes += 1
    if encodes == 1, let foretold { learnBias(bytes / foretold) }
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

  /// Ends a picture after its probes, because it is encoded at another size: what they found is for the next.
  package mutating func leave() {
    guard let foretold else { return }
    scale = present
    kept = foretold
  }

  private mutating func keep() -> Step {
    guard let fitting, let last else { fatalError("nothing that fits to keep") }
    scale = fitting.scale
    kept = fitting.bytes
    return .keep(last: fitting.scale == last.scale)
  }

  /// A scale nearer to the budget, or the end of the attempts.
  private mutating func another(after bytes: Double) -> Step {
    guard encodes < Self.mostEncodes, present < Self.coarsest || bytes <= limit else {
      if fitting != nil { return keep() }
      scale = nil
      return .shrink(factor: min(0.8, max(0.25, 0.9 * (limit / bytes).squareRoot())))
    }
    // The farther the way, the less is known of where it ends. After a second failure certainty counts more than bytes.
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

  /// The size a first encode aims at: below the limit by a little more than first encodes usually miss it.
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

  /// A scale, at most so many times coarser or finer than another.
  private static func within(_ scale: Double, _ times: Double, of other: Double) -> Double {
    min(coarsest, max(finest, min(other * times, max(other / times, scale))))
  }
}
