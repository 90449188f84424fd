/// Feeds packets of RTP and RTCP to the sound and pictures of a session, which sends at the same time, on a clock of its own. Encryption is
/// not part of it. The first two bytes select what was agreed on; then each step is a byte that says what happens, and its content.
///
/// It must not crash. What it sends is RTP or RTCP that can be read, in packets of at most 1,200 bytes. Pictures have at most 1 MiB; the
/// sources of the peer are bounded in number, whatever comes. A deadline lies ahead, and key frames are wanted at most every 300 ms.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRTCVideo(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var input = InputBytes(Array(UnsafeBufferPointer(start: start, count: count)))
  guard !input.isEmpty else { return 0 }
  let session = MediaSession(Agreement(input.uint16()))
  var peer = MediaPeer(session)
  while !input.isEmpty { peer.step(&input) }
  session.finish()
  return 0
}
