import Testing

@testable import MillraceRTCWire

@Suite("congestion: allocation") struct MediaAllocationTests {
  private let audio = MediaAllocation.Audio(minimum: 16_000, maximum: 40_000)
  private let video = MediaAllocation.Video(floor: 100_000, maximum: 2_000_000)
  /// 50 packets in a second with 50 bytes of headers.
  private let headers: Int64 = 20_000

  @Test("sound is given its minimum, then its maximum, and its headers are counted")
  func soundAlone() {
    func share(_ target: Int64) -> MediaAllocation { .share(target, audio: audio, video: nil) }
    #expect(
      share(60_000) == MediaAllocation(audio: 40_000, video: 0, isVideoPaused: false, exceedsTarget: false))
    #expect(share(1_000_000).audio == 40_000)
    #expect(share(50_000).audio == 30_000)
    #expect(
      share(36_000) == MediaAllocation(audio: 16_000, video: 0, isVideoPaused: false, exceedsTarget: false))
    #expect(
      share(35_999) == MediaAllocation(audio: 16_000, video: 0, isVideoPaused: false, exceedsTarget: true))
    #expect(share(.min).audio == 16_000)
  }

  @Test("longer packets and header extensions change what is left for the sound")
  func soundHeaders() {
    var audio = audio
    audio.packetTime = 60_000_000
    audio.overhead.extensions = 10
    #expect(MediaAllocation.share(40_000, audio: audio, video: nil).audio == 32_000)
    audio.overhead.network = 48
    audio.overhead.tag = 16
    #expect(MediaAllocation.share(40_000, audio: audio, video: nil).audio == 40_000 - 86 * 8 * 1_000 / 60 - 1)
  }

  @Test("video is given the rest without its headers, up to its maximum")
  func rest() {
    let result = MediaAllocation.share(1_060_000, audio: audio, video: video)
    #expect(result.audio == 40_000)
    // 50 bytes of headers beside 1,100 of payload.
    #expect(result.video == 1_000_000 * 1_100 / 1_150)
    #expect(!result.isVideoPaused && !result.exceedsTarget)
    #expect(MediaAllocation.share(90_000_000, audio: audio, video: video).video == 2_000_000)
    #expect(MediaAllocation.share(1_150_000, audio: nil, video: video).video == 1_100_000)
  }

  @Test("video pauses below its floor, and returns with a margin")
  func pause() {
    let enough: Int64 = 60_000 + 100_000 * 1_150 / 1_100 + 1
    #expect(MediaAllocation.share(enough, audio: audio, video: video).video >= 100_000)
    let paused = MediaAllocation.share(enough - 100, audio: audio, video: video)
    #expect(paused == MediaAllocation(audio: 40_000, video: 0, isVideoPaused: true, exceedsTarget: false))
    func returns(_ target: Int64) -> Bool {
      !MediaAllocation.share(target, audio: audio, video: video, isVideoPaused: true).isVideoPaused
    }
    #expect(!returns(enough) && !returns(enough + 20_000) && returns(enough + 21_000))
    let small = MediaAllocation.Video(floor: 90_000, maximum: 100_000)
    #expect(!MediaAllocation.share(1_000_000, audio: nil, video: small, isVideoPaused: true).isVideoPaused)
  }

  @Test("what is shared out never exceeds the target, but for the minimum of the sound")
  func sums() {
    var random = SeededRandom(seed: 2)
    for _ in 0..<5_000 {
      let target = Int64(random.next() % 3_000_000)
      let result = MediaAllocation.share(
        target, audio: audio, video: video, isVideoPaused: random.chance(0.5))
      let sum = result.audio + headers + result.video * 1_150 / 1_100
      #expect(sum <= target || result.exceedsTarget && result.video == 0)
    }
  }

  @Test("impossible demands are corrected")
  func hostile() {
    let values: [Int64] = [.min, -1, 0, 1, 1_000_000, .max]
    for target in values {
      for first in values {
        for last in values {
          for bytes in [Int.min, 0, 1_200, .max] {
            let overhead = MediaAllocation.Overhead(
              network: bytes, tag: bytes, header: bytes, extensions: bytes)
            let audio = MediaAllocation.Audio(
              minimum: first, maximum: last, packetTime: first, overhead: overhead)
            let video = MediaAllocation.Video(
              floor: last, maximum: first, packetBytes: bytes, overhead: overhead)
            let result = MediaAllocation.share(target, audio: audio, video: video, isVideoPaused: first > 0)
            #expect((0...BandwidthLimits.highest).contains(result.audio))
            #expect((0...BandwidthLimits.highest).contains(result.video))
            #expect(!result.isVideoPaused || result.video == 0)
          }
        }
      }
    }
  }
}
