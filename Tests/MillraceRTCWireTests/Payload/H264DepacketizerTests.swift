import Testing

@testable import MillraceRTCWire

/// Access units from RTP payloads: round trips, types, ends of units, parameter sets.
@Suite("H.264 depacketizer")
struct H264DepacketizerTests {
  private func packet(
    _ payload: [UInt8], _ sequence: Int64, timestamp: Int64 = 0, marker: Bool = false
  ) -> TestPacket {
    TestPacket(payload: payload, sequence: sequence, timestamp: timestamp, marker: marker)
  }

  @Test(
    "access units of every size come back as they were, whatever the limit",
    arguments: [100, 101, 333, 1_200, 1_400])
  func roundTrip(limit: Int) throws {
    let near = stride(from: limit, to: 5_000, by: limit - 2).flatMap { [$0 - 1, $0, $0 + 1] }
    let sizes = Array(1...220) + near + Array(stride(from: 221, through: 5_000, by: 239)) + [5_000]
    var depacketizer = H264Depacketizer(maximumBytes: 8_000)
    var sequence: Int64 = 0
    for (index, size) in sizes.enumerated() {
      let unit = H264Stream.annexB([
        H264Stream.unit(0x67, 9), H264Stream.unit(0x68, 4), H264Stream.unit(0x65, size),
        H264Stream.unit(0x41, size / 3 + 1, isFirst: false),
      ])
      let packets = try H264Stream.packets(
        unit, limit: limit, sequence: sequence, timestamp: Int64(index))
      #expect(packets.allSatisfy { $0.payload.count <= limit })
      #expect(packets.map(\.marker) == packets.indices.map { $0 == packets.count - 1 })
      sequence += Int64(packets.count)
      let frames = try depacketizer.take(packets)
      #expect(frames.map(\.bytes) == [unit], "\(size)")
      #expect(frames.first?.isDamaged == false && frames.first?.isKeyFrame == true)
    }
    #expect(depacketizer.statistics == DepacketizerStatistics(delivered: sizes.count))
  }

  @Test("however an access unit is cut, the same comes out")
  func equal() throws {
    var results: [[TestFrame]] = []
    for limit in [16, 57, 100, 400, 1_200] {
      var depacketizer = H264Depacketizer(maximumBytes: 4_000)
      results.append(try depacketizer.take(H264Stream.packets(H264Stream.threeUnits, limit: limit)))
    }
    #expect(results[0].map(\.bytes) == H264Stream.threeUnits)
    #expect(results.allSatisfy { $0 == results[0] })
  }

  // MARK: The end of an access unit

  @Test("an access unit ends with its marker, or with the first packet of another timestamp")
  func ends() throws {
    var depacketizer = H264Depacketizer(maximumBytes: 100)
    #expect(try depacketizer.take([packet([0x67, 1], 5), packet([0x65, 0x88], 6)]).isEmpty)
    let first = try depacketizer.take([packet([0x41, 0x99], 7, timestamp: 3_000)])
    #expect(first.map(\.bytes) == [[0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x65, 0x88]])
    #expect(first.map(\.isDamaged) == [false])
    // One packet may end two: that before, and its own.
    let two = try depacketizer.take([packet([0x41, 0x9A], 8, timestamp: 6_000, marker: true)])
    #expect(two.map(\.timestamp) == [3_000, 6_000])
    #expect(two.map(\.isDamaged) == [false, false])
    var last: [TestFrame] = []
    _ = try depacketizer.take([packet([0x41, 0x9B], 9, timestamp: 9_000)])
    depacketizer.flush { last.append(TestFrame($0)) }
    depacketizer.flush { last.append(TestFrame($0)) }
    #expect(last.map(\.isDamaged) == [true])
  }

  @Test("late packets and copies change nothing")
  func late() throws {
    var packets = try H264Stream.packets(H264Stream.threeUnits, limit: 100)
    let plain = packets
    for index in stride(from: packets.count - 1, to: 0, by: -2) {
      packets.insert(packets[index], at: index + 1)
      packets.insert(packets[index - 1], at: index + 1)
    }
    var depacketizer = H264Depacketizer()
    var expected = H264Depacketizer()
    #expect(try depacketizer.take(packets) == expected.take(plain))
    #expect(depacketizer.statistics.latePackets == packets.count - plain.count)
  }

