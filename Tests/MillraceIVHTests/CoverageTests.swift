import Foundation
import Testing

@testable import MillraceIVH

@Suite("the page on what the vendor documents") struct CoverageTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
  private static let page = folder.deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Documentation/ivh-coverage.md")

  private static func lines() throws -> [Substring] {
    try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
  }

  @Test("every test it names exists")
  func tests() throws {
    var tests: Set<String> = []
    for file in try FileManager.default.contentsOfDirectory(at: Self.folder, includingPropertiesForKeys: nil)
    where file.pathExtension == "swift" {
      var suite = ""
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        if let match = line.firstMatch(of: /(?:struct|extension) (\w+Tests)\b/) { suite = String(match.1) }
        if let match = line.firstMatch(of: /^  func (\w+)\(/) { tests.insert("\(suite).\(match.1)") }
      }
    }
    let named = try Self.lines().flatMap { $0.matches(of: /\b(\w+Tests)\.(\w+)/).map { "\($0.1).\($0.2)" } }
      .filter { $0 != "CoverageTests.swift" }
    #expect(Set(named).count > 20)
    #expect(Set(named).subtracting(tests).sorted() == [])
  }

  @Test("it lists every code")
  func codes() throws {
    let listed = try Self.lines().compactMap { line in
      line.firstMatch(of: /^\| (−?)(\d{6}) \|/).map { ($0.1.isEmpty ? 1 : -1) * (Int($0.2) ?? 0) }
    }
    #expect(listed.sorted() == IVHFault.knownCodes)
  }
}
