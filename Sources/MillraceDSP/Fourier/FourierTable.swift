internal import Glibc
internal import Synchronization

/// The passes and twiddle factors of transforms of one length. Immutable after `init`; shared by the process.
@safe final class FourierTable: @unchecked Sendable {
  /// One pass over all elements; it divides the remaining length by four, or in the last pass by two.
  @safe struct Pass {
    enum Kind {
      case first, four, two
    }

    var kind: Kind
    /// A quarter of the remaining length: butterflies with different factors.
    var quarter: Int
    /// Butterflies that share their factors.
    var stride: Int
    /// exp(-2 pi j p k / (4 quarter)) for p below quarter: real, then imaginary parts for k = 1, then 2, then 3.
    var turns: UnsafePointer<Float>
  }

  /// `passCount` passes. Not an array, whose iteration allocates in unoptimised builds.
  let passes: UnsafeMutablePointer<Pass>
  let passCount: Int
  /// exp(-2 pi j k / size) for k below size / 4: real, then imaginary parts.
  let halfTurns: UnsafePointer<Float>
  private let memory: UnsafeMutablePointer<Float>

  private init(size: Int) {
    let half = size / 2
    var lengths: [Int] = []
    var length = half
    while length >= 4 {
      lengths.append(length)
      length /= 4
    }
    let count = size / 2 + lengths.reduce(0) { $0 + $1 / 4 * 6 }
    unsafe memory = .allocate(capacity: count)
    unsafe memory.initialize(repeating: 0, count: count)
    unsafe Self.fill(memory, count: size / 4, times: 1, of: size)
    unsafe halfTurns = UnsafePointer(memory)

    var passes: [Pass] = []
    var place = unsafe memory + size / 2
    for length in lengths {
      let quarter = length / 4
      for factor in 1...3 {
        unsafe Self.fill(place + (factor - 1) * 2 * quarter, count: quarter, times: factor, of: length)
      }
      passes.append(
        unsafe Pass(
          kind: passes.isEmpty ? .first : .four, quarter: quarter, stride: half / length,
          turns: UnsafePointer(place)))
      unsafe place += 6 * quarter
    }
    if length == 2 {
      passes.append(unsafe Pass(kind: .two, quarter: 0, stride: half / 2, turns: UnsafePointer(memory)))
    }
    passCount = passes.count
    unsafe self.passes = .allocate(capacity: passes.count)
    for (index, pass) in passes.enumerated() { unsafe (self.passes + index).initialize(to: pass) }
  }

  deinit {
    unsafe passes.deallocate()
    unsafe memory.deallocate()
  }

  /// Writes the real, then the imaginary parts of exp(-2 pi j p factor / length) for p below count.
  private static func fill(
    _ target: UnsafeMutablePointer<Float>, count: Int, times factor: Int, of length: Int
  ) {
    for index in 0..<count {
      let angle = -2 * Double.pi * Double(index * factor) / Double(length)
      unsafe target[index] = Float(cos(angle))
      unsafe target[count + index] = Float(sin(angle))
    }
  }

  /// The table of each length, kept for the life of the process: there are about a dozen lengths, and the longest takes 450 KB.
  private static let tables = Mutex<[Int: FourierTable]>([:])

  /// The table of a length, built on first use. Takes a lock: control side only.
  static func shared(size: Int) -> FourierTable {
    tables.withLock { tables in
      if let known = tables[size] { return known }
      let made = FourierTable(size: size)
      tables[size] = made
      return made
    }
  }
}
