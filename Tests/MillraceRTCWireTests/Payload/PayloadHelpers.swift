@testable import MillraceRTCWire

/// An RTP packet without its header.
struct TestPacket: Equatable {
  var payload: [UInt8]
  var sequence: Int64
  var timestamp: Int64
  var marker: Bool
}

/// A delivered frame, kept.
struct TestFrame: Equatable {
  var bytes: [UInt8]
  var timestamp: Int64
  var isKeyFrame: Bool
  var isDamaged: Bool
  var followsLoss: Bool

  init(_ frame: ReceivedFrame) {
    bytes = frame.bytes.indices.map { frame.bytes[$0] }
    (timestamp, isKeyFrame) = (frame.timestamp, frame.isKeyFrame)
    (isDamaged, followsLoss) = (frame.isDamaged, frame.followsLoss)
  }
}

/// The packets without one.
func without(_ index: Int, _ packets: [TestPacket]) -> [TestPacket] {
  packets.enumerated().filter { $0.offset != index }.map(\.element)
}
