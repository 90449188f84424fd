import Foundation
import MillraceGraph
import Testing

/// Every file of `Tests/Graphs/Wrong` is refused, or warned about, with exactly the words that stand beside it.
@Suite("Wrong graphs")
struct WrongGraphTests {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Graphs/Wrong").path

  static let names: [String] = {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
  }()

  @Test("there are at least sixty wrong graphs")
  func thereAreEnough() {
    #expect(Self.names.count >= 60)
  }

  @Test("a wrong graph is refused with the expected messages", arguments: names)
  func isToldExactly(_ name: String) throws {
    let found = try Self.words(of: name)
    let file = "\(Self.folder)/\(name).txt"
    // MILLRACE_RECORD=1 writes what was found as what is expected, to be read before it is kept.
    if ProcessInfo.processInfo.environment["MILLRACE_RECORD"] != nil {
      try (found + "\n").write(toFile: file, atomically: true, encoding: .utf8)
      Issue.record("recorded \(name).txt")
      return
    }
    let expected = try String(contentsOfFile: file, encoding: .utf8)
    #expect(found + "\n" == expected)
  }

  private static func words(of name: String) throws -> String {
    let path = "\(folder)/\(name).json"
    let source = try SourceFile.read(path: path, named: "\(name).json")
    let settings = GraphSettings(
      environment: .values(["TOKEN": "hunter2", "RATE": "11025", "EMPTY": "", "FILE": "missing-hunter2.wav"]))
    let words: String
    do throws(Problems) {
      let plan = try Graph.load(source, settings: settings, contracts: TestCatalogue.contracts)
      words = Problems(plan.warnings).description
    } catch {
      words = error.description
    }
    // Included files are named by their path, which is another one on every machine.
    return words.replacingOccurrences(of: folder + "/", with: "")
  }
}
