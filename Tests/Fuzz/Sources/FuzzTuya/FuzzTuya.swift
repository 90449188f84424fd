/// Feeds what a Tuya cloud sends. The first byte of the input selects to what, and the settings:
///
/// - the reader of frames, with the rest as they arrive, cut into pieces;
/// - the parser behind the signatures, with the rest as packets that are framed here;
/// - the parser of user data;
/// - the parser of texts, with the rest as packets of a text channel;
/// - a session, with the rest as a second byte of settings and one input per line.
///
/// Nothing may crash, every error must have a text, and what was read must survive a round trip.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTuya(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = Array(UnsafeBufferPointer(start: start, count: count))[...]
  guard let first = bytes.popFirst() else { return 0 }
  let settings = first >> 3
  switch first & 7 {
  case 0: FrameChecks(settings).take(bytes)
  case 1: PacketChecks(settings).take(bytes)
  case 2: TextChecks.takeUserData(Array(bytes), settings)
  case 3: TextChecks.takeTexts(bytes)
  default: SessionChecks.take(bytes, settings)
  }
  return 0
}
