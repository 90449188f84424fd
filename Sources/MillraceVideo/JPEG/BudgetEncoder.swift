internal import CMediaShim
internal import MillraceCore

/// Encodes pictures as JPEG under a byte budget, as well as it allows: size rule, rate control, and the encoder between them.
///
/// Memory for one size of source is taken with the first picture. One thread at a time; takes milliseconds and heap.
@safe
package final class BudgetEncoder {
  /// How a picture came out.
  package struct Result: Sendable {
    /// Bytes of the JPEG, at most the limit.
    package var byteCount = 0
    package var width = 0
    package var height = 0
    /// Scale of the tables in percent.
    package var scale = 0.0
    /// Whole encodes it took, at all sizes.
    package var encodes = 0
    package var probes = 0

    /// libjpeg's quality with the nearest tables, 1 to 98.
    package var quality: Double { RateControl.quality(ofScale: scale) }
  }

  /// Why there is no picture.
  package enum Failure: Error {
    /// Nothing fitted, however small.
    case tooLarge
    /// libjpeg or swscale refused.
    case refused
  }

  /// The largest JPEG allowed.
  package let limit: Int
  private let encoder = JPEGEncoder()
  private var rule: SizeRule
  private let scaling: Bool
  /// Knowledge of one size: its rate control, and what makes pictures of that size.
  private struct Stage {
    var control = RateControl()
    var scaler: PictureScaler?
  }
  /// By width.
  private var stages: [Int: Stage] = [:]
  /// The encode under way, and the best so far.
  private var trial: UnsafeMutableRawBufferPointer
  private var best: UnsafeMutableRawBufferPointer
  /// Sizes to try before a picture is given up.
  private static let mostShrinks = 6

  /// - Parameters:
  ///   - limit: the most bytes a JPEG may have.
  ///   - width: of the sources.
  ///   - height: of the sources.
  ///   - scaling: false: pictures keep their size as long as anything fits.
  package init(limit: Int, width: Int, height: Int, scaling: Bool = true) {
    self.limit = limit
    self.scaling = scaling
    rule = SizeRule(width: width, height: height)
    unsafe trial = .allocate(byteCount: limit, alignment: 64)
    unsafe best = .allocate(byteCount: limit, alignment: 64)
  }

  deinit {
    unsafe trial.deallocate()
    unsafe best.deallocate()
  }

  /// The bytes of the picture encoded last; as many as its result says. Until the next picture.
  package var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(best) }

  /// Copies the picture encoded last, with the result it had.
  func copy(_ result: Result, into target: inout MutableSpan<UInt8>) {
    precondition(target.count >= result.byteCount, "too little room for the picture")
    unsafe target.withUnsafeMutableBufferPointer { target in
      unsafe UnsafeMutableRawBufferPointer(target).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: best[..<result.byteCount]))
    }
  }

  /// What libjpeg said when it refused; where it said nothing, swscale did not find a way to a smaller size.
  package var words: String { encoder.words.isEmpty ? "it cannot be scaled" : encoder.words }

  /// Encodes a picture of planar 4:2:0.
  package func encode(_ picture: borrowing PictureView) throws(Failure) -> Result {
    var result = Result()
    guard scaling else { return try encode(picture, factor: 1, &result) }
    let first = rule.first
    guard rule.mayChange else { return try encode(picture, factor: first, &result) }
    let scale = try probe(picture, factor: first, &result)
    let factor = rule.factor(scale: scale)
    if rule.size(factor: factor) == rule.size(factor: first) {
      return try encode(picture, factor: first, isProbed: true, &result)
    }
    stages[width(first)]?.control.leave()
    return try encode(picture, factor: factor, &result)
  }

  /// The scale of the tables a picture would need at a size.
  private func probe(
    _ picture: borrowing PictureView, factor: Double, _ result: inout Result
  ) throws(Failure) -> Double {
    var stage = try prepare(picture, factor)
    defer { stages[width(factor)] = stage }
    var step = stage.control.begin(limit: limit, rows: rows(stage, picture))
    while case .probe(let scale) = step {
      step = stage.control.probed(try probe(picture, stage, scale))
      result.probes += 1
    }
    return stage.control.present
  }

  /// Encodes at a size, at smaller ones when nothing fits. `isProbed`: the first size's probes were made just now.
  private func encode(
    _ picture: borrowing PictureView, factor: Double, isProbed: Bool = false, _ result: inout Result
  ) throws(Failure) -> Result {
    var (factor, isProbed) = (factor, isProbed)
    for _ in 0...Self.mostShrinks {
      guard let smaller = try attempt(picture, factor, isProbed: isProbed, &result) else { return result }
      // Where a size cannot get smaller nothing more can be done.
      guard rule.size(factor: factor * smaller) != rule.size(factor: factor) else { break }
      (factor, isProbed) = (factor * smaller, false)
    }
    throw .tooLarge
  }

  /// Encodes at one size; nil when it fits, otherwise the factor that may help.
  private func attempt(
    _ picture: borrowing PictureView, _ factor: Double, isProbed: Bool, _ result: inout Result
  ) throws(Failure) -> Double? {
    var stage = isProbed ? stages[width(factor)] ?? Stage() : try prepare(picture, factor)
    defer { stages[width(factor)] = stage }
    var step =
      isProbed
      ? .encode(scale: stage.control.present)
      : stage.control.begin(limit: limit, rows: rows(stage, picture))
    var bytes = 0
    var fitting = (bytes: 0, scale: 0.0)
    while true {
      switch step {
      case .probe(let scale):
        step = stage.control.probed(try probe(picture, stage, scale))
        result.probes += 1
      case .encode(let scale):
        bytes = try encode(picture, stage, scale)
        step = stage.control.encoded(bytes)
        result.encodes += 1
        if bytes <= limit && bytes > fitting.bytes {
          unsafe swap(&trial, &best)
          fitting = (bytes, scale)
        }
      case .keep:
        let size = rule.size(factor: factor)
        result.byteCount = fitting.bytes
        result.scale = fitting.scale
        (result.width, result.height) = size
        return nil
      case .shrink(let factor): return factor
      }
    }
  }

  // MARK: Pieces

  private func width(_ factor: Double) -> Int { rule.size(factor: factor).width }

  /// The stage of a size, its picture made.
  private func prepare(_ picture: borrowing PictureView, _ factor: Double) throws(Failure) -> Stage {
    let size = rule.size(factor: factor)
    var stage = stages[size.width] ?? Stage()
    guard size.width != picture.width || size.height != picture.height else { return stage }
    if stage.scaler == nil { stage.scaler = PictureScaler(to: .i420, width: size.width, height: size.height) }
    guard let scaler = stage.scaler, scaler.scale(picture) else { throw .refused }
    return stage
  }

  private func rows(_ stage: Stage, _ picture: borrowing PictureView) -> Int {
    ((stage.scaler?.height ?? picture.height) + 15) / 16
  }

  private func probe(
    _ picture: borrowing PictureView, _ stage: Stage, _ scale: Double
  ) throws(Failure) -> Int {
    let control = stage.control
    let bytes: Int?
    if let scaler = stage.scaler {
      bytes = encoder.probe(scaler.view, scale: scale, first: control.firstRow, step: control.rowStep)
    } else {
      bytes = encoder.probe(picture, scale: scale, first: control.firstRow, step: control.rowStep)
    }
    guard let bytes else { throw .refused }
    return bytes
  }

  private func encode(
    _ picture: borrowing PictureView, _ stage: Stage, _ scale: Double
  ) throws(Failure) -> Int {
    let bytes: Int?
    if let scaler = stage.scaler {
      bytes = unsafe encoder.encode(scaler.view, scale: scale, into: trial)
    } else {
      bytes = unsafe encoder.encode(picture, scale: scale, into: trial)
    }
    guard let bytes else { throw .refused }
    return bytes
  }
}
