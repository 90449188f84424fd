/// Finds the jump at which a signal is most similar to itself: the splice a listener notices least.
///
/// Pure functions over spans; no allocation. Frames of several channels count as one signal.
enum SpliceSearch {
  /// A jump and the similarity of both sides: 1 identical, 0 unrelated.
  struct Found: Equatable {
    var jump: Int
    var similarity: Float
  }

  /// Mean square (-66 dBFS) below which any position will do.
  private static let silence: Float = 2.5e-7

  /// The jump within `jumps` (in frames, all of one sign) after which `sound` is most similar to the `length` frames at `place`.
  ///
  /// `place + jump` and the `length` frames after it must lie inside `sound`, for every jump.
  static func best(
    _ sound: Span<Float>, channels: Int, at place: Int, jumps: ClosedRange<Int>, length: Int
  ) -> Found {
    let count = length * channels
    let here = sound.extracting(place * channels..<place * channels + count)
    let energy = SampleMath.dot(here, here)
    let middle = (jumps.lowerBound + jumps.upperBound) / 2
    guard energy > silence * Float(count) else { return Found(jump: middle, similarity: 1) }
    var best = Found(jump: middle, similarity: -1)
    for jump in jumps {
      let from = (place + jump) * channels
      let there = sound.extracting(from..<from + count)
      let product = SampleMath.dot(here, there)
      // A negative correlation cannot win, and computing the energy costs as much again.
      guard product > 0 else { continue }
      let similarity = product / (energy * SampleMath.dot(there, there)).squareRoot()
      if similarity > best.similarity { best = Found(jump: jump, similarity: similarity) }
    }
    return best
  }
}
