import Testing

@testable import MillraceRTCWire

/// The head of Opus packets: RFC 6716 sections 3.1 to 3.4.
@Suite("Opus payloads")
struct OpusPayloadTests {
  private func parse(_ bytes: [UInt8]) throws(PayloadProblem) -> OpusPayload {
    try OpusPayload(parsing: bytes.span)
  }

  @Test("the duration of a frame follows from the configuration")
  func configurations() throws {
    let silk = [480, 960, 1_920, 2_880]
    let celt = [120, 240, 480, 960]
    let expected = silk + silk + silk + [480, 960, 480, 960] + celt + celt + celt + celt
    for (configuration, samples) in expected.enumerated() {
      for stereo in [false, true] {
        let toc = UInt8(configuration) << 3 | (stereo ? 4 : 0)
        let packet = try parse([toc, 1, 2, 3])
        #expect(packet.samples == samples && packet.frames == 1)
        #expect(packet.channels == (stereo ? 2 : 1))
        #expect(packet.nanoseconds == Int64(samples) * 1_000_000 / 48)
      }
    }
  }

  @Test(
    "frames are counted in every way of packing",
    arguments: [
      // 20 ms CELT: one frame, two of a size, two of different sizes (0, 3 and 252 bytes), three of a size, with padding, of different
      // sizes.
      ([0xF8, 1, 2], 1), ([0xF9, 1, 2, 3, 4], 2), ([0xF9], 2), ([0xFA, 0, 1, 2, 3], 2),
      ([0xFA, 3, 1, 2, 3, 9], 2),
      ([0xFA, 252, 0] + [UInt8](repeating: 5, count: 252), 2),
      ([0xFB, 3, 1, 2, 3], 3), ([0xFB, 0x42, 2, 1, 1, 0, 0], 2), ([0xFB, 0x83, 1, 2, 7, 7, 7, 9, 9], 3),
      // Padding of 254 + 3 bytes, and nothing but padding.
      ([0xFB, 0x42, 255, 3, 1, 2] + [UInt8](repeating: 0, count: 257), 2), ([0xFB, 0x46, 0], 6),
      // 120 ms: six of 20 ms, 48 of 2.5 ms, two of 60 ms.
      ([0xFB, 6, 1, 2, 3, 4, 5, 6], 6), ([0xE3, 48], 48), ([0x19, 1, 2], 2),
    ] as [([UInt8], Int)])
  func packings(bytes: [UInt8], frames: Int) throws {
    let packet = try parse(bytes)
    #expect(packet.frames == frames)
    #expect(packet.samples == frames * packet.samplesPerFrame)
  }

  @Test(
    "a malformed packet is refused",
    arguments: [
      [], [0xF9, 1], [0xFA], [0xFA, 252], [0xFA, 4, 1, 2, 3], [0xFB], [0xFB, 0], [0xFB, 2, 1],
      [0xFB, 0x41], [0xFB, 0x41, 255], [0xFB, 0x41, 3, 1, 2], [0xFB, 0x83, 1], [0xFB, 0x82, 5, 1],
      [0xF8] + [UInt8](repeating: 0, count: 1_276), [0xF9] + [UInt8](repeating: 0, count: 2_552),
      [0xFA, 0] + [UInt8](repeating: 0, count: 1_276), [0xFB, 1] + [UInt8](repeating: 0, count: 1_276),
    ] as [[UInt8]])
  func malformed(bytes: [UInt8]) {
    #expect(throws: PayloadProblem.self) { try parse(bytes) }
  }

  @Test("more than 120 ms are refused with their length")
  func tooLong() {
    #expect(throws: PayloadProblem.tooLong(samples: 6_720)) { try parse([0xFB, 7]) }
    #expect(throws: PayloadProblem.tooLong(samples: 8_640)) { try parse([0x1B, 3]) }
    #expect(
      PayloadProblem.tooLong(samples: 6_720).description
        == "the Opus packet lasts 6720 samples at 48 kHz, at most 5760 are allowed")
  }

  @Test("packets of one and two bytes are discontinuous transmission")
  func dtx() throws {
    #expect(try parse([0xF8]).isDTX && parse([0x08, 0xFF]).isDTX)
    #expect(try !parse([0xF8, 1, 2]).isDTX)
  }

  @Test("no bytes crash the reader, and what it takes lasts at most 120 ms")
  func hostile() {
    var random = SeededRandom(seed: 1)
    var taken = 0
    for _ in 0..<20_000 {
      let bytes = random.extremeBytes(Int.random(in: 0...40, using: &random))
      guard let packet = try? parse(bytes) else { continue }
      taken += 1
      if !(120...5_760).contains(packet.samples) { Issue.record("\(bytes)") }
    }
    #expect(taken > 1_000)
  }
}
