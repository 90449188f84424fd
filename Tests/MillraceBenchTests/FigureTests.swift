import Foundation
import MillraceGraph
import Testing

@testable import MillraceBench

@Suite("Figures")
struct FigureTests {
  private let hop = Figure("hop", "one \"call\"", unit: "ns", goal: "<= 60", samples: [51, 47, 45])
  private let absent = Figure("hop", "one call", of: "gstreamer", skipped: "not installed: make bench-peers")

  @Test("a figure is the median with the lowest and the highest, as one line of JSON")
  func json() {
    #expect(
      hop.json
        == #"{"suite":"hop","case":"one \"call\"","of":"millrace","value":47.0,"unit":"ns","low":45.0,"high":51.0,"runs":3}"#
    )
  }

  @Test("a missing peer keeps its row, which says how to get it")
  func missing() {
    #expect(
      absent.json
        == #"{"suite":"hop","case":"one call","of":"gstreamer","leftOut":"not installed: make bench-peers"}"#)
    let row = FigureTable(earlier: nil).row(absent)
    #expect(row.hasPrefix("hop         one call "))
    #expect(row.hasSuffix(" gstreamer     left out: not installed: make bench-peers"))
  }

  @Test("a suite with a missing requirement is skipped with the reason and does not fail; a failing one does")
  func suites() throws {
    let lacking = Suite(name: "dialogues", text: "50 voice dialogues") {
      throw MissingPiece(text: "install the package espeak-ng")
    }
    let figures = try lacking.figures()
    #expect(figures.map(\.skipReason) == ["install the package espeak-ng"])
    #expect(
      FigureTable(earlier: nil).row(figures[0]).hasSuffix(
        " millrace      left out: install the package espeak-ng"))
    let failing = Suite(name: "hop", text: "") { throw MeasurementProblem("a node failed") }
    #expect(throws: MeasurementProblem.self) { try failing.figures() }
  }

  @Test("a program without peers says how to get them")
  func noPeers() {
    let figure = ofPeer("hop", "one call", unit: "ns", samples: [])
    #expect(figure.of == "gstreamer")
    #expect(figure.skipReason == "not in this program: make bench")
  }

  @Test("cells align with the titles of their columns")
  func rows() {
    let table = FigureTable(earlier: nil)
    let row = table.row(hop)
    for (title, text) in [
      ("case", "one"), ("of", "millrace"), ("median", "47"), ("low", "45"), ("goal", "<="),
    ] {
      #expect(table.header.range(of: title)?.lowerBound == row.range(of: text)?.lowerBound)
    }
  }

  @Test("with saved figures every row ends with the change, under its title")
  func compared() throws {
    let table = FigureTable(earlier: try SavedFigures(Array(hop.json.utf8), name: "kept"))
    let row = table.row(Figure("hop", "one \"call\"", unit: "ns", goal: "<= 60", samples: [20]))
    #expect(table.header.hasSuffix(" goal      then -> now"))
    #expect(row.hasSuffix(" <= 60     47.0 -> 20.0 ns, 0.426 x, lower"))
    #expect(table.header.range(of: "then")?.lowerBound == row.range(of: "47.0")?.lowerBound)
  }

  @Test(
    "numbers are shown with about three significant digits",
    arguments: [
      (0.12345, "0.123"), (1.2345, "1.23"), (9.996, "10.0"), (12.345, "12.3"), (99.96, "100.0"), (100, "100"),
      (1234.5, "1235"), (-12.345, "-12.3"), (0, "0.0"), (.nan, "-"), (.infinity, "-"),
    ])
  func places(value: Double, text: String) { #expect(short(value) == text) }

  @Test("the median of two is the upper one, and a share is met by the first number that it does not exceed")
  func shares() {
    #expect([1.0, 2].median == 2 && [1.0, 2, 3].median == 2 && [Double]().median.isNaN)
    let numbers = (0..<10).map(Double.init)
    #expect([0, 0.05, 0.1, 0.95, 1].map { numbers.percentile($0) } == [0, 0, 1, 9, 9])
    #expect([Double]().percentile(0.5).isNaN)
  }

  @Test("saved figures are read back unchanged")
  func saved() throws {
    let text = [Machine.current.json, hop.json, absent.json].joined(separator: "\n") + "\n"
    let saved = try SavedFigures(Array(text.utf8), name: "kept")
    #expect(saved.machine == Machine.current.model)
    #expect(saved.figures.map(\.json) == [hop.json, absent.json])
  }

  @Test("a value is called lower or higher only if the spreads do not touch")
  func change() throws {
    let kept = try SavedFigures(Array(hop.json.utf8), name: "kept")
    func now(_ samples: [Double], _ name: String = "one \"call\"") -> String {
      kept.change(to: Figure("hop", name, unit: "ns", samples: samples))
    }
    #expect(now([44, 46, 48]) == "47.0 -> 46.0 ns, 0.979 x")
    #expect(now([52, 94, 99]) == "47.0 -> 94.0 ns, 2.0 x, higher")
    #expect(now([20, 23.5, 44]) == "47.0 -> 23.5 ns, 0.5 x, lower")
    #expect(now([1], "another") == "new")
    #expect(kept.change(to: Figure("hop", "one \"call\"", of: "floor", unit: "ns", samples: [1])) == "new")
  }

  @Test(
    "a file of something else is refused with its line",
    arguments: [("{}", "not a figure"), ("ring 2 ns", "not JSON"), ("{\"suite\":\"hop\"}", "not a figure")])
  func strange(line: String, what: String) {
    let error = #expect(throws: MeasurementProblem.self) {
      _ = try SavedFigures(Array((hop.json + "\n" + line).utf8), name: "kept")
    }
    #expect(error?.description == "\"kept\" line 2 is \(what); compare with a file that --save wrote")
  }

  @Test(
    "a file without figures, left by an aborted measurement, is refused", arguments: [[], [1]])
  func noFigures(lines: [Int]) {
    let text = lines.map { _ in Machine.current.json + "\n" }.joined()
    let error = #expect(throws: MeasurementProblem.self) {
      _ = try SavedFigures(Array(text.utf8), name: "kept")
    }
    #expect(
      error?.description == "\"kept\" has no figures; compare with a file that --save wrote completely")
  }

  @Test("figures are not saved to a pipe, which would wait for a reader and cannot be rewritten")
  func savedToPipe() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try #require(mkfifo(folder + "/pipe", 0o600) == 0)
    let error = #expect(throws: MeasurementProblem.self) { try checkWritable(folder + "/pipe") }
    #expect(
      error?.description
        == "cannot write \"\(folder)/pipe\": it is a pipe, and the file is rewritten after every suite; name a regular file, or use --json"
    )
  }

  @Test("an unknown suite is refused before anything is measured")
  func unknownSuite() {
    var bench = Bench()
    bench.suites = ["ring", "rnig"]
    var lines: [String] = []
    let error = #expect(throws: MeasurementProblem.self) { try bench.run { lines.append($0) } }
    #expect(error?.description.hasPrefix("there is no suite \"rnig\"; there are ring, hop, ") == true)
    #expect(lines.isEmpty)
  }

  @Test("contestants take turns in starting a round, and the first round does not count")
  func turns() throws {
    var order = ""
    var time = 0.0
    func contestant(_ name: String) -> () throws -> Double {
      {
        order += name
        time += 1
        return time
      }
    }
    let measured = try inTurns(rounds: 2, [contestant("a"), contestant("b")])
    #expect(order == "abbaab")
    #expect(measured == [[4, 5], [3, 6]])
  }
}

extension String {
  fileprivate func range(of text: String) -> Range<Index>? { firstRange(of: text) }
}
