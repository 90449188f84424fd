@testable import MillraceRTCWire

/// A packet without extensions.
func rtpPacket(
  sequence: UInt16, timestamp: UInt32 = 0, ssrc: UInt32 = 7, payloadType: UInt8 = 96,
  payload: [UInt8] = [1, 2, 3]
) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: RTPHeader.fixedSize)
  var span = bytes.mutableSpan
  let header = RTPHeader(payloadType: payloadType, sequence: sequence, timestamp: timestamp, ssrc: ssrc)
  _ = try? header.write(into: &span)
  return bytes + payload
}

/// A header with this sequence number and timestamp.
func rtpHeader(_ sequence: UInt16, _ timestamp: UInt32 = 0) -> RTPHeader {
  RTPHeader(payloadType: 111, sequence: sequence, timestamp: timestamp, ssrc: 7)
}

/// What a body writes as RTCP into a datagram of this size.
func rtcpBytes(
  room: Int = 1_200, _ body: (inout RTCPWriter) throws -> Void
) rethrows -> [UInt8] {
  var bytes = [UInt8](repeating: 0xEE, count: room)
  let count = try written(&bytes, body)
  return Array(bytes[0..<count])
}

private func written(
  _ bytes: inout [UInt8], _ body: (inout RTCPWriter) throws -> Void
) rethrows -> Int {
  var writer = RTCPWriter(bytes.mutableSpan)
  try body(&writer)
  return writer.count
}
