internal import CMillraceKernels

/// The discrete Fourier transform of real data, forward and inverse, for one length.
///
/// - ``size`` n: a power of two from 32 to 65,536. n real samples give ``binCount`` = n / 2 + 1 bins, with real and imaginary parts
///   in separate arrays: bin k = sum of x[i] * exp(-2 pi j k i / n). The forward transform is not scaled; the inverse is scaled by 1
///   / n, so that the two invert each other.
/// - Float throughout; the error is about 1e-7 of the largest bin times the square root of log2(n).
/// - A NaN or an infinity corrupts the transform it is in, and nothing after it.
///
/// Made once per length; the factors are shared by all instances of one length. `init` allocates, takes a lock and computes; a
/// transform does neither. One thread at a time: a transform uses n floats of work memory.
@safe public struct RealFourier: ~Copyable, @unchecked Sendable {
  /// Supported lengths; powers of two only.
  public static let sizes = 32...65_536

  /// Real samples in a transform.
  public let size: Int
  /// Bins in a transform, from 0 to half the sample rate.
  public var binCount: Int { size / 2 + 1 }

  private let table: FourierTable
  /// Two arrays of size / 2 floats: intermediate values.
  private let work: UnsafeMutablePointer<Float>

  /// Plans transforms of `size` samples, a power of two within ``sizes``; anything else traps. Control side only.
  public init(size: Int) {
    precondition(
      Self.sizes.contains(size) && size & (size - 1) == 0, "the transform length must be a power of two")
    self.size = size
    table = FourierTable.shared(size: size)
    unsafe work = .allocate(capacity: size)
    unsafe work.initialize(repeating: 0, count: size)
  }

  deinit { unsafe work.deallocate() }

  /// Transforms `size` samples into `binCount` bins.
  public func forward(
    _ input: Span<Float>, re: inout MutableSpan<Float>, im: inout MutableSpan<Float>
  ) {
    precondition(input.count == size && re.count == binCount && im.count == binCount, "lengths do not fit")
    unsafe input.withUnsafeBufferPointer { input in
      unsafe re.withUnsafeMutableBufferPointer { re in
        unsafe im.withUnsafeMutableBufferPointer { im in
          guard let from = input.baseAddress, let re = re.baseAddress, let im = im.baseAddress else { return }
          unsafe forward(from, re, im)
        }
      }
    }
  }

  /// Transforms `binCount` bins back into `size` samples. The imaginary parts of the first and the last bin count as 0.
  public func inverse(re: Span<Float>, im: Span<Float>, into output: inout MutableSpan<Float>) {
    precondition(output.count == size && re.count == binCount && im.count == binCount, "lengths do not fit")
    unsafe re.withUnsafeBufferPointer { re in
      unsafe im.withUnsafeBufferPointer { im in
        unsafe output.withUnsafeMutableBufferPointer { output in
          guard let re = re.baseAddress, let im = im.baseAddress, let to = output.baseAddress else { return }
          unsafe inverse(re, im, to)
        }
      }
    }
  }

  /// Like the span version, for memory whose length the caller guarantees. The arrays must not overlap.
  func forward(
    _ input: UnsafePointer<Float>, _ re: UnsafeMutablePointer<Float>, _ im: UnsafeMutablePointer<Float>
  ) {
    let half = size / 2
    let (workRe, workIm) = unsafe (work, work + half)
    // The passes alternate between the output and the work memory, and must end in the latter.
    var inOutput = table.passCount % 2 == 0
    for index in 0..<table.passCount {
      let pass = unsafe table.passes[index]
      let toRe = unsafe inOutput ? re : workRe
      let toIm = unsafe inOutput ? im : workIm
      let fromRe = unsafe inOutput ? workRe : re
      let fromIm = unsafe inOutput ? workIm : im
      switch pass.kind {
      case .first: unsafe mk_fourier_first(input, nil, toRe, toIm, pass.quarter, pass.turns)
      case .four:
        unsafe mk_fourier_pass4(fromRe, fromIm, toRe, toIm, pass.quarter, pass.stride, pass.turns)
      case .two: unsafe mk_fourier_pass2(fromRe, fromIm, toRe, toIm, pass.stride)
      }
      inOutput.toggle()
    }
    unsafe mk_fourier_part(workRe, workIm, re, im, half, table.halfTurns)
  }

  /// Like the span version, for memory whose length the caller guarantees. The arrays must not overlap.
  func inverse(
    _ re: UnsafePointer<Float>, _ im: UnsafePointer<Float>, _ output: UnsafeMutablePointer<Float>
  ) {
    let half = size / 2
    let (outRe, outIm) = unsafe (output, output + half)
    let (workRe, workIm) = unsafe (work, work + half)
    // The inverse is the forward transform with real and imaginary parts exchanged, in and out.
    var inOutput = table.passCount % 2 == 0
    let (joinRe, joinIm) = unsafe inOutput ? (workRe, workIm) : (outRe, outIm)
    unsafe mk_fourier_join(re, im, joinRe, joinIm, half, table.halfTurns, 1 / Float(size))
    for index in 0..<table.passCount {
      let pass = unsafe table.passes[index]
      let (toRe, toIm) = unsafe inOutput ? (outRe, outIm) : (workRe, workIm)
      let (fromRe, fromIm) = unsafe inOutput ? (workRe, workIm) : (outRe, outIm)
      switch pass.kind {
      case .first: unsafe mk_fourier_first(fromIm, fromRe, toIm, toRe, pass.quarter, pass.turns)
      case .four:
        unsafe mk_fourier_pass4(fromIm, fromRe, toIm, toRe, pass.quarter, pass.stride, pass.turns)
      case .two: unsafe mk_fourier_pass2(fromIm, fromRe, toIm, toRe, pass.stride)
      }
      inOutput.toggle()
    }
    unsafe mk_fourier_weave(workRe, workIm, output, half)
  }
}
