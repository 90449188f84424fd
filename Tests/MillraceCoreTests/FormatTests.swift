import MillraceCore
import Testing

@Suite("formats") struct FormatTests {
  @Test(
    "a format has a readable description",
    arguments: [
      (Format.pcm(rate: 48000, channels: 1, sample: .s16), "s16 48000 Hz 1 ch"),
      (.pcm(rate: 44100, channels: 2, sample: .f32), "f32 44100 Hz 2 ch"),
      (.opus(rate: 16000, channels: 1), "opus 16000 Hz 1 ch"),
      (.video(width: 1280, height: 720, pixel: .i420, rate: FrameRate(30)), "i420 1280x720 30 fps"),
      (
        .video(width: 8, height: 8, pixel: .bgrx, rate: FrameRate(30000, over: 1001)),
        "bgrx 8x8 30000/1001 fps"
      ),
      (.mp3, "mp3"), (.aac, "aac"), (.jpeg, "jpeg"), (.png, "png"), (.h264, "h264"),
      (.vp8, "vp8"), (.text, "text"), (.event, "event"),
    ])
  func description(format: Format, text: String) {
    #expect(format.description == text)
  }

  @Test("properties exist for the formats that have them")
  func details() {
    let pcm = Format.pcm(rate: 8000, channels: 2, sample: .f32)
    #expect(pcm.rate == 8000)
    #expect(pcm.channels == 2)
    #expect(pcm.sample == .f32)
    #expect(pcm.frameBytes == 8)
    let opus = Format.opus(rate: 48000, channels: 1)
    #expect(opus.rate == 48000)
    #expect(opus.frameBytes == nil)
    #expect(opus.sample == nil)
    #expect(Format.jpeg.rate == nil)
  }

  @Test(
    "a constraint is described as in error messages",
    arguments: [
      (FormatConstraint.any, "any format"),
      (.pcm(), "pcm"),
      (.pcm(rates: .only(16000), channels: .only(1), samples: [.s16]), "s16 16000 Hz 1 ch"),
      (
        .pcm(rates: .oneOf([8000, 16000]), channels: .range(1...2), samples: [.s16, .f32]),
        "s16/f32 8000, 16000 Hz 1 to 2 ch"
      ),
      (.opus(rates: .only(48000)), "opus 48000 Hz"),
      (.kind(.mp3).or(.kind(.aac)), "mp3 or aac"),
      (.pcm(samples: [.f32]).or(.opus()), "f32 or opus"),
      (.video(), "video"),
      (.video(pixels: [.i420, .bgrx]).or(.kind(.jpeg)), "video i420/bgrx or jpeg"),
    ])
  func constraintText(constraint: FormatConstraint, text: String) {
    #expect(constraint.description == text)
  }

  @Test("a constraint accepts what one of its alternatives accepts, in every property")
  func acceptance() {
    let narrow = FormatConstraint.pcm(rates: .range(8000...16000), channels: .only(1), samples: [.s16])
    #expect(narrow.accepts(.pcm(rate: 8000, channels: 1, sample: .s16)))
    #expect(narrow.accepts(.pcm(rate: 16000, channels: 1, sample: .s16)))
    #expect(!narrow.accepts(.pcm(rate: 16001, channels: 1, sample: .s16)))
    #expect(!narrow.accepts(.pcm(rate: 16000, channels: 2, sample: .s16)))
    #expect(!narrow.accepts(.pcm(rate: 16000, channels: 1, sample: .f32)))
    #expect(!narrow.accepts(.opus(rate: 16000, channels: 1)))
    #expect(narrow.or(.opus()).accepts(.opus(rate: 16000, channels: 1)))
    #expect(FormatConstraint.any.accepts(.jpeg))
    #expect(!FormatConstraint.kind(.text).accepts(.event))
    #expect(FormatConstraint.pcm().accepts(.pcm(rate: 1, channels: 99, sample: .f32)))
    let picture = Format.video(width: 17, height: 3, pixel: .nv12, rate: FrameRate(25))
    #expect(FormatConstraint.video().accepts(picture))
    #expect(FormatConstraint.video(pixels: [.i420, .nv12]).accepts(picture))
    #expect(!FormatConstraint.video(pixels: [.i420]).accepts(picture))
  }

