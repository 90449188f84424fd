import Testing

@testable import MillraceRTCWire

/// H.264 with holes in the sequence, and with bytes that nobody should send.
@Suite("H.264 loss and hostile input")
struct H264LossTests {
  @Test("whichever packet is lost, no access unit with a hole passes for whole", arguments: [60, 100, 1_200])
  func oneLost(limit: Int) throws {
    let packets = try H264Stream.packets(H264Stream.threeUnits, limit: limit)
    for lost in packets.indices {
      var depacketizer = H264Depacketizer(maximumBytes: 4_000)
      var frames = try depacketizer.take(without(lost, packets))
      depacketizer.flush { frames.append(TestFrame($0)) }
      for frame in frames where !frame.isDamaged {
        let index = Int(frame.timestamp / 3_000)
        #expect(frame.bytes == H264Stream.threeUnits[index], "packet \(lost) of \(packets.count)")
      }
      let whole = frames.filter { !$0.isDamaged }.map(\.timestamp)
      #expect(!whole.contains(packets[lost].timestamp), "packet \(lost)")
      // The end of a unit that is missing may have been the beginning of the next, but that begins with the first macroblock.
      let others = Set(packets.map(\.timestamp)).subtracting([packets[lost].timestamp])
      #expect(others.isSubset(of: whole), "packet \(lost) of \(packets.count)")
    }
  }

  @Test("a NAL unit with a missing fragment is left out, the others of its access unit stay")
  func fragment() throws {
    let units = [
      H264Stream.unit(0x67, 12), H264Stream.unit(0x65, 400), H264Stream.unit(0x65, 30, isFirst: false),
    ]
    let packets = try H264Stream.packets(H264Stream.annexB(units), limit: 100)
    #expect(packets.count == 7)
    for lost in 1...5 {
      var depacketizer = H264Depacketizer(maximumBytes: 4_000)
      let frames = try depacketizer.take(without(lost, packets))
      #expect(frames.map(\.bytes) == [H264Stream.annexB([units[0], units[2]])], "packet \(lost)")
      #expect(frames.map(\.isDamaged) == [true])
      #expect(depacketizer.statistics.holes == 1 && depacketizer.statistics.damaged == 1)
    }
  }

  @Test("the frame after a lost one is whole, and says that it follows a loss")
  func wholeFrame() throws {
    let packets = try H264Stream.packets(H264Stream.threeUnits, limit: 200).filter { $0.timestamp != 3_000 }
    var depacketizer = H264Depacketizer()
    let frames = try depacketizer.take(packets)
    #expect(frames.map(\.timestamp) == [0, 6_000])
    #expect(frames.map(\.isDamaged) == [false, false])
    #expect(frames.map(\.followsLoss) == [false, true])
  }

  @Test("after a hole, a slice that is not the first makes its access unit damaged")
  func middle() throws {
    for (payload, isDamaged) in [
      ([0x41, 0x80], false), ([0x41, 0x40], true), ([0x5C, 0x81, 0x80], false), ([0x5C, 0x81, 0x40], true),
      ([0x67, 0x00], false), ([0x78, 0, 2, 0x67, 0], false), ([0x78, 0, 2, 0x41, 0x40], true),
      ([0x65, 0x80], true),
    ] as [([UInt8], Bool)] {
      var depacketizer = H264Depacketizer(maximumBytes: 100)
      _ = try depacketizer.take([TestPacket(payload: [0x41, 0x80], sequence: 0, timestamp: 0, marker: true)])
      var packets = [TestPacket(payload: payload, sequence: 2, timestamp: 1, marker: false)]
      if payload[0] == 0x5C {
        packets.append(TestPacket(payload: [0x5C, 0x41, 1], sequence: 3, timestamp: 1, marker: false))
      }
      let last = TestPacket(
        payload: [0x41, 0x01], sequence: 4 - (payload[0] == 0x5C ? 0 : 1), timestamp: 1, marker: true)
      #expect(try depacketizer.take(packets + [last]).map(\.isDamaged) == [isDamaged], "\(payload)")
    }
  }

  @Test("after a reset the sequence may begin anywhere")
  func reset() throws {
    var depacketizer = H264Depacketizer()
    let packets = try H264Stream.packets(H264Stream.threeUnits, limit: 100)
    for packet in packets.prefix(3) { #expect(try depacketizer.take([packet]).isEmpty) }
    depacketizer.reset()
    #expect(try depacketizer.take(packets).map(\.bytes) == H264Stream.threeUnits)
    #expect(depacketizer.statistics.holes == 0)
  }

  @Test("no payloads crash the depacketizer, and nothing larger than its buffer is delivered")
  func hostile() throws {
    var random = SeededRandom(seed: 2)
    var depacketizer = H264Depacketizer(maximumBytes: 300)
    let heads: [UInt8] = [0x67, 0x65, 0x41, 0x78, 0x7C, 0x5C, 0x7D, 0x79]
    var (sequence, timestamp, largest, frames): (Int64, Int64, Int, Int) = (.min, 0, 0, 0)
    for _ in 0..<20_000 {
      var payload = random.extremeBytes(Int.random(in: 0...60, using: &random))
      if !payload.isEmpty, random.next() & 3 != 0 { payload[0] = heads[Int(random.next() & 7)] }
      sequence &+=
        [0, 1, 1, 1, 1, 1, 2, Int64.random(in: .min ... .max, using: &random) >> 8][Int(random.next() & 7)]
      if random.next() & 7 == 0 { timestamp = Int64(bitPattern: random.next()) }
      try? depacketizer.add(
        payload.span, sequence: sequence, timestamp: timestamp, marker: random.next() & 7 == 0
      ) {
        largest = max(largest, $0.bytes.count)
        frames += 1
      }
      if random.next() & 255 == 0 {
        depacketizer.reset()
        sequence = Int64(bitPattern: random.next())
      }
    }
    #expect(largest <= 300 && frames > 500)
    #expect(depacketizer.statistics.delivered == frames)
    #expect(depacketizer.statistics.tooLarge > 0 && depacketizer.statistics.refusedPackets > 100)
  }

  @Test("no access unit crashes the packetizer, and its payloads keep the limit")
  func hostileAccessUnits() {
    var random = SeededRandom(seed: 3)
    var payloads = 0
    for _ in 0..<20_000 {
      let bytes = [0, 0, 1] + random.extremeBytes(Int.random(in: 0...80, using: &random))
      guard let packets = try? H264Stream.packets(bytes, limit: 16) else { continue }
      payloads += packets.count
      if packets.contains(where: { $0.payload.count > 16 || $0.payload.isEmpty }) { Issue.record("\(bytes)") }
      if packets.filter(\.marker).count != 1 { Issue.record("\(bytes)") }
    }
    #expect(payloads > 10_000)
  }
}
