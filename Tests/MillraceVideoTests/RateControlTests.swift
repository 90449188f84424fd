import Glibc
import MillraceVideo
import Testing

/// A picture model for the rate control: size by scale, of the whole and of the probed rows.
private struct Subject {
  /// Size at scale 100.
  var bytes: Double
  var slope = -0.62
  /// Ratio of the whole picture's size to that of the probed rows, scaled up.
  var unevenness = 1.0
  /// Change of the slope over a factor of e in scale.
  var bend = 0.0
  let rows: Int

  func size(_ scale: Double) -> Int {
    let way = log(scale / 100)
    return Int(330 + bytes * exp(slope * way + bend * way * way))
  }

  func probe(_ scale: Double, _ control: RateControl) -> Int {
    let probed = Double((rows - control.firstRow + control.rowStep - 1) / control.rowStep)
    return Int(330 + Double(size(scale) - 330) / unevenness * probed / Double(rows))
  }

  /// The result for a picture.
  struct Outcome {
    var kept: Int?
    var encodes = 0
    var probes = 0
    var shrink: Double?
  }

  func run(_ control: inout RateControl, limit: Int) -> Outcome {
    var outcome = Outcome()
    var fitting: Int?
    var step = control.begin(limit: limit, rows: rows)
    for _ in 0..<20 {
      switch step {
      case .probe(let scale):
        outcome.probes += 1
        step = control.probed(probe(scale, control))
      case .encode(let scale):
        outcome.encodes += 1
        let bytes = size(scale)
        if bytes <= limit { fitting = max(bytes, fitting ?? 0) }
        step = control.encoded(bytes)
      case .keep:
        outcome.kept = fitting
        return outcome
      case .shrink(let factor):
        outcome.shrink = factor
        return outcome
      }
    }
    Issue.record("rate control did not come to an end")
    return outcome
  }
}

@Suite("rate control")
struct RateControlTests {
  private static let limit = 179_999

