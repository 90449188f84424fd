import MillraceGraph
import Testing

@Suite("source positions")
struct SourceFileTests {
  private func position(_ text: String, _ offset: Int) -> String {
    SourceFile(name: "a", text: text).position(of: offset).description
  }

  @Test("the first byte is line 1, column 1, in an empty source too")
  func first() {
    #expect(position("", 0) == "1:1")
    #expect(position("x", 0) == "1:1")
  }

  @Test("columns count characters, not bytes")
  func multiByte() {
    // é takes two bytes, 界 three, 😀 four.
    let text = "é界😀x"
    #expect(position(text, 0) == "1:1")
    #expect(position(text, 2) == "1:2")
    #expect(position(text, 5) == "1:3")
    #expect(position(text, 9) == "1:4")
    #expect(position(text, 10) == "1:5")
  }

  @Test("columns of a line of many thousand characters are counted as those of a short one")
  func longLine() {
    // Two lines; the second has characters of one, two and three bytes.
    let source = SourceFile(name: "a", text: "ü\n" + String(repeating: "aé界", count: 2_000))
    for place in [0, 1, 170, 171, 1_023, 1_024, 1_025, 1_999] {
      for (offset, column) in [(0, 1), (1, 2), (3, 3)] {
        let position = source.position(of: 3 + place * 6 + offset)
        #expect(position == SourceFile.Position(line: 2, column: place * 3 + column))
      }
    }
    #expect(source.position(of: source.bytes.count).column == 6_001)
    #expect(
      SourceFile(name: "a", text: String(repeating: "x", count: 2_048)).position(of: 2_048).column == 2_049)
  }

  @Test("lines end at LF, at CR LF and at CR alone", arguments: ["a\nb\nc", "a\rb\rc"])
  func shortLineEnds(_ text: String) {
    #expect(position(text, 1) == "1:2")
    #expect(position(text, 2) == "2:1")
    #expect(position(text, 4) == "3:1")
  }

  @Test("CR LF ends one line, not two")
  func carriageReturnLineFeed() {
    let text = "a\r\nb\r\n\r\nc"
    #expect(position(text, 1) == "1:2")
    #expect(position(text, 3) == "2:1")
    #expect(position(text, 6) == "3:1")
    #expect(position(text, 8) == "4:1")
    #expect(SourceFile(name: "a", text: text).lineCount == 4)
  }

  @Test("an offset outside the source answers with its nearest end")
  func outside() {
    #expect(position("ab\nc", 99) == "2:2")
    #expect(position("ab\nc", -1) == "1:1")
    #expect(position("ab\n", 3) == "2:1")
  }

  @Test("bytes that are not UTF-8 still have positions")
  func notUTF8() {
    let source = SourceFile(name: "a", bytes: [0xFF, 0x0A, 0xC3, 0x28])
    #expect(source.position(of: 3).description == "2:2")
    #expect(source.text(in: 0..<1) == "\u{FFFD}")
  }

  @Test("a line's range leaves out what ends it")
  func lineRange() {
    let source = SourceFile(name: "a", text: "ab\r\ncd\n\nef")
    #expect(source.lineRange(around: 1) == 0..<2)
    #expect(source.lineRange(around: 3) == 0..<2)
    #expect(source.lineRange(around: 4) == 4..<6)
    #expect(source.lineRange(around: 7) == 7..<7)
    #expect(source.lineRange(around: 10) == 8..<10)
  }

  @Test("every offset agrees with counting characters and line ends one by one")
  func againstCounting() {
    let text = "a\r\nbé\r界\n\n😀x\r"
    let source = SourceFile(name: "a", text: text)
    var line = 1
    var column = 1
    var offset = 0
    let scalars = Array(text.unicodeScalars)
    for (index, scalar) in scalars.enumerated() {
      #expect(source.position(of: offset) == SourceFile.Position(line: line, column: column))
      offset += UTF8.width(scalar)
      let isCarriageReturnOfPair = scalar == "\r" && index + 1 < scalars.count && scalars[index + 1] == "\n"
      if scalar == "\n" || (scalar == "\r" && !isCarriageReturnOfPair) {
        line += 1
        column = 1
      } else {
        column += 1
      }
    }
    #expect(source.position(of: offset) == SourceFile.Position(line: line, column: column))
  }

  @Test("positions asked for by many tasks at once agree")
  func shared() async {
    let source = SourceFile(name: "a", text: String(repeating: "line\n", count: 1_000))
    await withTaskGroup(of: SourceFile.Position.self) { group in
      for index in 0..<64 { group.addTask { source.position(of: index * 5) } }
      var lines: Set<Int> = []
      for await position in group { lines.insert(position.line) }
      #expect(lines == Set(1...64))
    }
  }
}
