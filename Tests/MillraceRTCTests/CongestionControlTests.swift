import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

@Suite("what the media of a session may send")
struct CongestionControlTests {
  @Test("sound that is sent on keeps back from pictures what it takes, and not what encoders might make")
  func reserved() {
    var settings = CongestionControl.Settings(sender: 1)
    settings.video = 100_000...2_500_000
    settings.sound = 16_000...64_000
    (settings.sounds, settings.videos) = (3, 3)
    let control = CongestionControl(settings)
    let encoded = control.takeAllocation(sounds: 3, videos: 1)
    let sent = control.takeAllocation(sounds: 3, videos: 1, soundSent: 72_000)
    // Of 300 kbit/s: 60 are heads, and 192 or 90 sound. Pictures begin with 120.
    #expect(encoded?.video == 0)
    #expect((140_000...150_000).contains(sent?.video ?? 0))
    // Never more than encoders might make, and never less than they need.
    let most = CongestionControl(settings).takeAllocation(sounds: 3, videos: 1, soundSent: Int.max / 8)
    let least = CongestionControl(settings).takeAllocation(sounds: 3, videos: 1, soundSent: 0)
    #expect(most?.sound == encoded?.sound && least?.sound == 16_000)
  }

  @Test("the rate of what is sent on follows a louder second at once, and a quieter one slowly")
  func forwardedRate() {
    var rate = ForwardedRate()
    var now: Nanoseconds = .milliseconds(5_000)
    func play(_ seconds: Int, _ bytes: Int) -> Int? {
      for _ in 0..<seconds * 50 {
        rate.note(bytes, at: now)
        now += .milliseconds(20)
      }
      return rate.bitrate(at: now)
    }
    #expect(rate.bitrate(at: now) == nil)
    let quiet = play(3, 100)
    let loud = play(3, 200)
    let falling = play(2, 100)
    let fallen = play(4, 100)
    #expect(quiet == 40_000 && loud == 80_000)
    #expect(falling == 60_000 && fallen == 40_000)
    now += .milliseconds(3_500)
    #expect(rate.bitrate(at: now) == nil)
    rate.note(10, at: now)
    #expect(rate.bitrate(at: now) == nil)
  }

  @Test("pictures that are added to a session of sound begin with what pictures begin with")
  func addedVideo() throws {
    var settings = CongestionControl.Settings(sender: 1)
    settings.sound = 16_000...64_000
    let control = CongestionControl(settings)
    let sound = control.takeAllocation()
    #expect(sound?.sound == 64_000 && sound?.video == 0)
    control.extend(
      sound: settings.sound, video: 100_000...2_500_000, sounds: 1, videos: 1, reported: [1, 2])
    let both = control.takeAllocation()
    #expect(both?.sound == 64_000)
    #expect((both?.video ?? 0) > 150_000)
    // What is learnt afterwards stays when more are added: 150 kbit/s by a REMB, too few for pictures.
    var estimate: [UInt8] = [0x8F, 206, 0, 4] + TestPacket.word(9) + TestPacket.word(0)
    estimate += Array("REMB".utf8)
    estimate += [0, 0x02, 0x49, 0xF0]
    var reader = RTCPReader(estimate.span)
    if let packet = try reader.next() { control.take(packet, at: 1) }
    let learnt = control.takeAllocation()
    control.extend(
      sound: settings.sound, video: 100_000...2_500_000, sounds: 1, videos: 2, reported: [1, 2, 3])
    let after = control.takeAllocation()
    #expect(learnt?.video == 0 && after == nil)
  }
}
