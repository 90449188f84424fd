import MillraceCore
import Testing

/// Posts one event through ports, as a node does, and returns its JSON.
private func post(
  blockBytes: Int = 1024, now: Nanoseconds = 1_500_000_000, _ fields: (inout EventWriter) -> Void
) -> String? {
  let fixture = TableFixture(outputs: [.init(limit: 4)], blockBytes: blockBytes)
  fixture.listen(event: "\"node\":\"n\",\"event\":\"e\"")
  fixture.table.pointee.now = now
  var ports = Ports(fixture.table)
  ports.post(0, fields)
  return fixture.takeText(0)
}

@Suite("event writer") struct EventWriterTests {
  private let start = #"{"time":1.500000,"node":"n","event":"e""#

  @Test("an event without fields has time, node and name")
  func bare() {
    #expect(post { _ in } == start + "}")
  }

  @Test(
    "integers are written in full",
    arguments: [
      (0, "0"), (7, "7"), (-7, "-7"), (Int.max, "9223372036854775807"), (Int.min, "-9223372036854775808"),
    ])
  func integers(value: Int, text: String) {
    #expect(post { $0.field("value", value) } == start + ",\"value\":\(text)}")
  }

  @Test(
    "numbers are rounded to the given decimals",
    arguments: [
      (0, 3, "0.000"), (1.25, 1, "1.3"), (-1.25, 1, "-1.3"), (2.5, 0, "3"), (-0.0001, 3, "0.000"),
      (0.05, 2, "0.05"),
      (-0.05, 2, "-0.05"), (123456.789, 3, "123456.789"), (1e9, 9, "1000000000.000000000"),
      (0.999, 2, "1.00"),
      (1, -4, "1"), (1, 40, "1.000000000"),
    ] as [(Double, Int, String)])
  func decimals(value: Double, places: Int, text: String) {
    #expect(post { $0.field("value", value, decimals: places) } == start + ",\"value\":\(text)}")
  }

  @Test(
    "a value that is not finite, or too large for fixed point, is null",
    arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e19])
  func notFinite(value: Double) {
    #expect(post { $0.field("value", value) } == start + ",\"value\":null}")
  }

  @Test("Booleans are true and false")
  func bools() {
    let text = post {
      $0.field("yes", true)
      $0.field("no", false)
    }
    #expect(text == start + #","yes":true,"no":false}"#)
  }

  @Test("texts get JSON escapes, and other UTF-8 is unchanged")
  func escapes() {
    #expect(post { $0.field("text", "a\"b\\c\nd\u{1}é中") } == start + #","text":"a\"b\\c\u000ad\u0001é中"}"#)
    let bytes: [UInt8] = Array("\u{1f}\t/\u{7f}😀".utf8)
    let text = post { $0.field("text", utf8: bytes.span) }
    #expect(text == start + ",\"text\":\"\\u001f\\u0009/\u{7f}😀\"}")
  }

  @Test(
    "a field that does not fit is left out, the event is marked as truncated, and a shorter field after it still fits"
  )
  func truncation() {
    let long = [UInt8](repeating: UInt8(ascii: "x"), count: 100)
    let text = post(blockBytes: 128) {
      $0.field("first", 1)
      $0.field("long", utf8: long.span)
      $0.field("last", 2)
    }
    #expect(text == start + #","first":1,"last":2,"truncated":true}"#)
  }

  @Test("with a field of any length, the event fits its block and is valid", arguments: 0...80)
  func everyLength(length: Int) {
    let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: length)
    guard let text = post(blockBytes: 128, { $0.field("text", utf8: bytes.span) }) else {
      Issue.record("the event is missing")
      return
    }
    #expect(text.utf8.count <= 128)
    let whole = start + ",\"text\":\"" + String(decoding: bytes, as: UTF8.self) + "\"}"
    #expect(text == whole || text == start + ",\"truncated\":true}")
    // 20 bytes are reserved for the end; nothing else is lost.
    #expect((text == whole) == (whole.utf8.count - 1 <= 108))
  }

  @Test("an event whose beginning does not fit its block is not posted")
  func tooSmallBlock() {
    let fixture = TableFixture(outputs: [.init(limit: 4)], blockBytes: 64)
    fixture.listen(event: "\"node\":\"\(String(repeating: "n", count: 200))\",\"event\":\"e\"")
    var ports = Ports(fixture.table)
    ports.post(0) { $0.field("value", 1) }
    #expect(fixture.takeText(0) == nil)
    #expect(fixture.pool.hasAllBlocks)
  }

  @Test("a negative time keeps its sign")
  func negativeTime() {
    #expect(post(now: -1_500_000) { _ in } == #"{"time":-0.001500,"node":"n","event":"e"}"#)
  }
}
