import MillraceDSP
import Testing

@Suite("Channels in spans")
struct SampleConversionTests {
  @Test("a channel is extracted from interleaved frames")
  func takenOut() {
    let (floats, shorts): ([Float], [Int16]) = ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])
    var (one, one16, wide): ([Float], [Int16], [Float]) = ([0, 0], [0, 0], [0, 0])
    var span = one.mutableSpan
    SampleConversion.deinterleave(floats.span, channels: 3, channel: 1, into: &span)
    var span16 = one16.mutableSpan
    SampleConversion.deinterleave(shorts.span, channels: 3, channel: 1, into: &span16)
    var wideSpan = wide.mutableSpan
    SampleConversion.deinterleave(shorts.span, channels: 3, channel: 1, into: &wideSpan)
    #expect(one == [2, 5] && one16 == [2, 5] && wide == [2 / 32768, 5 / 32768])
  }

  @Test("interleaving a channel leaves the others unchanged")
  func putIn() {
    let (floats, shorts): ([Float], [Int16]) = ([2, 5], [2, 5])
    var (frames, frames16): ([Float], [Int16]) = ([9, 9, 9, 9, 9, 9], [9, 9, 9, 9, 9, 9])
    var span = frames.mutableSpan
    SampleConversion.interleave(floats.span, channels: 3, channel: 1, into: &span)
    var span16 = frames16.mutableSpan
    SampleConversion.interleave(shorts.span, channels: 3, channel: 1, into: &span16)
    #expect(frames == [9, 2, 9, 9, 5, 9] && frames16 == [9, 2, 9, 9, 5, 9])
  }

  @Test("an out-of-range channel and mismatched counts trap")
  func layouts() async {
    await #expect(processExitsWith: .failure) {
      var frames = [Float](repeating: 0, count: 5)
      var span = frames.mutableSpan
      SampleConversion.interleave([Float](repeating: 1, count: 2).span, channels: 2, channel: 0, into: &span)
    }
    await #expect(processExitsWith: .failure) {
      var frames = [Int16](repeating: 0, count: 4)
      var span = frames.mutableSpan
      SampleConversion.interleave([Int16](repeating: 1, count: 2).span, channels: 2, channel: 2, into: &span)
    }
    await #expect(processExitsWith: .failure) {
      var one = [Float](repeating: 0, count: 2)
      var span = one.mutableSpan
      SampleConversion.deinterleave(
        [Float](repeating: 1, count: 5).span, channels: 2, channel: 0, into: &span)
    }
    await #expect(processExitsWith: .failure) {
      var one = [Int16](repeating: 0, count: 2)
      var span = one.mutableSpan
      SampleConversion.deinterleave(
        [Int16](repeating: 1, count: 4).span, channels: 2, channel: -1, into: &span)
    }
    await #expect(processExitsWith: .failure) {
      var one = [Float](repeating: 0, count: 2)
      var span = one.mutableSpan
      SampleConversion.deinterleave(
        [Int16](repeating: 1, count: 2).span, channels: 2, channel: 0, into: &span)
    }
  }
}
