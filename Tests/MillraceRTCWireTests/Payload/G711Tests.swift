import Testing

@testable import MillraceRTCWire

/// G.711 against its tables, which are built here from the steps of the segments, and L16.
@Suite("G.711 and L16")
struct G711Tests {
  /// The decision values of a law on the scale of 16 bits, from 0 up: magnitudes between the nth and the next have the nth code.
  private static func decisions(_ law: G711.Law) -> [Int] {
    // Number of intervals and their size, in the units of the tables: 14 bits for µ-law, 13 bits for A-law.
    let runs: [(Int, Int)] =
      law == .mu
      ? [(1, 1), (15, 2), (16, 4), (16, 8), (16, 16), (16, 32), (16, 64), (16, 128), (16, 256)]
      : [(32, 2), (16, 4), (16, 8), (16, 16), (16, 32), (16, 64), (16, 128)]
    var values = [0]
    for (count, size) in runs {
      for _ in 0..<count { values.append((values.last ?? 0) + size * (law == .mu ? 4 : 8)) }
    }
    return values
  }

  private func encode(_ sample: Int16, _ law: G711.Law) -> UInt8 {
    law == .mu ? G711.muLaw(sample) : G711.aLaw(sample)
  }

  private func decode(_ code: UInt8, _ law: G711.Law) -> Int16 {
    law == .mu ? G711.sample(muLaw: code) : G711.sample(aLaw: code)
  }

  /// The code of the nth interval of a sign.
  private func code(_ interval: Int, _ isNegative: Bool, _ law: G711.Law) -> UInt8 {
    switch law {
    case .mu: ~(UInt8(interval) | (isNegative ? 0x80 : 0))
    case .a: (UInt8(interval) | (isNegative ? 0 : 0x80)) ^ 0x55
    }
  }

  @Test("every code decodes to the middle of its interval", arguments: G711.Law.allCases)
  func middles(law: G711.Law) {
    let decisions = Self.decisions(law)
    #expect(decisions.count == 129)
    for interval in 0..<128 {
      var middle = (decisions[interval] + decisions[interval + 1]) / 2
      // The first interval of µ-law lies around 0.
      if law == .mu && interval == 0 { middle = 0 }
      #expect(Int(decode(code(interval, false, law), law)) == middle)
      #expect(Int(decode(code(interval, true, law), law)) == -middle)
    }
  }

  @Test("every sample gets the code of the interval it lies in", arguments: G711.Law.allCases)
  func samples(law: G711.Law) {
    let decisions = Self.decisions(law)
    var wrong = 0
    for isNegative in [false, true] {
      var interval = 0
      for magnitude in 0...(isNegative ? 32_768 : 32_767) where !isNegative || magnitude > 0 {
        // On a decision value: upwards when positive, towards 0 when negative, like the reference software of the ITU.
        let place = isNegative ? magnitude - 1 : magnitude
        while interval < 127, place >= decisions[interval + 1] { interval += 1 }
        let sample = Int16(truncatingIfNeeded: isNegative ? -magnitude : magnitude)
        if encode(sample, law) != code(interval, isNegative, law) { wrong += 1 }
      }
    }
    #expect(wrong == 0)
  }

  @Test("no sample is farther from its code than half a step", arguments: G711.Law.allCases)
  func errorBound(law: G711.Law) {
    let decisions = Self.decisions(law)
    var wrong = 0
    for value in Int16.min...Int16.max {
      let decoded = Int(decode(encode(value, law), law))
      let magnitude = min(abs(Int(value)), law == .mu ? 32_635 : 32_767)
      let above = decisions.firstIndex { $0 > magnitude } ?? 128
      let step = decisions[above] - decisions[above - 1]
      let bound = law == .mu && magnitude <= 4 ? 4 : step / 2
      if abs(decoded.magnitude.distance(to: magnitude.magnitude)) > bound { wrong += 1 }
      if decoded != 0, value != 0, (decoded < 0) != (value < 0) { wrong += 1 }
    }
    #expect(wrong == 0)
  }

  @Test("encoding what was decoded is the identity, but for the second zero of µ-law")
  func identity() {
    for byte in UInt8.min...UInt8.max {
      #expect(encode(decode(byte, .a), .a) == byte)
      #expect(encode(decode(byte, .mu), .mu) == (byte == 0x7F ? 0xFF : byte))
    }
  }

  @Test("known codes: silence and both ends of the scale")
  func known() {
    #expect(G711.muLaw(0) == 0xFF && G711.aLaw(0) == 0xD5)
    #expect(G711.silence(.mu) == 0xFF && G711.silence(.a) == 0xD5)
    #expect(G711.sample(muLaw: 0x00) == -32_124 && G711.sample(muLaw: 0x80) == 32_124)
    #expect(G711.sample(aLaw: 0x2A) == -32_256 && G711.sample(aLaw: 0xAA) == 32_256)
    #expect(G711.sample(aLaw: 0xD5) == 8 && G711.sample(aLaw: 0x55) == -8)
    #expect(G711.muLaw(.max) == 0x80 && G711.muLaw(.min) == 0x00)
    #expect(G711.aLaw(.max) == 0xAA && G711.aLaw(.min) == 0x2A)
  }

  @Test("rows are coded as far as there is room, at their position", arguments: G711.Law.allCases)
  func rows(law: G711.Law) {
    let samples: [Int16] = [0, 1_000, -1_000, 32_767, -32_768]
    let codes = samples.map { encode($0, law) }
    for (position, count) in [(0, 5), (2, 5), (3, 5), (4, 4), (7, 1), (8, 0), (9, 0)] {
      let (bytes, written) = Self.fill(8, 0x11) { G711.encode(samples.span, law, into: &$0, at: position) }
      #expect(written == count)
      #expect(Array(bytes.dropFirst(position).prefix(count)) == Array(codes.prefix(count)))
      #expect(bytes.filter { $0 == 0x11 }.count == 8 - count)
      let (decoded, read) = Self.fill(8, Int16(77)) { G711.decode(codes.span, law, into: &$0, at: position) }
      #expect(read == count)
      #expect(Array(decoded.dropFirst(position).prefix(count)) == codes.prefix(count).map { decode($0, law) })
      #expect(decoded.filter { $0 == 77 }.count == 8 - count)
    }
  }

  @Test("L16 is big-endian, and an odd last byte is no sample")
  func l16() {
    let samples: [Int16] = [1, -2, .max, .min]
    let (bytes, count) = Self.fill(10, UInt8(0x11)) { L16.encode(samples.span, into: &$0, at: 1) }
    #expect(count == 8)
    #expect(bytes == [0x11, 0x00, 0x01, 0xFF, 0xFE, 0x7F, 0xFF, 0x80, 0x00, 0x11])
    #expect(Self.fill(10, UInt8(0)) { L16.encode(samples.span, into: &$0, at: 9) }.count == 0)
    let odd = Array(bytes.dropFirst())
    let (decoded, read) = Self.fill(6, Int16(7)) { L16.decode(odd.span, into: &$0, at: 1) }
    #expect(read == 4 && decoded == [7] + samples + [7])
    #expect(Self.fill(2, Int16(0)) { L16.decode(odd.span, into: &$0, at: 1) }.count == 1)
  }

  /// A row of one value that a closure has written into, and what the closure has returned.
  private static func fill<Element: BitwiseCopyable>(
    _ size: Int, _ value: Element, _ write: (inout MutableSpan<Element>) -> Int
  ) -> (row: [Element], count: Int) {
    var row = [Element](repeating: value, count: size)
    var target = row.mutableSpan
    let count = write(&target)
    return (row, count)
  }
}