  @Test("a raw picture has the bytes of its planes, with half sizes rounded up")
  func pictureBytes() {
    #expect(PixelType.i420.byteCount(width: 1280, height: 720) == 1_382_400)
    #expect(PixelType.i420.byteCount(width: 1, height: 1) == 3)
    #expect(PixelType.nv12.byteCount(width: 17, height: 3) == 17 * 3 + 2 * 9 * 2)
    #expect(PixelType.rgb24.byteCount(width: 17, height: 3) == 153)
    #expect(PixelType.bgrx.byteCount(width: 17, height: 3) == 204)
    let shape = OutputShape.video(width: 17, height: 3, rate: FrameRate(25))
    #expect(shape.packetBytes == 87 && shape.packetDuration == .milliseconds(40))
    #expect(shape.format == .video(width: 17, height: 3, pixel: .i420, rate: FrameRate(25)))
  }

  @Test("the time of a picture is computed from its number and never drifts")
  func pictureTime() {
    let rate = FrameRate(30_000, over: 1_001)
    #expect(rate.time(ofPictures: 0) == 0)
    #expect(rate.time(ofPictures: 1) == 33_366_666)
    #expect(rate.time(ofPictures: 30_000) == 1_001_000_000_000)
    let century: Int64 = 94_594_594_594
    #expect(Int128(rate.time(ofPictures: century)) == Int128(century) * 1_001_000_000_000 / 30_000)
  }

  @Test("the nearest member of a set is found")
  func nearest() {
    #expect(ValueSet.any.nearest(to: 5) == 5)
    #expect(ValueSet.oneOf([8000, 16000, 48000]).nearest(to: 44100) == 48000)
    #expect(ValueSet.oneOf([8000, 16000]).nearest(to: 12000) == 8000)
    #expect(ValueSet.oneOf([]).nearest(to: 1) == nil)
    #expect(ValueSet.range(1...8).nearest(to: 0) == 1)
    #expect(ValueSet.range(1...8).nearest(to: 9) == 8)
    #expect(ValueSet.range(1...8).nearest(to: 3) == 3)
    #expect("\(ValueSet.any), \(ValueSet.only(5)), \(ValueSet.range(1...8))" == "any, 5, 1 to 8")
  }

  @Test("a PCM shape has its bytes, duration and frames")
  func shape() {
    let shape = OutputShape.pcm(rate: 44100, channels: 2, sample: .f32, frames: 441, burst: 3)
    #expect(shape.packetBytes == 441 * 8)
    #expect(shape.packetDuration == .milliseconds(10))
    #expect(shape.frames == 441)
    #expect(shape.burst == 3)
    #expect(OutputShape(.text, packetDuration: nil, packetBytes: 10).frames == nil)
  }
}

@Suite("sample times") struct SampleTimeTests {
  @Test(
    "times are rounded down on both sides of zero",
    arguments: [
      (0, 48000, 0), (1, 48000, 20833), (-1, 48000, -20834), (3, 48000, 62500), (-3, 48000, -62500),
      (44100, 44100, 1_000_000_000), (-44100, 44100, -1_000_000_000), (1, 44100, 22675), (-1, 44100, -22676),
      (-312, 48000, -6_500_000), (1, 3, 333_333_333), (-1, 3, -333_333_334),
    ] as [(Int64, Int, Int64)])
  func rounding(count: Int64, rate: Int, expected: Int64) {
    #expect(Nanoseconds.samples(count, rate: rate) == expected)
  }

  @Test(
    "times agree with 128-bit arithmetic over 100 years",
    arguments: [8000, 11025, 16000, 44100, 48000, 192_000])
  func wide(rate: Int) {
    let century = Int64(rate) * 100 * 366 * 86400
    for count in [century, century - 1, century / 7, -century / 3, 1, 12345, -12345] {
      // Floor division.
      let product = Int128(count) * 1_000_000_000
      var expected = product / Int128(rate)
      if product % Int128(rate) < 0 { expected -= 1 }
      #expect(Int128(Nanoseconds.samples(count, rate: rate)) == expected, "\(count)")
    }
  }

  @Test("steps of one packet never drift from the position", arguments: [44100, 48000])
  func noDrift(rate: Int) {
    for packet in Int64(0)..<1000 {
      let step =
        Nanoseconds.samples((packet + 1) * 441, rate: rate) - Nanoseconds.samples(packet * 441, rate: rate)
      let exact = 441e9 / Double(rate)
      #expect(abs(Double(step) - exact) < 1)
    }
  }

  @Test("milliseconds convert to nanoseconds") func milliseconds() {
    #expect(Nanoseconds.milliseconds(-20) == -20_000_000)
  }
}
