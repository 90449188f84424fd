import MillraceCore
import Testing

@testable import MillraceRunner

@Suite("Envelopes")
struct EnvelopeTests {
  private typealias Peak = Envelope.Peak

  @Test("every column holds the lowest and highest sample of its 10 ms")
  func columns() {
    var envelope = Envelope()
    // 1,000 Hz: ten samples a column. The third column has a click.
    let samples = (0..<50).map { index in index == 25 ? Float(-0.75) : index % 2 == 0 ? 0.5 : -0.25 }
    envelope.add(count: 50, channels: 1, rate: 1_000, start: 0) { samples[$0] }
    let plain = Peak(low: -0.25, high: 0.5)
    #expect(
      envelope.columns(5, from: 0, to: .milliseconds(50))
        == [plain, plain, Peak(low: -0.75, high: 0.5), plain, plain])
    #expect(envelope.largest == 0.75)
    #expect(envelope.end == .milliseconds(50))
    #expect(envelope.clippedCount == 0)
  }

  @Test("sound is placed at its time, with silence in between and all channels combined")
  func places() {
    var envelope = Envelope()
    for start in [0, 30] as [Int64] {
      envelope.add(count: 20, channels: 2, rate: 1_000, start: .milliseconds(start)) {
        $0 % 2 == 0 ? 0.1 : -1
      }
    }
    let sound = Peak(low: -1, high: 0.1)
    let silence = Peak(low: 0, high: 0)
    #expect(envelope.columns(4, from: 0, to: .milliseconds(40)) == [sound, silence, silence, sound])
    #expect(envelope.clippedCount == 20)
  }

  @Test("a packet that begins within a column is split at its end")
  func split() {
    var envelope = Envelope()
    envelope.add(count: 10, channels: 1, rate: 1_000, start: .milliseconds(5)) { $0 < 5 ? 0.1 : 0.2 }
    #expect(
      envelope.columns(2, from: 0, to: .milliseconds(20))
        == [Peak(low: 0.1, high: 0.1), Peak(low: 0.2, high: 0.2)])
  }

  @Test("an hour fits: columns are merged, and no peak is lost")
  func hour() {
    var envelope = Envelope()
    for second in 0..<3_600 {
      envelope.add(count: 10, channels: 1, rate: 10, start: .milliseconds(Int64(second) * 1_000)) { index in
        second == 1_800 && index == 3 ? 0.9 : 0.1
      }
    }
    #expect(envelope.width == .milliseconds(640), "6,000 columns, doubled until an hour fits")
    let columns = envelope.columns(60, from: 0, to: .milliseconds(3_600_000))
    #expect(columns.count <= 60)
    #expect(columns.count { $0.high == 0.9 } == 1)
    #expect(columns[columns.count / 2].high == 0.9 || columns[columns.count / 2 - 1].high == 0.9)
  }

  @Test("sound before the start is ignored")
  func early() {
    var envelope = Envelope()
    envelope.add(count: 10, channels: 1, rate: 1_000, start: -.milliseconds(10)) { _ in 1 }
    #expect(envelope.end == 0 && envelope.largest == 0)
  }
}
