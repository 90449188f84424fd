import Testing

@testable import MillraceRTCWire

/// VP8 frames to payloads and back, with holes and hostile bytes.
@Suite("VP8 frames")
struct VP8FrameTests {
  /// A frame of any size, a key frame or not.
  private static func frame(_ count: Int, isKey: Bool = false, seed: Int = 0) -> [UInt8] {
    var bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 13 + seed) }
    if count > 0 { bytes[0] = bytes[0] & 0xFE | (isKey ? 0 : 1) }
    return bytes
  }

  private static func packets(
    _ frame: [UInt8], _ descriptor: VP8Descriptor, limit: Int, sequence: Int64, timestamp: Int64
  ) throws -> [TestPacket] {
    var packets: [TestPacket] = []
    var packetizer = VP8Packetizer(frame.span, descriptor: descriptor, maximumBytes: limit)
    var buffer = [UInt8](repeating: 0, count: limit + 3)
    var target = buffer.mutableSpan
    while let written = try packetizer.next(into: &target, at: 3) {
      packets.append(
        TestPacket(
          payload: (3..<3 + written.byteCount).map { target[$0] }, sequence: sequence + Int64(packets.count),
          timestamp: timestamp, marker: written.marker))
    }
    return packets
  }

  private static let three = [frame(500, isKey: true), frame(130, seed: 1), frame(260, seed: 2)]

  private static func packets(limit: Int) throws -> [TestPacket] {
    var packets: [TestPacket] = []
    for (index, frame) in three.enumerated() {
      packets += try self.packets(
        frame, VP8Descriptor(pictureID: UInt16(index)), limit: limit, sequence: Int64(packets.count),
        timestamp: Int64(index) * 3_000)
    }
    return packets
  }

  private func take(
    _ packets: [TestPacket], _ depacketizer: inout VP8Depacketizer
  ) throws -> [TestFrame] {
    var frames: [TestFrame] = []
    for packet in packets {
      try depacketizer.add(
        packet.payload.span, sequence: packet.sequence, timestamp: packet.timestamp, marker: packet.marker
      ) { frame, _ in frames.append(TestFrame(frame)) }
    }
    return frames
  }

  @Test("payloads have S in the first, the marker on the last, and equal sizes")
  func payloads() throws {
    let frame = Self.frame(25)
    let packets = try Self.packets(
      frame, VP8Descriptor(pictureID: 4_711), limit: 16, sequence: 0, timestamp: 0)
    #expect(
      packets.map { Array($0.payload.prefix(4)) } == [
        [0x90, 0x80, 0x92, 0x67], [0x80, 0x80, 0x92, 0x67], [0x80, 0x80, 0x92, 0x67],
      ])
    #expect(packets.map(\.payload.count) == [13, 12, 12])
    #expect(packets.map(\.marker) == [false, false, true])
    #expect(packets.flatMap { $0.payload.dropFirst(4) } == frame)
    #expect(try Self.packets([], VP8Descriptor(), limit: 16, sequence: 0, timestamp: 0).isEmpty)
  }

  @Test(
    "frames of every size come back as they were, whatever the limit",
    arguments: [16, 100, 333, 1_200, 1_400])
  func roundTrip(limit: Int) throws {
    let near = stride(from: limit, to: 5_000, by: limit).prefix(9).flatMap { ($0 - 5...$0 + 1) }
    let sizes = Array(1...120) + near + Array(stride(from: 121, through: 5_000, by: 239)) + [5_000]
    var depacketizer = VP8Depacketizer(maximumBytes: 5_700)
    var sequence: Int64 = 65_000
    for (index, size) in sizes.enumerated() {
      let frame = Self.frame(size, isKey: size % 2 == 0)
      var descriptor = VP8Descriptor(pictureID: UInt16(index))
      descriptor.temporalLayer = UInt8(index % 3)
      let packets = try Self.packets(
        frame, descriptor, limit: limit, sequence: sequence, timestamp: Int64(index))
      #expect(packets.allSatisfy { $0.payload.count <= limit })
      sequence += Int64(packets.count)
      let frames = try take(packets, &depacketizer)
      #expect(frames.map(\.bytes) == [frame], "\(size)")
      #expect(frames.map(\.isKeyFrame) == [size % 2 == 0] && frames.map(\.isDamaged) == [false])
    }
    #expect(depacketizer.statistics == DepacketizerStatistics(delivered: sizes.count))
  }

  @Test("the descriptor of the first payload comes with the frame")
  func descriptor() throws {
    var sent = VP8Descriptor(pictureID: 300)
    (sent.isNonReference, sent.temporalLayer, sent.baseLayerIndex) = (true, 2, 7)
    var depacketizer = VP8Depacketizer()
    var found: [VP8Descriptor] = []
    for packet in try Self.packets(Self.frame(50), sent, limit: 30, sequence: 0, timestamp: 0) {
      try depacketizer.add(
        packet.payload.span, sequence: packet.sequence, timestamp: 0, marker: packet.marker
      ) {
        found.append($1)
      }
    }
    sent.startsPartition = true
    #expect(found == [sent])
  }

  @Test("whichever packet is lost, only the beginning of its frame is delivered, as damaged")
  func oneLost() throws {
    let packets = try Self.packets(limit: 60)
    for lost in packets.indices {
      var depacketizer = VP8Depacketizer(maximumBytes: 2_000)
      var frames = try take(without(lost, packets), &depacketizer)
      depacketizer.flush { frame, _ in frames.append(TestFrame(frame)) }
      for (index, whole) in Self.three.enumerated() {
        let found = frames.filter { $0.timestamp == Int64(index) * 3_000 }
        if packets[lost].timestamp != Int64(index) * 3_000 {
          #expect(found.map(\.bytes) == [whole] && found.map(\.isDamaged) == [false], "packet \(lost)")
          continue
        }
        let kept = packets.prefix(lost).filter { $0.timestamp == packets[lost].timestamp }
        let beginning = kept.flatMap { $0.payload.dropFirst(4) }
        #expect(found.map(\.bytes) == (beginning.isEmpty ? [] : [beginning]), "packet \(lost)")
        #expect(found.allSatisfy(\.isDamaged) && whole.starts(with: beginning))
        #expect(depacketizer.statistics.unusable == (beginning.isEmpty ? 1 : 0))
      }
    }
  }

  @Test("the frame after a lost one says that it follows a loss")
  func lostFrame() throws {
    var depacketizer = VP8Depacketizer()
    let packets = try Self.packets(limit: 100).filter { $0.timestamp != 3_000 }
    let frames = try take(packets, &depacketizer)
    #expect(frames.map(\.followsLoss) == [false, true] && frames.map(\.isDamaged) == [false, false])
  }

  @Test("without markers a frame ends with the first payload of the next, also of the same timestamp")
  func ends() throws {
    var packets = try Self.packets(limit: 100)
    for index in packets.indices { packets[index].marker = false }
    for isOneTimestamp in [false, true] {
      if isOneTimestamp { for index in packets.indices { packets[index].timestamp = 5 } }
      var depacketizer = VP8Depacketizer()
      let frames = try take(packets, &depacketizer)
      #expect(frames.map(\.bytes) == Array(Self.three.dropLast()))
      #expect(frames.allSatisfy { !$0.isDamaged })
    }
  }

  @Test("partitions in packets of their own are put together")
  func partitions() throws {
    var depacketizer = VP8Depacketizer()
    let packets = ([[0x10, 1, 2], [0x00, 3], [0x11, 4], [0x12, 5, 6]] as [[UInt8]]).enumerated().map {
      TestPacket(payload: $1, sequence: Int64($0), timestamp: 0, marker: $0 == 3)
    }
    #expect(try take(packets, &depacketizer).map(\.bytes) == [[1, 2, 3, 4, 5, 6]])
  }

  @Test("late packets, copies and padding change nothing")
  func late() throws {
    let plain = try Self.packets(limit: 60)
    var packets: [TestPacket] = []
    for packet in plain {
      let place = packet.sequence * 2
      packets.append(
        TestPacket(
          payload: packet.payload, sequence: place, timestamp: packet.timestamp, marker: packet.marker))
      packets.append(TestPacket(payload: [], sequence: place + 1, timestamp: packet.timestamp, marker: false))
      packets.append(TestPacket(payload: [0x10, 9], sequence: place, timestamp: 7, marker: true))
    }
    var depacketizer = VP8Depacketizer()
    #expect(try take(packets, &depacketizer).map(\.bytes) == Self.three)
    #expect(depacketizer.statistics == DepacketizerStatistics(delivered: 3, latePackets: plain.count))
  }

  @Test("a frame larger than the buffer is discarded and counted, and the next one arrives")
  func tooLarge() throws {
    var depacketizer = VP8Depacketizer(maximumBytes: 499)
    let frames = try take(Self.packets(limit: 60), &depacketizer)
    #expect(
      frames.map(\.bytes) == Array(Self.three.dropFirst()) && frames.map(\.followsLoss) == [true, false])
    #expect(depacketizer.statistics.tooLarge == 1)
  }

  @Test(
    "a payload without data is refused, and its frame is damaged",
    arguments: [[0x80], [0x80, 0x80], [0x00]] as [[UInt8]])
  func refused(bytes: [UInt8]) throws {
    var depacketizer = VP8Depacketizer()
    let first = TestPacket(payload: [0x10, 1, 2], sequence: 0, timestamp: 0, marker: false)
    #expect(try take([first], &depacketizer).isEmpty)
    var frames: [TestFrame] = []
    var problem: PayloadProblem?
    do throws(PayloadProblem) {
      try depacketizer.add(bytes.span, sequence: 1, timestamp: 0, marker: true) { frame, _ in
        frames.append(TestFrame(frame))
      }
    } catch { problem = error }
    #expect(problem == .truncated(.vp8, bytes: bytes.count, needed: bytes.count + 1))
    #expect(frames.map(\.bytes) == [[1, 2]] && frames.map(\.isDamaged) == [true])
  }

  @Test(
    "no payloads crash the depacketizer or the frame head, and nothing larger than the buffer is delivered")
  func hostile() {
    var random = SeededRandom(seed: 4)
    var depacketizer = VP8Depacketizer(maximumBytes: 200)
    var (sequence, timestamp, largest, frames): (Int64, Int64, Int, Int) = (.max - 9_000, 0, 0, 0)
    for _ in 0..<20_000 {
      var payload = random.extremeBytes(Int.random(in: 0...50, using: &random))
      if !payload.isEmpty { payload[0] &= [0xFF, 0xB8, 0x38, 0x10][Int(random.next() & 3)] }
      sequence &+= random.next() & 7 == 0 ? 2 : 1
      if random.next() & 7 == 0 { timestamp = Int64(bitPattern: random.next()) }
      try? depacketizer.add(
        payload.span, sequence: sequence, timestamp: timestamp, marker: random.next() & 7 == 0
      ) { frame, _ in
        largest = max(largest, frame.bytes.count)
        frames += 1
      }
      _ = try? VP8FrameHeader(parsing: payload.span)
      if random.next() & 255 == 0 {
        depacketizer.reset()
        sequence = Int64(bitPattern: random.next())
      }
    }
    #expect(largest <= 200 && frames > 500 && depacketizer.statistics.delivered == frames)
  }
}
