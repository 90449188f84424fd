import CMillraceKernels
import Testing

/// Every variant of every kernel that this processor can run, compared with scalar loops.
@Suite("Kernels")
struct KernelTests {
  static let levels: [mk_level] = [mk_level_baseline, mk_level_avx2].filter { mk_kernels_at($0) != nil }
  static let counts = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 240, 479, 480, 1000]
  /// Offsets in elements from an aligned start.
  static let offsets = [0, 1, 3]

  static func each(_ body: (mk_kernels, _ count: Int, _ offset: Int) -> Void) {
    for level in levels {
      for count in counts {
        for offset in offsets { body(mk_kernels_at(level).pointee, count, offset) }
      }
    }
  }

  @Test("the wide kernels are in use where the processor has AVX2, and the plain ones everywhere else")
  func choice() {
    let best: mk_level = mk_kernels_at(mk_level_avx2) != nil ? mk_level_avx2 : mk_level_baseline
    #expect(mk_level_in_use() == best)
    #expect(mk_kernels_at(mk_level(rawValue: 9)) == nil)
  }

  @Test("a dot product equals the exact sum to float precision")
  func dot() {
    Self.each { kernels, count, offset in
      let (a, b) = (noise(count + 4, seed: 1), noise(count + 4, seed: 2))
      let got = a.withUnsafeBufferPointer { a in
        b.withUnsafeBufferPointer { kernels.dot_f32(a.baseAddress! + offset, $0.baseAddress!, count) }
      }
      var exact = 0.0
      for i in 0..<count { exact += Double(a[i + offset]) * Double(b[i]) }
      #expect(abs(Double(got) - exact) < 2e-6 * (1 + Double(count).squareRoot()), "count \(count)")
    }
  }

  @Test("polyphase output i is the dot product of its row and its window")
  func polyphase() {
    for level in Self.levels {
      let kernels = mk_kernels_at(level).pointee
      let (taps, phases) = (24, 5)
      let (x, table) = (noise(300), noise(taps * phases, seed: 9))
      for (step, part, phase) in [(0, 3, 0), (2, 1, 4), (1, 0, 2)] {
        var out = [Float](repeating: 7, count: 60)
        x.withUnsafeBufferPointer { x in
          table.withUnsafeBufferPointer { table in
            kernels.polyphase_f32(
              x.baseAddress!, table.baseAddress!, taps, phases, step, part, phase, &out, 2, 30)
          }
        }
        for i in 0..<30 {
          let position = phase + i * (step * phases + part)
          var exact = 0.0
          for k in 0..<taps {
            exact += Double(x[position / phases + k]) * Double(table[position % phases * taps + k])
          }
          #expect(abs(Double(out[2 * i]) - exact) < 1e-5)
          #expect(out[2 * i + 1] == 7)
        }
      }
    }
  }

  @Test("floats become 16 bits with rounding to even, saturation, and 0 for NaN")
  func toInt16() {
    let special: [(Float, Int16)] = [
      (0, 0), (1, 32767), (-1, -32768), (2, 32767), (-2, -32768), (.infinity, 32767), (-.infinity, -32768),
      (.nan, 0),
      (-.nan, 0), (0.5 / 32768, 0), (1.5 / 32768, 2), (2.5 / 32768, 2), (-0.5 / 32768, 0), (-1.5 / 32768, -2),
      (32766.5 / 32768, 32766), (32767.4 / 32768, 32767), (-32768.4 / 32768, -32768), (1e30, 32767),
      (-1e-30, 0),
      (0.49999 / 32768, 0), (0.50001 / 32768, 1),
    ]
    Self.each { kernels, count, offset in
      let input = (0..<count + 4).map { special[$0 % special.count].0 }
      var output = [Int16](repeating: 99, count: count + 1)
      input.withUnsafeBufferPointer { kernels.f32_to_s16($0.baseAddress! + offset, &output, count) }
      #expect(output[..<count].elementsEqual((0..<count).map { special[($0 + offset) % special.count].1 }))
      #expect(output[count] == 99)
    }
  }

  @Test("every 16-bit sample survives the way to float and back")
  func everyInt16() {
    for level in Self.levels {
      let kernels = mk_kernels_at(level).pointee
      let all = (Int16.min...Int16.max).map { $0 }
      var floats = [Float](repeating: 0, count: all.count)
      var back = [Int16](repeating: 0, count: all.count)
      kernels.s16_to_f32(all, &floats, all.count)
      kernels.f32_to_s16(floats, &back, all.count)
      #expect(floats.first == -1)
      #expect(back == all)
    }
  }

  @Test("gain and mixing equal the scalar loops")
  func gainAndMix() {
    Self.each { kernels, count, offset in
      let (x, y) = (noise(count + 4, seed: 3), noise(count, seed: 4))
      let p = noise16(count + 4, seed: 5)
      var gained = [Float](repeating: 0, count: count)
      var mixed = y
      var wide = y
      var gained16 = [Int16](repeating: 0, count: count)
      x.withUnsafeBufferPointer {
        kernels.gain_f32($0.baseAddress! + offset, &gained, count, 0.3)
        kernels.mix_f32($0.baseAddress! + offset, &mixed, count, -0.7)
      }
      p.withUnsafeBufferPointer {
        kernels.gain_s16($0.baseAddress! + offset, &gained16, count, 1.7)
        kernels.mix_s16_f32($0.baseAddress! + offset, &wide, count, 0.25)
      }
      for i in 0..<count {
        #expect(gained[i] == x[i + offset] * 0.3)
        #expect(abs(mixed[i] - (y[i] - 0.7 * x[i + offset])) < 1e-6)
        #expect(abs(wide[i] - (y[i] + Float(p[i + offset]) / 32768 * 0.25)) < 1e-6)
        let scaled = (Float(p[i + offset]) * 1.7).rounded(.toNearestOrEven)
        #expect(gained16[i] == Int16(min(max(scaled, -32768), 32767)))
      }
    }
  }

  @Test("energy and peak equal the scalar loops, also at the most negative sample and with NaN")
  func energy() {
    Self.each { kernels, count, offset in
      var x = noise(count + 4, seed: 3)
      var p = noise16(count + 4, seed: 5)
      if count > 2 {
        p[offset + 1] = .min
        x[offset + 2] = .nan
      }
      var (squares, peak, squares16, peak16) = (-1.0, Float(-1), UInt64(1), UInt32(1))
      x.withUnsafeBufferPointer { kernels.energy_f32($0.baseAddress! + offset, count, &squares, &peak) }
      p.withUnsafeBufferPointer { kernels.energy_s16($0.baseAddress! + offset, count, &squares16, &peak16) }
      let clean = x[offset..<offset + count].map { $0.isNaN ? 0 : $0 }
      let whole = p[offset..<offset + count].map { Int64($0) }
      #expect(abs(squares - clean.reduce(0.0) { $0 + Double($1) * Double($1) }) < 1e-9)
      #expect(peak == clean.map(abs).max() ?? 0)
      #expect(squares16 == UInt64(whole.reduce(0) { $0 + $1 * $1 }))
      #expect(Int64(peak16) == whole.map(abs).max() ?? 0)
    }
  }

  @Test("channels are deinterleaved and interleaved again")
  func interleaving() {
    for level in Self.levels {
      let kernels = mk_kernels_at(level).pointee
      for channels in 1...5 {
        for count in Self.counts {
          let (x, p) = (noise(count * channels), noise16(count * channels))
          var back = [Float](repeating: 0, count: x.count)
          var back16 = [Int16](repeating: 0, count: p.count)
          for channel in 0..<channels {
            var one = [Float](repeating: 0, count: count)
            var one16 = [Int16](repeating: 0, count: count)
            var wide = [Float](repeating: 0, count: count)
            kernels.deinterleave_f32(x, channels, channel, &one, count)
            kernels.deinterleave_s16(p, channels, channel, &one16, count)
            kernels.deinterleave_s16_f32(p, channels, channel, &wide, count)
            #expect((0..<count).allSatisfy { one[$0] == x[$0 * channels + channel] })
            #expect((0..<count).allSatisfy { wide[$0] * 32768 == Float(one16[$0]) })
            kernels.interleave_f32(one, &back, channels, channel, count)
            kernels.interleave_s16(one16, &back16, channels, channel, count)
          }
          #expect(back == x)
          #expect(back16 == p)
        }
      }
    }
  }

  @Test("a fully connected layer gives biases plus weights times inputs, for any number of rows")
  func dense() {
    let block = Int(MK_DENSE_BLOCK)
    for level in Self.levels {
      let kernels = mk_kernels_at(level).pointee
      for (inputs, rows, stride) in [
        (1, 1, 1), (7, 1, 0), (387, 4, 129), (384, 2, 256), (64, 3, 64), (5, 0, 5),
      ] {
        let outputs = 2 * block
        let (weights, biases) = (noise(inputs * outputs, seed: 3), noise(outputs, seed: 4))
        let input = noise(inputs + 4 * max(stride, 1), seed: 5)
        var output = [Float](repeating: 7, count: rows * outputs + 1)
        kernels.dense_f32(weights, biases, input, inputs, stride, rows, &output, outputs)
        for row in 0..<rows {
          for place in 0..<outputs {
            var exact = Double(biases[place])
            for i in 0..<inputs {
              let weight = weights[(place / block * inputs + i) * block + place % block]
              exact += Double(weight) * Double(input[row * stride + i])
            }
            #expect(abs(Double(output[row * outputs + place]) - exact) < 2e-5)
          }
        }
        #expect(output[rows * outputs] == 7)
      }
    }
  }
}
