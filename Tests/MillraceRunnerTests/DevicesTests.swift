import MillraceGraph
import Testing

@Suite("The runner: devices", .timeLimit(.minutes(30)))
struct DevicesTests {
  @Test("microphones and loudspeakers are listed with the names that graphs use")
  func table() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("devices")
    }
    let words = output(of: result)
    #expect(words.contains("microphones\n") && words.contains("\nloudspeakers\n"))
    for name in ["file", "null"] {
      #expect(words.split(separator: "\n").count { $0.hasPrefix("  \(name) ") } == 2)
    }
  }

  @Test("the list as JSON has the same devices")
  func json() async throws {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("devices", "--json")
    }
    let root = try JSONDocument.scan(SourceFile(name: "devices", text: output(of: result))).root
    guard case .array(let devices) = root.value else {
      Issue.record("no array")
      return
    }
    #expect(devices.count >= 2)
  }
}
