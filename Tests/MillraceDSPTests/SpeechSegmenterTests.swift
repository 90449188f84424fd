import MillraceDSP
import Testing

/// Probabilities as a string, one character per 100 positions: `#` 0.9, `+` 0.4 (between the thresholds), `.` 0.1.
@Suite("Speech segmentation")
struct SpeechSegmenterTests {
  private func segmenter(speech: Int64 = 200, silence: Int64 = 300) -> SpeechSegmenter {
    SpeechSegmenter(.init(start: 0.5, stop: 0.3, minimumSpeech: speech, minimumSilence: silence))
  }

  /// Reported changes, as `+100@300`: started at 100, reported at 300; `-100..400@700`: lasted from 100 to 400, reported at 700.
  private func changes(_ row: String, _ segmenter: SpeechSegmenter) -> String {
    var segmenter = segmenter
    var words: [String] = []
    for (index, sign) in row.enumerated() {
      let probability: Float = sign == "#" ? 0.9 : sign == "+" ? 0.4 : 0.1
      let to = Int64(index + 1) * 100
      if let change = segmenter.take(probability, from: to - 100, to: to) {
        words.append("\(word(change))@\(to)")
      }
    }
    let end = Int64(row.count) * 100
    if let change = segmenter.finish(at: end) { words.append("\(word(change))@end") }
    #expect(!segmenter.isSpeech)
    return words.joined(separator: " ")
  }

  private func word(_ change: SpeechSegmenter.Change) -> String {
    switch change {
    case .started(let at): "+\(at)"
    case .ended(let from, let to): "-\(from)..\(to)"
    }
  }

  @Test(
    "probabilities become starts and ends",
    arguments: [
      // Speech is reported when it has lasted long enough, with its true start.
      ("..####....", "+200@400 -200..600@900"),
      // Shorter speech is ignored.
      ("..#.......", ""),
      // Between the thresholds nothing starts.
      ("..++++++..", ""),
      // Speech may fall between the thresholds, before and after it is reported.
      ("..#+......", "+200@400 -200..400@700"),
      ("..##++++...", "+200@400 -200..800@1100"),
      // Too short a pause is ignored; only a probability above the upper threshold ends it.
      ("..##..##...", "+200@400 -200..800@1100"),
      ("..##.++...", "+200@400 -200..400@700"),
      ("..##.+#...", "+200@400 -200..700@1000"),
      // The end of the stream ends speech, at the start of a pending pause if there is one.
      ("..###", "+200@400 -200..500@end"),
      ("..###.", "+200@400 -200..500@end"),
      ("..#", ""),
      // Two utterances.
      ("##...##...", "+0@200 -0..200@500 +500@700 -500..700@1000"),
      ("", ""),
    ])
  func rows(row: String, expected: String) {
    #expect(changes(row, segmenter()) == expected)
  }

  @Test("without minimum durations every crossing is reported at once")
  func immediate() {
    #expect(
      changes("#.##.", segmenter(speech: 0, silence: 0)) == "+0@100 -0..100@200 +200@300 -200..400@500")
  }

  @Test("a gap counts as a pause of its length")
  func gap() {
    var segmenter = segmenter()
    #expect(segmenter.take(0.9, from: 0, to: 200) == .started(at: 0))
    #expect(segmenter.take(0, from: 200, to: 400) == nil)
    #expect(segmenter.take(0.9, from: 400, to: 600) == nil)
    #expect(segmenter.take(0, from: 600, to: 900) == .ended(from: 0, to: 600))
    #expect(!segmenter.isSpeech)
  }

  @Test("thresholds can change at any time; a lower one above the upper counts as the upper")
  func settings() {
    var segmenter = segmenter(speech: 0, silence: 0)
    #expect(segmenter.take(0.4, from: 0, to: 100) == nil)
    segmenter.settings.start = 0.35
    #expect(segmenter.take(0.4, from: 100, to: 200) == .started(at: 100))
    segmenter.settings.stop = 0.9
    #expect(segmenter.take(0.4, from: 200, to: 300) == nil)
    #expect(segmenter.take(0.34, from: 300, to: 400) == .ended(from: 100, to: 300))
  }

  @Test("a NaN probability is not speech")
  func nan() {
    var segmenter = segmenter(speech: 0, silence: 0)
    #expect(segmenter.take(.nan, from: 0, to: 100) == nil)
    #expect(segmenter.take(0.9, from: 100, to: 200) == .started(at: 100))
    #expect(segmenter.take(.nan, from: 200, to: 300) == .ended(from: 100, to: 200))
  }
}
