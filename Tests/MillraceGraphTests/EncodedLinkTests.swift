import MillraceCore
import MillraceGraph
import Testing

@Suite("Links of encoded pictures")
struct EncodedLinkTests {
  @Test(
    "half a second of them is kept: a picture is needed to decode the next one",
    arguments: [Format.h264, .vp8], [Pacing.waits, .paced, .live])
  func defaults(format: Format, pacing: Pacing) {
    let shape = OutputShape(format, packetDuration: nil, packetBytes: 1_000)
    let link = LinkDefaults.resolve(capacity: nil, policy: nil, shape, pacing: pacing)
    #expect(link.limit == 16 && link.policy == (pacing == .waits ? .block : .dropOldest))
  }

  @Test("what a graph sets is used")
  func given() {
    let shape = OutputShape(.h264, packetDuration: nil, packetBytes: 1_000)
    let link = LinkDefaults.resolve(capacity: .packets(5), policy: .fail, shape, pacing: .live)
    #expect(link.limit == 5 && link.policy == .fail)
  }
}
