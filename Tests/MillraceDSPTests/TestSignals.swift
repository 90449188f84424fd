import CMallocCount
import Glibc
import MillraceDSP

/// Pseudo-random numbers, the same in every run.
func noise(_ count: Int, seed: UInt64 = 1, amplitude: Double = 0.5) -> [Float] {
  var random = Xoshiro256(seed: seed)
  return (0..<count).map { _ in Float(random.nextUnit() * amplitude) }
}

func noise16(_ count: Int, seed: UInt64 = 1) -> [Int16] {
  var random = Xoshiro256(seed: seed)
  return (0..<count).map { _ in Int16(truncatingIfNeeded: random.next()) }
}

func tone(_ frequency: Double, rate: Int, count: Int, amplitude: Double = 0.5) -> [Float] {
  (0..<count).map { Float(amplitude * sin(2 * .pi * frequency * Double($0) / Double(rate))) }
}

/// Level of `samples` outside the sine of `frequency` that fits them best, and of that sine, both in dB of
/// RMS.
func fit(_ samples: ArraySlice<Float>, frequency: Double, rate: Int) -> (tone: Double, rest: Double) {
  let fit = ToneFit(samples.map(Double.init), frequency: frequency, rate: rate)
  return (10 * log10(fit.tone + 1e-30), 10 * log10(fit.rest + 1e-30))
}

func rms(_ samples: ArraySlice<Float>) -> Double {
  20
    * log10(
      (samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(samples.count)).squareRoot() + 1e-15)
}

/// Splits `0..<count` into pieces: all of one length, or of seeded random lengths from 0 to 700 when `length`
/// is 0.
func pieces(of count: Int, length: Int, seed: UInt64 = 7) -> [Range<Int>] {
  var random = Xoshiro256(seed: seed)
  var result: [Range<Int>] = []
  var start = 0
  while start < count {
    let size = length > 0 ? length : Int(random.next() % 701)
    result.append(start..<min(start + size, count))
    start = min(start + size, count)
  }
  return result
}

/// Heap requests of this thread while `body` runs a second time, in the steady state of a stream.
func heapRequests(_ body: () -> Void) -> UInt64 {
  body()
  let before = millrace_malloc_thread_requests()
  body()
  return millrace_malloc_thread_requests() - before
}
