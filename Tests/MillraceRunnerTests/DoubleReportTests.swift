import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceBailianDouble
@testable import MillraceRunner

@Suite("The report of a double") struct DoubleReportTests {
  @Test("has the violations that were kept, and the number of all violations")
  func violations() throws {
    var seen = BailianDouble.Report()
    seen.connections = 3
    seen.violations = [BailianDouble.Violation(name: "noKey", text: "there is none")]
    seen.violationCount = 1_234
    let json = try JSONValue(parsing: DoubleCommand.json(seen))
    #expect(json["connections"]?.double == 3)
    #expect(json["violationCount"]?.double == 1_234)
    #expect(json["violations"] == ["noKey: there is none"])
  }
}
