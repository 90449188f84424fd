/// The newest samples of a stream, to be looked at by their age. Memory is taken in `init`; one thread at a time.
@safe struct FarHistory: ~Copyable {
  private let samples: FloatStore
  private let mask: Int
  /// Samples pushed so far.
  private(set) var count = 0

  /// Keeps the newest `least` samples or more.
  init(least: Int) {
    var capacity = 1
    while capacity < least { capacity *= 2 }
    samples = FloatStore(capacity)
    mask = capacity - 1
  }

  /// Appends `length` samples.
  mutating func push(_ source: borrowing FloatStore, from: Int = 0, count length: Int) {
    let place = count & mask
    let first = min(length, mask + 1 - place)
    samples.copy(source, from: from, to: place, count: first)
    samples.copy(source, from: from + first, to: 0, count: length - first)
    count += length
  }

  /// Writes the `length` samples of which the last is `age` samples older than the newest. What lies before the
  /// first sample is silence; what is no longer kept must not be asked for.
  func read(age: Int, count length: Int, into target: borrowing FloatStore, at: Int = 0) {
    let begin = count - age - length
    assert(age + length <= mask + 1)
    let place = begin & mask
    let first = min(length, mask + 1 - place)
    target.copy(samples, from: place, to: at, count: first)
    target.copy(samples, from: 0, to: at + first, count: length - first)
  }

  /// Forgets everything.
  mutating func reset() {
    samples.fill(0)
    count = 0
  }
}
