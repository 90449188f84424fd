@testable import MillraceGraph
import Testing

@Suite("problems")
struct ProblemTests {
  private let source = SourceFile(name: "graph.json", text: "{\n  \"a\": 1,\n  \"b\": 22\n}\n")

  @Test("a problem is one line: place, severity, text, cure")
  func oneLine() {
    #expect(
      Problem("this is wrong", in: source, range: 9..<10, hint: "mend it").description
        == "graph.json:2:8: error: this is wrong; mend it")
    #expect(
      Problem("odd", severity: .warning, in: source, range: 19..<21).description
        == "graph.json:3:8: warning: odd")
  }

  @Test("without a source the JSON path is the place, and without a path there is none")
  func withoutSource() {
    let path = JSONPath([.key("nodes"), .key("enc")])
    #expect(Problem("odd", path: path).description == "nodes.enc: error: odd")
    #expect(Problem("odd").description == "error: odd")
    #expect(Problem("odd").position == nil)
    #expect(Problem("odd").excerpt == "error: odd")
  }

  @Test("control characters never reach the terminal")
  func controlCharacters() {
    #expect(Problem("a\u{1B}[2J\nb\u{202E}c").description == #"error: a\u001B[2J\nb\u202Ec"#)
    #expect(Problem.quoted("a\tb\u{9B}") == #""a\tb\u009B""#)
  }

  @Test("a very long name is shortened")
  func longName() {
    #expect(
      Problem.quoted(String(repeating: "n", count: 80)) == "\"" + String(repeating: "n", count: 80) + "\"")
    #expect(
      Problem.quoted(String(repeating: "n", count: 81)) == "\"" + String(repeating: "n", count: 79) + "…\"")
  }

  @Test("the excerpt shows the line and marks the range with a caret")
  func excerpt() {
    #expect(
      Problem("odd", in: source, range: 19..<21).excerpt == """
        graph.json:3:8: error: odd
          3 |   "b": 22
            |        ^~
        """)
  }

  @Test("of a line longer than anybody writes nothing is shown")
  func longLine() {
    for (count, isShown) in [(Problem.maxExcerptLineBytes, true), (Problem.maxExcerptLineBytes + 1, false)] {
      let source = SourceFile(name: "a.json", text: String(repeating: "x", count: count))
      #expect(Problem("odd", in: source, range: 2..<3).excerpt.contains("\n") == isShown)
    }
  }

  @Test("the first hundred problems are shown with their lines, the others in a line each")
  func manyExcerpts() {
    let problems = Problems((0..<150).map { Problem("odd \($0)", in: source, range: 9..<10) })
    let lines = problems.rendered(excerpts: true).split(separator: "\n")
    #expect(lines.count == 100 * 3 + 50 + 1)
    #expect(lines.last == "150 errors")
  }

  @Test("the excerpt at the end of the file marks the place behind it")
  func excerptAtEnd() {
    let source = SourceFile(name: "a.json", text: "[1")
    #expect(
      Problem("odd", in: source, range: 2..<2).excerpt == """
        a.json:1:3: error: odd
          1 | [1
            |   ^
        """)
  }

  @Test("a range over several lines is marked to the end of its first")
  func excerptOverLines() {
    #expect(
      Problem("odd", in: source, range: 4..<22).excerpt == """
        graph.json:2:3: error: odd
          2 |   "a": 1,
            |   ^~~~~~~
        """)
  }

  @Test("the caret stands right behind tabs, wide characters and combining marks")
  func excerptWidths() {
    let source = SourceFile(name: "a.json", text: "\t\"界e\u{301}\": x")
    let offset = Array(source.bytes).firstIndex(of: UInt8(ascii: "x"))!
    #expect(
      Problem("odd", in: source, range: offset..<offset + 1).excerpt
        == "a.json:1:9: error: odd\n  1 |  \"界e\u{301}\": x\n    |         ^")
  }

  @Test("a long line is cut around the place")
  func excerptOfLongLine() {
    let text = String(repeating: "é", count: 300) + "x" + String(repeating: "ü", count: 300)
    let problem = Problem("odd", in: SourceFile(name: "a.json", text: text), range: 600..<601)
    let lines = problem.excerpt.split(separator: "\n")
    #expect(lines[0] == "a.json:1:301: error: odd")
    #expect(
      lines[1] == "  1 | …" + String(repeating: "é", count: 40) + "x" + String(repeating: "ü", count: 59)
        + "…")
    #expect(lines[2] == "    | " + String(repeating: " ", count: 41) + "^")
  }

  @Test("control characters of the source are replaced in the excerpt")
  func excerptOfControls() {
    let source = SourceFile(name: "a.json", text: "\u{1B}[2Jx")
    #expect(Problem("odd", in: source, range: 4..<5).excerpt.contains("| \u{FFFD}[2Jx\n"))
  }
}

