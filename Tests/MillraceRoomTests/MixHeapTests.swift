import CMallocCount
import MillraceCore
import MillraceRTCSound
import Testing

@testable import MillraceRoom

/// Takes the mix, and makes no heap request.
private final class CountingListener: RoomMixListener {
  private(set) var packets = 0

  func mixed(_ payload: Span<UInt8>, pause: Int, level: Double) { packets += 1 }
}

@Suite("Room: heap requests of the mix") struct MixHeapTests {
  @Test(
    "packets and frames make none, also when voices come and go",
    .enabled(if: millrace_malloc_counting_available() == 1))
  func none() throws {
    let mixer = RoomMixer(RoomMixSettings())
    let listener = CountingListener()
    var members: [MixMember] = []
    var packets: [[[UInt8]]] = []
    for number in 0..<5 {
      let member = try MixMember(
        mixer.addSeat(), MixVoice(MixRig.tones[number]), source: UInt64(number + 1))
      member.seat.setListener(listener)
      members.append(member)
      packets.append((0..<50).map { _ in member.voice.packet() })
    }
    var now: Nanoseconds = .milliseconds(1_000)
    var requests: UInt64 = 0
    for frame in 0..<1_000 {
      let before = millrace_malloc_thread_requests()
      // Each of three talks for two seconds, and is silent for as long.
      for number in 0..<3 where (frame / 100 + number) % 2 == 0 {
        let member = members[number]
        let head = member.head(at: now)
        let packet = packets[number][frame % 50]
        mixer.take(head, packet.span, from: member.seat, at: now)
      }
      _ = mixer.run(at: now)
      // By then all of them have been heard.
      if frame > 400 { requests += millrace_malloc_thread_requests() - before }
      now += MixRig.length
    }
    #expect(listener.packets > 1_000)
    #expect(requests == 0)
  }
}
