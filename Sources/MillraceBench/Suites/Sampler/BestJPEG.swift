import MillraceVideo

/// The best that plain JPEG reaches under a byte limit, found by search: the yardstick for the sampler's one or two encodes.
struct BestJPEG {
  private let encoder = JPEGEncoder()

  /// Similarity to the source (SSIM) of the best JPEG of a picture at its own size.
  func similarity(of picture: RawPicture, limit: Int) -> Double? { best(of: picture, limit) }

  /// Similarity of the best among several sizes, each scaled back to the source's.
  func similarityAtAnySize(of picture: RawPicture, limit: Int) -> Double? {
    let factors = [1, 0.875, 0.75, 2.0 / 3, 0.5]
    return factors.compactMap { factor -> Double? in
      guard factor < 1 else { return best(of: picture, limit) }
      func side(_ full: Int) -> Int { Int((Double(full) * factor / 2).rounded()) * 2 }
      guard let small = picture.scaled(width: side(picture.width), height: side(picture.height)) else {
        return nil
      }
      return best(of: small, limit, against: picture)
    }.max()
  }

  private func best(of picture: RawPicture, _ limit: Int, against source: RawPicture? = nil) -> Double? {
    var target = [UInt8](repeating: 0, count: limit)
    func size(_ scale: Double) -> Int {
      unsafe target.withUnsafeMutableBytes { unsafe encoder.encode(picture.view, scale: scale, into: $0) }
        ?? .max
    }
    var (fine, coarse) = (RateControl.finest, RateControl.coarsest)
    if size(fine) <= limit {
      coarse = fine
    } else {
      for _ in 0..<13 {
        let middle = (fine * coarse).squareRoot()
        if size(middle) <= limit { coarse = middle } else { fine = middle }
      }
    }
    let count = size(coarse)
    guard count <= limit else { return nil }
    return unsafe target.withUnsafeBytes { bytes in
      unsafe jpegSimilarity(
        UnsafeRawBufferPointer(rebasing: bytes[..<count]), width: picture.width, height: picture.height,
        to: source ?? picture)
    }
  }
}

/// Similarity of a JPEG to its source, at the size of the source; nil when it does not decode.
func jpegSimilarity(_ jpeg: UnsafeRawBufferPointer, width: Int, height: Int, to source: RawPicture) -> Double?
{
  guard let shown = unsafe RawPicture.decoded(jpeg, width: width, height: height) else { return nil }
  guard shown.width != source.width || shown.height != source.height else {
    return source.similarity(to: shown)
  }
  return shown.scaled(width: source.width, height: source.height).map { source.similarity(to: $0) }
}