@Suite("gathered problems")
struct ProblemsTests {
  private let first = SourceFile(name: "a.json", text: "{\n}\n")
  private let second = SourceFile(name: "b.json", text: "{\n}\n")

  private var mixed: Problems {
    var problems = Problems()
    problems.append(Problem("four", severity: .warning, in: second, range: 0..<1))
    problems.append(Problem("three", in: first, range: 2..<3))
    problems.append(Problem("two", severity: .warning, in: first, range: 0..<1))
    problems.append(Problem("one", in: first, range: 0..<1))
    problems.append(Problem("zero"))
    return problems
  }

  @Test("they are reported by file, then place, then severity, and counted")
  func order() {
    #expect(
      mixed.rendered() == """
        error: zero
        a.json:1:1: error: one
        a.json:1:1: warning: two
        a.json:2:1: error: three
        b.json:1:1: warning: four
        3 errors, 2 warnings
        """)
    #expect(mixed.description == mixed.rendered())
  }

  @Test("the count line knows one from many and leaves out what is not there")
  func counts() {
    let error = Problem("one", in: first)
    let warning = Problem("two", severity: .warning, in: first)
    #expect(Problems([error]).rendered().hasSuffix("\n1 error"))
    #expect(Problems([warning]).rendered().hasSuffix("\n1 warning"))
    #expect(Problems([error, warning]).rendered().hasSuffix("\n1 error, 1 warning"))
    #expect(Problems().rendered() == "")
  }

  @Test("warnings alone refuse nothing")
  func severity() {
    #expect(!Problems().hasErrors)
    #expect(!Problems([Problem("two", severity: .warning)]).hasErrors)
    #expect(mixed.hasErrors)
    #expect(Problems().isEmpty)
    #expect(!Problems([Problem("two", severity: .warning)]).isEmpty)
  }

  @Test("a problem found twice is reported once")
  func repeats() {
    var problems = mixed
    problems.append(contentsOf: mixed)
    #expect(problems.rendered() == mixed.rendered())
    // The same words elsewhere are another problem.
    problems.append(Problem("one", in: second, range: 0..<1))
    #expect(problems.sorted.count == 6)
  }

  @Test("excerpts stand between the problems")
  func excerpts() {
    #expect(
      Problems([Problem("one", in: first, range: 0..<1)]).rendered(excerpts: true)
        == "a.json:1:1: error: one\n  1 | {\n    | ^\n1 error")
  }

  @Test("tools get them as JSON")
  func json() {
    let path = JSONPath([.key("nodes"), .index(2)])
    let problems = Problems([
      Problem("odd", in: first, range: 0..<3, path: path, hint: "mend it"),
      Problem("no file", severity: .warning),
    ])
    #expect(
      problems.json() == """
        {"problems":[{"severity":"warning","code":"other","text":"no file"},\
        {"severity":"error","code":"other","text":"odd","hint":"mend it","path":"nodes[2]",\
        "file":"a.json","line":1,"column":1,"endLine":2,"endColumn":2}],"errors":1,"warnings":1}
        """)
    #expect(Problems().json() == #"{"problems":[],"errors":0,"warnings":0}"#)
  }
}
