import MillraceDialog
import MillraceDoubles
import MillraceJSON
import Testing

@testable import MillraceRunner

@Suite("The report of a double") struct DoubleReportTests {
  @Test("has the violations that were kept, and the number of all violations")
  func violations() throws {
    var seen = DoubleReport()
    seen.connections = 3
    for index in 0..<1_234 { seen.add(Violation("noKey", "\(index)")) }
    let json = try JSONValue(parsing: seen.json)
    #expect(json["connections"]?.double == 3)
    #expect(json["violationCount"]?.double == 1_234)
    #expect(json["violations"]?.array?.count == 1_000 && json["violations"]?.array?.first == "noKey: 0")
  }
}
