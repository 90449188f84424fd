@testable import MillraceRTCWire

/// Access units for tests, their packets, and what a depacketizer makes of them.
enum H264Stream {
  /// A NAL unit whose slice header says the first macroblock, or another one, and that contains no start code.
  static func unit(_ header: UInt8, _ count: Int, isFirst: Bool = true, seed: UInt8 = 0) -> [UInt8] {
    var bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + Int(seed)) | 0x03 }
    if count > 0 { bytes[0] = header }
    if count > 1 { bytes[1] = isFirst ? bytes[1] | 0x80 : bytes[1] & 0x7F }
    return bytes
  }

  /// NAL units in Annex B form with start codes of four bytes.
  static func annexB(_ units: [[UInt8]]) -> [UInt8] { units.flatMap { [0, 0, 0, 1] + $0 } }

  /// The packets of an access unit.
  static func packets(
    _ accessUnit: [UInt8], limit: Int = 1_200, sequence: Int64 = 0, timestamp: Int64 = 0
  ) throws -> [TestPacket] {
    var packets: [TestPacket] = []
    var packetizer = try H264Packetizer(annexB: accessUnit.span, maximumBytes: limit)
    var buffer = [UInt8](repeating: 0, count: limit)
    var target = buffer.mutableSpan
    while let written = try packetizer.next(into: &target) {
      let payload = (0..<written.byteCount).map { target[$0] }
      packets.append(
        TestPacket(
          payload: payload, sequence: sequence + Int64(packets.count), timestamp: timestamp,
          marker: written.marker))
    }
    return packets
  }

  /// The packets of access units, 3,000 units of the timestamp apart.
  static func packets(_ accessUnits: [[UInt8]], limit: Int) throws -> [TestPacket] {
    var packets: [TestPacket] = []
    for (index, unit) in accessUnits.enumerated() {
      packets += try self.packets(
        unit, limit: limit, sequence: Int64(packets.count), timestamp: Int64(index) * 3_000)
    }
    return packets
  }

  /// A key frame and two other frames, of several slices each.
  static let threeUnits: [[UInt8]] = [
    annexB([unit(0x67, 12), unit(0x68, 5), unit(0x65, 500), unit(0x65, 90, isFirst: false, seed: 1)]),
    annexB([unit(0x41, 70, seed: 2), unit(0x41, 300, isFirst: false, seed: 3)]),
    annexB([unit(0x41, 450, seed: 4)]),
  ]
}

extension H264Depacketizer {
  /// Takes packets, and returns the frames that they complete.
  mutating func take(_ packets: [TestPacket]) throws(PayloadProblem) -> [TestFrame] {
    var frames: [TestFrame] = []
    for packet in packets {
      try add(
        packet.payload.span, sequence: packet.sequence, timestamp: packet.timestamp, marker: packet.marker
      ) { frames.append(TestFrame($0)) }
    }
    return frames
  }
}
