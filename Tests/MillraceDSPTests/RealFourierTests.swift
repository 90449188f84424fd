import CMallocCount
import CMillraceKernels
import Glibc
import Testing

@testable import MillraceDSP

/// Transforms `x` and returns its bins.
private func transform(_ x: [Float], _ fourier: borrowing RealFourier) -> (re: [Float], im: [Float]) {
  var re = [Float](repeating: .nan, count: fourier.binCount)
  var im = re
  var reSpan = re.mutableSpan
  var imSpan = im.mutableSpan
  fourier.forward(x.span, re: &reSpan, im: &imSpan)
  return (re, im)
}

private func back(_ re: [Float], _ im: [Float], _ fourier: borrowing RealFourier) -> [Float] {
  var y = [Float](repeating: .nan, count: fourier.size)
  var span = y.mutableSpan
  fourier.inverse(re: re.span, im: im.span, into: &span)
  return y
}

@Suite("Real Fourier transform")
struct RealFourierTests {
  @Test("every bin equals the sum that defines it", arguments: [32, 64, 128, 256, 512, 1024])
  func everyBin(size: Int) {
    let fourier = RealFourier(size: size)
    let x = noise(size, seed: UInt64(size))
    let bins = transform(x, fourier)
    for k in 0...size / 2 {
      var (re, im) = (0.0, 0.0)
      for (i, value) in x.enumerated() {
        let angle = -2 * Double.pi * Double(k * i % size) / Double(size)
        re += Double(value) * cos(angle)
        im += Double(value) * sin(angle)
      }
      #expect(abs(Double(bins.re[k]) - re) < 2e-5, "bin \(k)")
      #expect(abs(Double(bins.im[k]) - im) < 2e-5, "bin \(k)")
    }
  }

  @Test(
    "a long transform finds a tone in its bin and nothing elsewhere", arguments: [2048, 8192, 16384, 65536])
  func longTone(size: Int) {
    let fourier = RealFourier(size: size)
    let bin = size / 5
    let x = (0..<size).map { Float(cos(2 * Double.pi * Double(bin * $0 % size) / Double(size) + 0.5)) }
    let bins = transform(x, fourier)
    for k in 0...size / 2 where k != bin {
      #expect(hypot(bins.re[k], bins.im[k]) < 3e-6 * Float(size), "bin \(k)")
    }
    #expect(abs(bins.re[bin] - Float(size) / 2 * cos(Float(0.5))) < 1e-6 * Float(size))
    #expect(abs(bins.im[bin] - Float(size) / 2 * sin(Float(0.5))) < 1e-6 * Float(size))
  }

  @Test(
    "forward and inverse transform give the input back",
    arguments: [32, 64, 128, 256, 512, 4096, 16384, 32768])
  func thereAndBack(size: Int) {
    let fourier = RealFourier(size: size)
    let x = noise(size, seed: 3)
    let bins = transform(x, fourier)
    let y = back(bins.re, bins.im, fourier)
    #expect(zip(x, y).allSatisfy { abs($0 - $1) < 1e-6 })
  }

  @Test("a product of bins is a circular convolution")
  func convolution() {
    let fourier = RealFourier(size: 64)
    let (x, h) = (noise(64, seed: 1), noise(64, seed: 2))
    let (a, b) = (transform(x, fourier), transform(h, fourier))
    let re = (0...32).map { a.re[$0] * b.re[$0] - a.im[$0] * b.im[$0] }
    let im = (0...32).map { a.re[$0] * b.im[$0] + a.im[$0] * b.re[$0] }
    let y = back(re, im, fourier)
    for i in 0..<64 {
      let expected = (0..<64).reduce(Float(0)) { $0 + x[$1] * h[(i - $1 + 64) % 64] }
      #expect(abs(y[i] - expected) < 1e-5)
    }
  }

  @Test("a NaN corrupts one transform and not the next")
  func notANumber() {
    let fourier = RealFourier(size: 256)
    var x = noise(256)
    let clean = transform(x, fourier)
    x[7] = .nan
    #expect(transform(x, fourier).re.contains { $0.isNaN })
    x[7] = noise(256)[7]
    #expect(transform(x, fourier).re == clean.re)
  }

  @Test("a transform allocates nothing")
  func heap() {
    let fourier = RealFourier(size: 256)
    let x = noise(256)
    var (re, im) = ([Float](repeating: 0, count: 129), [Float](repeating: 0, count: 129))
    var y = x
    let requests = heapRequests {
      for _ in 0..<10 {
        var reSpan = re.mutableSpan
        var imSpan = im.mutableSpan
        fourier.forward(x.span, re: &reSpan, im: &imSpan)
        var span = y.mutableSpan
        fourier.inverse(re: re.span, im: im.span, into: &span)
      }
    }
    #expect(requests == 0)
  }

  @Test(
    "each variant of the passes gives the same bins to float precision",
    .enabled(if: mk_kernels_at(mk_level_avx2) != nil, "this processor has no AVX2, so only one can run"))
  func compilations() throws {
    let wide = try #require(mk_kernels_at(mk_level_avx2))
    let plain = try #require(mk_kernels_at(mk_level_baseline))
    let x = noise(128 * 2)
    let turns = noise(6 * 32, seed: 5)
    for pairs in [true, false] {
      var results: [[Float]] = []
      for kernels in [plain.pointee, wide.pointee] {
        var (re, im) = ([Float](repeating: 0, count: 128), [Float](repeating: 0, count: 128))
        x.withUnsafeBufferPointer {
          kernels.fourier_first($0.baseAddress!, pairs ? nil : $0.baseAddress! + 128, &re, &im, 32, turns)
        }
        var (re2, im2) = (re, im)
        kernels.fourier_pass4(re, im, &re2, &im2, 2, 16, turns)
        kernels.fourier_pass4(re2, im2, &re, &im, 8, 4, turns)
        kernels.fourier_pass2(re, im, &re2, &im2, 64)
        results.append(re2 + im2)
      }
      #expect(zip(results[0], results[1]).allSatisfy { abs($0 - $1) < 1e-4 })
    }
  }
}
