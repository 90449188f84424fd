/// Finds where a stretch of sound goes on most like itself: the jump that a listener notices least.
///
/// Pure functions over spans; no allocation. Frames of several channels count as one signal.
enum SpliceSearch {
  /// A jump and how alike both sides are: 1 the same, 0 unrelated.
  struct Found: Equatable {
    var jump: Int
    var likeness: Float
  }

  /// Below this mean square (-66 dB of full scale) any place is as good as any other.
  private static let silence: Float = 2.5e-7

  /// The jump within `jumps` (in frames, all of one sign) after which `sound` goes on most like the `length` frames at `place`.
  ///
  /// All of it has to lie inside `sound`: `place + jump` and `length` frames from there, for every jump.
  static func best(
    _ sound: Span<Float>, channels: Int, at place: Int, jumps: ClosedRange<Int>, length: Int
  ) -> Found {
    let count = length * channels
    let here = sound.extracting(place * channels..<place * channels + count)
    let energy = SampleMath.dot(here, here)
    let middle = (jumps.lowerBound + jumps.upperBound) / 2
    guard energy > silence * Float(count) else { return Found(jump: middle, likeness: 1) }
    var best = Found(jump: middle, likeness: -1)
    for jump in jumps {
      let from = (place + jump) * channels
      let there = sound.extracting(from..<from + count)
      let product = SampleMath.dot(here, there)
      // Nothing that points the other way can win, and the energy costs as much again.
      guard product > 0 else { continue }
      let likeness = product / (energy * SampleMath.dot(there, there)).squareRoot()
      if likeness > best.likeness { best = Found(jump: jump, likeness: likeness) }
    }
    return best
  }
}
