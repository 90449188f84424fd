import MillraceBailian
import MillraceBailianDouble
import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceWebSocket
import MillraceWebSocketDouble
import Testing

@Suite("Service nodes beside their doubles", .serialized, .timeLimit(.minutes(30))) struct ConformanceTests {
  private func catalogue() -> Catalogue {
    var catalogue = Catalogue.bailian
    catalogue.add(contentsOf: .wires)
    return catalogue
  }

  /// A few of each kind: all of them are `make test-nodes`, and the heap is measured there, where nothing else is at work.
  @Test(
    "a dialogue, a refusal, a loss, an interruption and a stop go as they have to",
    arguments: [
      "dialogue", "wrong key", "drop at midway", "malformed at thinking", "unknown at thinking",
      "interrupted responding", "stopped thinking",
    ])
  func cases(name: String) async {
    for double in [BailianConformance.self, BackendDouble.self] as [any ServiceDouble.Type] {
      let results = await Conformance(double, catalogue: catalogue()).run([name])
      #expect(results.map(\.outcome) == [.passed], "\(double.traits.nodeType): \(results)")
    }
  }

  @Test("a node whose graph is refused fails its case in words")
  func refused() async {
    let results = await Conformance(BackendDouble.self, catalogue: Catalogue()).run(["dialogue"])
    #expect(results.first?.outcome == .failed)
    #expect(results.first?.findings.first?.hasPrefix("the node's graph is refused") == true)
  }

  @Test("a case that a double cannot play is left out, and says why")
  func leftOut() async {
    let results = await Conformance(BackendDouble.self, catalogue: catalogue()).run(["voice"])
    #expect(results.map(\.outcome) == [.leftOut] && results.first?.seen == "no voice is heard")
  }

  @Test("what never comes fails the case with what was waited for, and not the kit")
  func impatient() async {
    var conformance = Conformance(MuteService.self, catalogue: catalogue())
    conformance.patience = 0.1
    let results = await conformance.run(["dialogue"])
    #expect(results.first?.outcome == .failed)
    #expect(results.first?.findings == ["listening did not come in 0 s"])
  }
}

/// Never says a word, whatever the case asks of it.
private final class MuteService: ServiceDouble {
  static let traits = BailianConformance.traits
  private let service: BailianConformance

  private init(_ service: BailianConformance) { self.service = service }

  static func start(_ script: ServiceScript) async throws -> MuteService {
    var script = script
    script.isMute = true
    return MuteService(try await BailianConformance.start(script))
  }

  var parameters: [JSONValue.Member] { service.parameters }
  var seen: ServiceSight { service.seen }
  func stop() { service.stop() }
}
