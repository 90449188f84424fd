internal import CMediaShim
internal import MillraceCore

/// Encodes pictures as JPEG under a byte budget with the best possible quality: combines the size rule, the rate control and the encoder.
///
/// Allocates for one source size with the first picture. Not thread-safe; a call takes milliseconds and allocates.
@safe
package final class BudgetEncoder {
  /// The result of encoding.
  package struct Result: Sendable {
    /// Size of the JPEG, at most the limit.
    package var byteCount = 0
    package var width = 0
    package var height = 0
    /// Scale of the quantization tables in percent.
    package var scale = 0.0
    /// Full encodes, at all sizes.
    package var encodes = 0
    package var probes = 0

    /// The libjpeg quality with the nearest tables, 1 to 98.
    package var quality: Double { RateControl.quality(ofScale: scale) }
  }

  /// Why encoding failed.
  package enum Failure: Error {
    /// No size fits.
    case tooLarge
    /// libjpeg or swscale failed.
    case refused
  }

  /// The largest JPEG allowed.
  package let limit: Int
  private let encoder = JPEGEncoder()
  private var rule: SizeRule
  private let scaling: Bool
  /// State for one size: its rate control and its scaler.
  private struct Stage {
    var control = RateControl()
    var scaler: PictureScaler?
  }
  /// Stages by width.
  private var stages: [Int: Stage] = [:]
  /// The current encode, and the best so far.
  private var trial: UnsafeMutableRawBufferPointer
  private var best: UnsafeMutableRawBufferPointer
  /// Sizes to try before giving up on a picture.
  private static let maximumShrinks = 6

  /// - Parameters:
  ///   - limit: the most bytes a JPEG may have.
  ///   - width: of the sources.
  ///   - height: of the sources.
  ///   - scaling: if false, pictures keep their size as long as anything fits.
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

  /// The bytes of the last encoded picture, as many as its result says. Valid until the next picture.
  package var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(best) }

  /// Copies the last encoded picture, with its result.
  func copy(_ result: Result, into target: inout MutableSpan<UInt8>) {
    precondition(target.count >= result.byteCount, "the target is too small for the picture")
    unsafe target.withUnsafeMutableBufferPointer { target in
      unsafe UnsafeMutableRawBufferPointer(target).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: best[..<result.byteCount]))
    }
  }

  /// The libjpeg error message; if there is none, swscale could not scale to a smaller size.
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

  /// The table scale that a picture would need at a size.
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

  /// Encodes at a size, or at smaller ones if nothing fits. `isProbed`: the first size was probed just now.
  private func encode(
    _ picture: borrowing PictureView, factor: Double, isProbed: Bool = false, _ result: inout Result
  ) throws(Failure) -> Result {
    var (factor, isProbed) = (factor, isProbed)
    for _ in 0...Self.maximumShrinks {
      guard let smaller = try attempt(picture, factor, isProbed: isProbed, &result) else { return result }
      // The size cannot be reduced any further.
      guard rule.size(factor: factor * smaller) != rule.size(factor: factor) else { break }
      (factor, isProbed) = (factor * smaller, false)
    }
    throw .tooLarge
  }

  /// Encodes at one size; nil if it fits, otherwise the scale factor to try next.
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

  /// The stage of a size, with its picture scaled.
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
