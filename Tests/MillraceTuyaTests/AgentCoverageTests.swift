import Foundation
import MillraceTuya
import Testing

@Suite("the page on what Tuya documents") struct AgentCoverageTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
  private static let page = folder.deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Documentation/tuya-coverage.md")

  private static func lines() throws -> [Substring] {
    try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
  }

  @Test("every suite and test it names exists")
  func tests() throws {
    var tests: Set<String> = []
    for file in try FileManager.default.contentsOfDirectory(at: Self.folder, includingPropertiesForKeys: nil)
    where file.pathExtension == "swift" {
      var suite = ""
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        if let match = line.firstMatch(of: /(?:struct|extension) (\w+Tests)\b/) {
          suite = String(match.1)
          tests.insert(suite)
        }
        if let match = line.firstMatch(of: /^  func (\w+)\(/) { tests.insert("\(suite).\(match.1)") }
      }
    }
    let named = try Self.lines().filter { $0.hasPrefix("|") }.flatMap { line in
      line.matches(of: /\b(\w+Tests)(?:\.(\w+))?/).map { match in
        match.2.map { "\(match.1).\($0)" } ?? String(match.1)
      }
    }
    #expect(Set(named).count > 40)
    #expect(Set(named).subtracting(tests).sorted() == [])
  }

  @Test("it lists every code, and every status with a meaning of its own")
  func codes() throws {
    let listed = try Self.lines().compactMap { line in
      line.firstMatch(of: /^\| (\d{3,5}) \|/).flatMap { Int($0.1) }
    }
    let codes = TuyaErrorCode.allCases.map(\.rawValue)
    #expect(listed.filter { $0 > 10_000 }.sorted() == codes.sorted())
    let statuses = [200, 400, 401, 404, 408, 500, 504, 601, 602, 603, 604, 605, 607, 1_001]
    #expect(listed.filter { $0 < 10_000 }.sorted() == statuses)
  }
}
