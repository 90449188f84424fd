/// Feeds arbitrary bytes to the readers of RTP, RTCP, data channel messages and payloads, and streams of payloads to the depacketizers. The
/// low three bits of the first byte select which.
///
/// None may crash, and every error must have a text. What is read lies within the bytes. What can be written reads the same again: headers,
/// reports, feedback, channel requests, descriptors, and the pictures that packetizers cut. A depacketizer delivers nothing larger than its
/// room, and counts what it delivers and refuses.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRTCPackets(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let rest = Array(bytes.dropFirst())
  // No network carries a larger datagram in one piece.
  let datagram = Array(rest.prefix(1_500))
  switch first & 7 {
  case 0: checkRTP(datagram)
  case 1: checkRTCP(datagram)
  case 2: checkDataChannel(rest)
  case 3: checkPayload(datagram)
  case 4: checkPacketizers(rest, limit: 16 + Int(first >> 3) * 40)
  case 5: checkH264Stream(rest)
  case 6: checkVP8Stream(rest)
  default: checkTelephoneEvents(rest)
  }
  return 0
}

func checkText(_ text: String) {
  if text.isEmpty { fatalError("an error without a text") }
}