  @Test(
    "finds the scale of any picture within two encodes, just under the limit",
    arguments: [20_000.0, 60_000, 110_000, 250_000, 600_000, 1_500_000], [-0.35, -0.5, -0.62, -0.9, -1.15])
  func cold(bytes: Double, slope: Double) throws {
    for unevenness in [0.93, 1, 1.07] {
      let subject = Subject(bytes: bytes, slope: slope, unevenness: unevenness, rows: 45)
      var control = RateControl()
      let outcome = subject.run(&control, limit: Self.limit)
      if subject.size(RateControl.coarsest) > Self.limit {
        #expect(outcome.kept == nil && outcome.shrink != nil)
        continue
      }
      let kept = try #require(outcome.kept)
      #expect(kept <= Self.limit)
      #expect(outcome.encodes <= 2, "\(subject)")
      if subject.size(RateControl.finest) > Self.limit { #expect(kept > 170_000, "\(subject) gave \(kept)") }
    }
  }

  @Test("needs one probe and one encode within a scene")
  func steady() throws {
    var control = RateControl()
    _ = Subject(bytes: 200_000, unevenness: 1.08, rows: 45).run(&control, limit: Self.limit)
    var encodes = 0
    for frame in 1...20 {
      let subject = Subject(
        bytes: 200_000 * (1 + 0.01 * sin(Double(frame))), unevenness: 1.08, rows: 45)
      let outcome = subject.run(&control, limit: Self.limit)
      #expect(outcome.probes == 1)
      encodes += outcome.encodes
      #expect(try #require(outcome.kept) >= 172_799)
    }
    #expect(encodes <= 22, "\(encodes) encodes of 20 pictures")
  }

  @Test("detects a scene change and probes twice")
  func sceneCut() throws {
    var control = RateControl()
    _ = Subject(bytes: 150_000, rows: 45).run(&control, limit: Self.limit)
    let outcome = Subject(bytes: 900_000, slope: -0.7, unevenness: 0.95, rows: 45).run(
      &control, limit: Self.limit)
    #expect(outcome.probes == 2 && outcome.encodes <= 2)
    #expect(try #require(outcome.kept) > 170_000)
  }

  @Test("a picture that fits at the best quality is encoded once, and needs one probe the next time")
  func easy() {
    var control = RateControl()
    let subject = Subject(bytes: 5_000, rows: 45)
    #expect(subject.run(&control, limit: Self.limit).encodes == 1)
    let next = subject.run(&control, limit: Self.limit)
    #expect(next.encodes == 1 && next.probes == 1)
    #expect(next.kept == subject.size(RateControl.finest))
  }

  @Test("never keeps anything over the limit, however nonlinear the picture")
  func crooked() {
    for bend in [-0.12, -0.06, 0.06, 0.12] {
      for bytes in stride(from: 60_000.0, through: 900_000, by: 60_000) {
        var control = RateControl()
        for unevenness in [0.6, 1.5, 1, 0.75] {
          let subject = Subject(bytes: bytes, slope: -0.6, unevenness: unevenness, bend: bend, rows: 45)
          let outcome = subject.run(&control, limit: Self.limit)
          #expect(outcome.encodes <= RateControl.maximumEncodes)
          #expect((outcome.kept == nil) != (outcome.shrink == nil))
          if let kept = outcome.kept { #expect(kept <= Self.limit) }
        }
      }
    }
  }

  @Test("a picture that fits at no scale is scaled down, the more the larger it is")
  func impossible() throws {
    var control = RateControl()
    let far = Subject(bytes: 40_000_000, slope: -0.62, rows: 45).run(&control, limit: Self.limit)
    var other = RateControl()
    let near = Subject(bytes: 1_700_000, slope: -0.62, rows: 45).run(&other, limit: Self.limit)
    #expect(far.kept == nil && near.kept == nil)
    #expect(try #require(far.shrink) == 0.25)
    #expect((0.5...0.8).contains(try #require(near.shrink)))
  }

  @Test("a picture with few rows is not probed")
  func small() {
    var control = RateControl()
    let outcome = Subject(bytes: 3_000, rows: 1).run(&control, limit: Self.limit)
    #expect(outcome.probes == 0 && outcome.encodes == 1)
    #expect(control.rowStep == 1 && control.firstRow == 0)
  }

  @Test(
    "the quality of a scale matches libjpeg",
    arguments: [(4.0, 98.0), (50, 75), (100, 50), (200, 25), (5_000, 1)])
  func quality(scale: Double, quality: Double) {
    #expect(RateControl.quality(ofScale: scale) == quality)
  }
}

@Suite("byte budget")
struct ByteBudgetTests {
  @Test("is strictly under the limit, as a file or as base64 text")
  func limits() {
    #expect(ByteBudget(maxBytes: 180_000).largestJPEG == 179_999)
    #expect(ByteBudget(maxBytes: 180_000, count: .base64).largestJPEG == 134_997)
    for maxBytes in 2_000..<2_050 {
      let largest = ByteBudget(maxBytes: maxBytes, count: .base64).largestJPEG
      #expect((largest + 2) / 3 * 4 < maxBytes)
      #expect((largest + 3) / 3 * 4 >= maxBytes)
    }
  }
}

@Suite("size rule")
struct SizeRuleTests {
  @Test(
    "pictures of 720 lines and less keep their size",
    arguments: [(1_280, 720), (720, 1_280), (1, 1), (17, 3)])
  func small(width: Int, height: Int) {
    var rule = SizeRule(width: width, height: height)
    #expect(!rule.mayChange && rule.first == 1)
    #expect(rule.factor(scale: 2_000) == 1)
    #expect(rule.size(factor: 1) == (width, height))
  }

  @Test("1080p is scaled down as its content needs coarser tables, 4K is first scaled to 1440 lines")
  func large() {
    var rule = SizeRule(width: 1_920, height: 1_080)
    #expect(rule.mayChange && rule.first == 1)
    #expect(rule.factor(scale: 40) == 1)
    #expect(rule.size(factor: rule.factor(scale: 100)) == (1_680, 946))
    #expect(rule.size(factor: rule.factor(scale: 300)) == (1_440, 810))
    let wide = SizeRule(width: 3_840, height: 2_160)
    #expect(wide.size(factor: wide.first) == (2_560, 1_440))
    let eight = SizeRule(width: 7_680, height: 4_320)
    #expect(eight.size(factor: eight.first) == (2_560, 1_440))
  }

  @Test("the shorter side never falls below 720")
  func least() {
    var portrait = SizeRule(width: 900, height: 1_600)
    #expect(portrait.size(factor: portrait.factor(scale: 900)) == (720, 1_280))
  }

  @Test("content at a threshold does not make the size oscillate")
  func hold() {
    var rule = SizeRule(width: 1_920, height: 1_080)
    #expect(rule.factor(scale: 62) == 1)
    #expect(rule.factor(scale: 75) == 0.875)
    #expect(rule.factor(scale: 58) == 0.875)
    #expect(rule.factor(scale: 50) == 1)
  }
}
