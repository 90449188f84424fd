/// A repeatable sequence of numbers: a linear congruential generator (Knuth, MMIX), whose high bits are the random ones.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state
  }

  mutating func roll(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &self) }
}
