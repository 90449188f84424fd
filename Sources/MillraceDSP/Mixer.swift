/// Adds streams frame by frame in float and saturates once at the end, so that the order of the streams does
/// not matter to the overload and a loud pair that cancels stays clean.
///
/// Use: ``begin(_:)`` with the samples of this step, `add(_:gain:)` for each stream,
/// `finish(into:)`. Memory is taken in `init`; nothing else allocates. One thread at a
/// time.
@safe public struct Mixer: ~Copyable, @unchecked Sendable {
  /// Most samples (all channels) a step may have.
  public let capacity: Int
  private let sum: UnsafeMutablePointer<Float>
  private var count = 0

  /// Makes a mixer for steps of up to `capacity` samples.
  public init(capacity: Int) {
    precondition(capacity > 0, "a mixer holds at least one sample")
    self.capacity = capacity
    unsafe sum = .allocate(capacity: capacity)
    unsafe sum.initialize(repeating: 0, count: capacity)
  }

  deinit { unsafe sum.deallocate() }

  /// Starts a step of `samples` samples with silence; traps above ``capacity``.
  public mutating func begin(_ samples: Int) {
    precondition(samples >= 0 && samples <= capacity, "more samples than the mixer holds")
    count = samples
    unsafe sum.update(repeating: 0, count: samples)
  }

  /// Adds a stream. A shorter one is silent after its end; samples past the step are left out.
  public mutating func add(_ samples: Span<Int16>, gain: Double = 1) {
    let taken = min(samples.count, count)
    var run = unsafe MutableSpan(_unsafeStart: sum, count: taken)
    SampleMath.mix(samples.extracting(first: taken), gain: Float(gain), into: &run)
  }

  /// Adds a stream. A shorter one is silent after its end; samples past the step are left out.
  public mutating func add(_ samples: Span<Float>, gain: Double = 1) {
    let taken = min(samples.count, count)
    var run = unsafe MutableSpan(_unsafeStart: sum, count: taken)
    SampleMath.mix(samples.extracting(first: taken), gain: Float(gain), into: &run)
  }

  /// Writes the sum, rounded and saturated; `output` holds exactly the samples of the step.
  public mutating func finish(into output: inout MutableSpan<Int16>) {
    SampleConversion.convert(unsafe Span(_unsafeStart: sum, count: count), into: &output)
  }

  /// Writes the sum as it is, which may pass full scale; `output` holds exactly the samples of the step.
  public mutating func finish(into output: inout MutableSpan<Float>) {
    precondition(output.count == count, "sample counts differ")
    for index in 0..<count { output[index] = unsafe sum[index] }
  }
}