  @Test("a packet of padding fills its place in the sequence and does nothing else")
  func padding() throws {
    var packets = try H264Stream.packets(H264Stream.threeUnits, limit: 100)
    let plain = packets
    packets = packets.flatMap { [$0, packet([], 0, timestamp: $0.timestamp)] }
    for index in packets.indices { packets[index].sequence = Int64(index) }
    var depacketizer = H264Depacketizer()
    var expected = H264Depacketizer()
    #expect(try depacketizer.take(packets) == expected.take(plain))
    // Padding does not hide the hole in front of it.
    let after = [packet([], 900), packet([0x41, 0x10], 901, marker: true)]
    #expect(try depacketizer.take(after).map(\.isDamaged) == [true])
  }

  @Test("an access unit larger than the buffer is discarded and counted, and the next one arrives")
  func tooLarge() throws {
    var depacketizer = H264Depacketizer(maximumBytes: 460)
    let frames = try depacketizer.take(H264Stream.packets(H264Stream.threeUnits, limit: 100))
    #expect(frames.map(\.bytes) == Array(H264Stream.threeUnits.dropFirst()))
    #expect(frames.map(\.followsLoss) == [true, false])
    #expect(depacketizer.statistics == DepacketizerStatistics(delivered: 2, tooLarge: 1))
  }

  // MARK: Types

  @Test(
    "packets of packetization mode 2 and reserved types are refused by name",
    arguments: [
      (25, "STAP-B"), (26, "MTAP16"), (27, "MTAP24"), (29, "FU-B"), (0, "0"), (30, "30"), (31, "31"),
    ]
      as [(UInt8, String)])
  func refused(type: UInt8, name: String) throws {
    var depacketizer = H264Depacketizer(maximumBytes: 100)
    let problem = PayloadProblem.unsupportedType(H264NALUnitType(rawValue: type))
    #expect(problem.description.contains(name))
    #expect(problem.description.contains("packetization-mode=1") == (25...29).contains(type))
    _ = try depacketizer.take([packet([0x67, 1], 0)])
    var found: PayloadProblem?
    var frames: [TestFrame] = []
    let bad: [UInt8] = [0x60 | type, 1, 2, 3, 4]
    do throws(PayloadProblem) {
      try depacketizer.add(bad.span, sequence: 1, timestamp: 0, marker: true) { frames.append(TestFrame($0)) }
    } catch { found = error }
    #expect(found == problem)
    // The rest of its access unit is delivered as damaged.
    #expect(frames.map(\.bytes) == [[0, 0, 0, 1, 0x67, 1]] && frames.map(\.isDamaged) == [true])
    #expect(depacketizer.statistics.refusedPackets == 1)
  }

  @Test(
    "a malformed payload is refused as a whole",
    arguments: [
      // STAP-A: empty, half a size, no unit, a unit too long, an empty unit, a unit that is a fragment.
      [0x78], [0x78, 0], [0x78, 0, 1], [0x78, 0, 2, 0x67], [0x78, 0, 1, 0x67, 0, 0], [0x78, 0, 0, 0x67],
      [0x78, 0, 1, 0x67, 0, 1, 0x7C], [0x78, 0, 1, 0x67, 0xFF, 0xFF, 0x68],
      // FU-A: no head, first and last, of a payload type.
      [0x7C], [0x7C, 0xC5, 1], [0x7C, 0x9C, 1], [0x7C, 0x80, 1],
    ] as [[UInt8]])
  func malformed(payload: [UInt8]) {
    var depacketizer = H264Depacketizer(maximumBytes: 100)
    #expect(throws: PayloadProblem.self) { try depacketizer.take([packet(payload, 0)]) }
    var frames: [TestFrame] = []
    depacketizer.flush { frames.append(TestFrame($0)) }
    #expect(frames.isEmpty)
    #expect(depacketizer.statistics == DepacketizerStatistics(unusable: 1, refusedPackets: 1))
  }

  @Test("a fragment of another type than the one before it is refused, with the NAL unit")
  func mixedFragments() throws {
    var depacketizer = H264Depacketizer(maximumBytes: 100)
    _ = try depacketizer.take([packet([0x67, 1], 0), packet([0x7C, 0x85, 1], 1)])
    #expect(throws: PayloadProblem.self) { try depacketizer.take([packet([0x7C, 0x01, 1], 2)]) }
    let frames = try depacketizer.take([packet([0x7C, 0x45, 1], 3, marker: true)])
    #expect(frames.map(\.bytes) == [[0, 0, 0, 1, 0x67, 1]] && frames.map(\.isDamaged) == [true])
  }

