import Testing

@testable import MillraceRunner

@Suite("Differences between lines")
struct LineDifferenceTests {
  private func difference(_ golden: [String], _ now: [String], tolerance: Double = 0) -> String? {
    LineDifference(golden: golden, now: now, tolerance: tolerance).text("line")
  }

  @Test("the first line that differs is reported with both versions, and with the counts when they differ")
  func first() {
    #expect(difference(["a", "b"], ["a", "b"]) == nil)
    #expect(difference(["a", "b", "c"], ["a", "x", "y"]) == "line 2 is x, golden b")
    #expect(difference(["a"], ["x", "y"]) == "line 1 is x, golden a; 2 lines, golden 1")
  }

  @Test("additional and missing lines at the end are reported")
  func ends() {
    #expect(difference(["a"], ["a", "b"]) == "line 2 is new: b; 2 lines, golden 1")
    #expect(difference(["a", "b"], ["a"]) == "line 2 is missing, golden b; 1 line, golden 2")
  }

  @Test("a long line is truncated after 200 characters")
  func long() {
    let line = String(repeating: "x", count: 200)
    #expect(difference([], [line]) == "line 1 is new: \(line); 1 line, golden 0")
    #expect(difference([], [line + "y"]) == "line 1 is new: \(line)…; 1 line, golden 0")
  }

  @Test("numbers in JSON lines may differ by the tolerance, and nothing else may")
  func tolerance() {
    let golden = #"{"level":-20.5,"at":[1,2],"name":"a"}"#
    func isSame(_ now: String, _ tolerance: Double = 0.5) -> Bool {
      difference([golden], [now], tolerance: tolerance) == nil
    }
    #expect(isSame(#"{"level":-20.0,"at":[1,2.5],"name":"a"}"#))
    #expect(!isSame(#"{"level":-20.0,"at":[1,2],"name":"a"}"#, 0.25))
    #expect(!isSame(#"{"level":-20.5,"at":[1,3],"name":"a"}"#))
    #expect(!isSame(#"{"level":-20.5,"at":[1,2],"name":"b"}"#))
    #expect(!isSame(#"{"level":-20.5,"at":[1,2]}"#))
    #expect(!isSame(#"{"level":"-20.5","at":[1,2],"name":"a"}"#))
    #expect(!isSame("no JSON"))
  }
}
