import MillraceCore
import Testing

@testable import MillraceGraph

@Suite("Graphs with thousands of problems")
struct ManyProblemsTests {
  private func problems(_ text: String) throws(Problems) -> Problems {
    let source = SourceFile(name: "many.json", text: text)
    do throws(Problems) {
      _ = try Graph.load(source, settings: GraphSettings(), contracts: TestCatalogue.contracts)
      return Problems()
    } catch {
      return error
    }
  }

  @Test("the first thousand are reported, and the number of the others")
  func firstThousand() throws {
    let links = (0..<1_500).map { #""mic -> nobody\#($0)""# }.joined(separator: ",\n")
    let found = try problems(
      #"{ "millrace": 1, "nodes": { "mic": { "type": "audio.read", "path": "a.wav" } }, "links": [ \#(links) ] }"#
    )
    let told = found.sorted
    #expect(told.count == Problems.maxReported + 1)
    #expect(told.first?.text == #"unknown node "nobody0""#)
    #expect(told.last?.text == "500 more problems are not shown")
    #expect(told.last?.hint == "fix these first")
  }

  @Test("have their errors told, however many warnings stand before them")
  func errorsFirst() {
    let source = SourceFile(name: "many.json", text: String(repeating: "x", count: 2_000))
    var all = Problems((0..<1_500).map { Problem("odd", severity: .warning, in: source, range: $0..<$0 + 1) })
    all.append(Problem("wrong", in: source, range: 1_800..<1_801))
    let told = all.redacting(Secrets(), writtenAt: []).sorted
    #expect(told.count == Problems.maxReported + 1)
    #expect(told.count { $0.severity == .error } == 1)
    #expect(
      told.contains { $0.text == "wrong" } && told.contains { $0.text == "501 more problems are not shown" })
  }

  @Test("guess what was meant for the first names only, and take none for unused that a later name may mean")
  func guesses() throws {
    let nodes = (0..<60).map { #""microphone\#($0)": { "type": "audio.read", "path": "a.wav" }"# }
    let links = (0..<60).map { #""microphome\#($0) -> x""# }
    let found = try problems(
      #"{ "millrace": 1, "nodes": { \#(nodes.joined(separator: ",")) }, "links": [ \#(links.joined(separator: ",")) ] }"#
    )
    let guessed = found.sorted.filter { $0.hint?.hasPrefix("did you mean \"microphone") == true }
    #expect(!guessed.isEmpty && guessed.count <= GraphDraft.maxSuggestions)
    #expect(found.sorted.allSatisfy { $0.text.hasPrefix("unknown node") })
  }
}
