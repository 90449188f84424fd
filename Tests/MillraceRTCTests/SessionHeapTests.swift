import CMallocCount
import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

@Suite("heap requests of a session's media")
struct SessionHeapTests {
  static let reason: Comment = "the sanitizers have the heap to themselves"

  @Test(
    "sound and pictures pass without a heap request",
    .enabled(if: millrace_malloc_counting_available() != 0, reason), arguments: [RTPCodec.h264, .vp8])
  func none(_ codec: RTPCodec) throws {
    let pair = try MediaPair([.audio(), .video(codecs: [codec])])
    let sound = [UInt8](repeating: 7, count: 80)
    let pictures = [true, false].map { TestPicture.make(codec, isKey: $0, count: 4_000, number: 1) }
    // Packets of one side, to be taken by the other as often as wanted.
    pair.run(milliseconds: 3_000, step: 20) { number in
      pair.a.sendSound(sound, at: pair.now)
      if number % 2 == 0 { pair.a.send(pictures[number == 0 ? 0 : 1], isKey: number == 0, at: pair.now) }
    }
    var packets: [[UInt8]] = []
    pair.drops = { end, packet in
      if end === pair.a, !packet.isRTCP { packets.append(packet.bytes) }
      return end === pair.a
    }
    pair.run(milliseconds: 4_000, step: 20) { number in
      pair.a.sendSound(sound, at: pair.now)
      if number % 2 == 0 { pair.a.send(pictures[1], isKey: false, at: pair.now) }
    }
    pair.drops = { _, _ in false }
    let (sender, receiver) = (try #require(pair.a.media), try #require(pair.b.media))
    pair.a.isIdle = true
    pair.b.isIdle = true
    let (taken, later) = (packets, pictures[1])
    var now = pair.now
    var requests: UInt64 = 0
    for number in taken.indices {
      let packet = taken[number]
      let before = millrace_malloc_thread_requests()
      // What comes; every tenth is lost.
      if number % 10 != 5 { _ = receiver.take(packet.span, isRTCP: false, at: now) }
      // What is sent.
      sender.send(sound: sound.span, duration: 960, pause: 0, level: nil, at: now)
      if number % 4 == 0 { _ = sender.send(picture: later.span, isKey: false, captured: now, at: now) }
      _ = sender.run(at: now)
      _ = receiver.run(at: now)
      now += .milliseconds(5)
      // The first packets warm up.
      if number > 100 { requests += millrace_malloc_thread_requests() - before }
    }
    #expect(packets.count > 300 && pair.a.idlePackets > 300 && pair.b.idlePackets > 200)
    #expect(requests == 0)
  }
}
