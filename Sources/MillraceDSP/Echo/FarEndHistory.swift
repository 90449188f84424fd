/// The most recent samples of a stream, addressed by age. Memory is allocated in `init`; one thread at a time.
@safe struct FarEndHistory: ~Copyable {
  private let samples: FloatBuffer
  private let mask: Int
  /// Samples pushed so far.
  private(set) var count = 0

  /// Keeps at least the newest `least` samples.
  init(least: Int) {
    var capacity = 1
    while capacity < least { capacity *= 2 }
    samples = FloatBuffer(capacity)
    mask = capacity - 1
  }

  /// Appends `length` samples.
  mutating func push(_ source: borrowing FloatBuffer, from: Int = 0, count length: Int) {
    let place = count & mask
    let first = min(length, mask + 1 - place)
    samples.copy(source, from: from, to: place, count: first)
    samples.copy(source, from: from + first, to: 0, count: length - first)
    count += length
  }

  /// Writes `length` samples, the last of which is `age` samples older than the newest. Before the first sample there is silence;
  /// samples no longer kept must not be requested.
  func read(age: Int, count length: Int, into target: borrowing FloatBuffer, at: Int = 0) {
    let begin = count - age - length
    assert(age + length <= mask + 1)
    let place = begin & mask
    let first = min(length, mask + 1 - place)
    target.copy(samples, from: place, to: at, count: first)
    target.copy(samples, from: 0, to: at + first, count: length - first)
  }

  /// Clears the history.
  mutating func reset() {
    samples.fill(0)
    count = 0
  }
}