  @Test("fragments may be empty, and reserved bits are ignored")
  func emptyFragments() throws {
    var depacketizer = H264Depacketizer(maximumBytes: 100)
    let frames = try depacketizer.take([
      packet([0x5C, 0xA1], 0), packet([0x5C, 0x21, 0x88], 1), packet([0x5C, 0x61], 2, marker: true),
    ])
    #expect(frames.map(\.bytes) == [[0, 0, 0, 1, 0x41, 0x88]])
  }

  @Test(
    "a key frame is an access unit with an IDR slice or a sequence parameter set",
    arguments: [
      ([0x65, 0x88], true), ([0x67, 1], true), ([0x78, 0, 1, 0x67], true), ([0x78, 0, 1, 0x68], false),
      ([0x41, 0x88], false), ([0x06, 1], false), ([0x09, 0x10], false),
    ] as [([UInt8], Bool)])
  func keyFrames(payload: [UInt8], isKey: Bool) throws {
    var depacketizer = H264Depacketizer(maximumBytes: 100)
    #expect(try depacketizer.take([packet(payload, 0, marker: true)]).map(\.isKeyFrame) == [isKey])
  }

  // MARK: Parameter sets of the SDP

  @Test("parameter sets of the SDP stand in front of IDR slices until the stream brings its own")
  func parameterSets() throws {
    var depacketizer = H264Depacketizer(maximumBytes: 1_000)
    let (sps, pps): ([UInt8], [UInt8]) = ([0x67, 0x42, 0xE0, 0x1F], [0x68, 0xCE])
    try depacketizer.addParameterSet(sps.span)
    try depacketizer.addParameterSet(pps.span)
    let (idr, slice): ([UInt8], [UInt8]) = ([0x65, 0x88], [0x41, 0x9A])
    let frames = try depacketizer.take([
      packet([0x09, 0x10], 0), packet(idr, 1), packet(idr, 2, marker: true),
      packet(slice, 3, timestamp: 1, marker: true),
      // Fragments of an IDR slice.
      packet([0x7C, 0x85, 0x88], 4, timestamp: 2), packet([0x7C, 0x45, 1], 5, timestamp: 2, marker: true),
      packet([0x67, 9], 6, timestamp: 3), packet(idr, 7, timestamp: 3, marker: true),
      packet(idr, 8, timestamp: 4, marker: true),
    ])
    #expect(
      frames.map(\.bytes) == [
        H264Stream.annexB([[0x09, 0x10], sps, pps, idr, idr]), H264Stream.annexB([slice]),
        H264Stream.annexB([sps, pps, [0x65, 0x88, 1]]), H264Stream.annexB([[0x67, 9], idr]),
        H264Stream.annexB([idr]),
      ])
  }

  @Test("parameter sets go with the IDR slice that was lost, and stand in front of the next one")
  func parameterSetsAfterLoss() throws {
    var depacketizer = H264Depacketizer(maximumBytes: 1_000)
    let sps: [UInt8] = [0x67, 0x42]
    try depacketizer.addParameterSet(sps.span)
    let frames = try depacketizer.take([
      packet([0x7C, 0x85, 0x88], 0), packet([0x7C, 0x45, 1], 2), packet([0x65, 0x08], 3, marker: true),
      packet([0x7C, 0x85, 0x88], 4, timestamp: 1), packet([0x7C, 0x45, 1], 6, timestamp: 1, marker: true),
    ])
    #expect(frames.map(\.bytes) == [H264Stream.annexB([sps, [0x65, 0x08]])])
    #expect(frames.map(\.isDamaged) == [true])
    #expect(depacketizer.statistics.unusable == 1)
  }

  @Test("what is no parameter set, or finds no room, is refused")
  func badParameterSets() {
    var depacketizer = H264Depacketizer(maximumBytes: 100)
    func problem(_ bytes: [UInt8]) -> PayloadProblem? {
      do throws(PayloadProblem) { try depacketizer.addParameterSet(bytes.span) } catch { return error }
      return nil
    }
    #expect(problem([]) == .truncated(.h264, bytes: 0, needed: 2))
    #expect(problem([0x65, 1]) == .unsupportedType(.idrSlice))
    #expect(problem([UInt8](repeating: 0x67, count: 4_093)) == .noRoom(bytes: 4_096, needed: 4_097))
    #expect(problem([UInt8](repeating: 0x67, count: 4_092)) == nil)
    #expect(problem([0x67, 1]) == .noRoom(bytes: 0, needed: 6))
  }
}
