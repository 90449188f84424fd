import MillraceBailian
import MillraceBailianDouble
import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceIVH
import MillraceIVHDouble
import MillraceJSON
import MillraceTuya
import MillraceTuyaDouble
import MillraceWebSocket
import MillraceWebSocketDouble
import Testing

@Suite("service nodes and their doubles", .serialized, .timeLimit(.minutes(30))) struct ConformanceTests {
  private func catalogue() -> Catalogue {
    var catalogue = Catalogue.bailian
    catalogue.add(contentsOf: .ivh)
    catalogue.add(contentsOf: .tuya)
    catalogue.add(contentsOf: .webSocket)
    return catalogue
  }

  /// Some cases of each kind: `make test-nodes` runs all of them, and measures the heap, where nothing else is running.
  @Test(
    "a dialogue, a refusal, a loss, an interruption and a stop conform",
    arguments: [
      "dialogue", "wrong key", "drop at midway", "malformed at thinking", "unknown at thinking",
      "interrupted responding", "stopped thinking",
    ])
  func cases(name: String) async {
    for double in [
      BailianConformance.self, IVHConformance.self, TuyaConformance.self, BackendDouble.self,
    ]
      as [any ServiceDouble.Type]
    {
      let results = await Conformance(double, catalogue: catalogue()).run([name])
      #expect(results.map(\.outcome) == [.passed], "\(double.traits.nodeType): \(results)")
    }
  }

  @Test(
    "bailian.dialog answers every command with an id, also one that the dialogue's end overtakes",
    arguments: ["answers", "answers at the end"])
  func answers(name: String) async {
    let results = await Conformance(BailianConformance.self, catalogue: catalogue()).run([name])
    #expect(results.map(\.outcome) == [.passed], "\(results)")
  }

  @Test("a node whose graph is not valid fails its case with a message")
  func refused() async {
    let results = await Conformance(BackendDouble.self, catalogue: Catalogue()).run(["dialogue"])
    #expect(results.first?.outcome == .failed)
    #expect(results.first?.findings.first?.hasPrefix("the node's graph is not valid") == true)
  }

  @Test("a case that a double does not support is left out, with the reason")
  func leftOut() async {
    let results = await Conformance(BackendDouble.self, catalogue: catalogue()).run(["voice"])
    #expect(
      results.map(\.outcome) == [.leftOut] && results.first?.seen == "the service does not detect speech")
  }

  @Test("a wait that times out fails the case with what it waited for")
  func impatient() async {
    var conformance = Conformance(MuteService.self, catalogue: catalogue())
    conformance.patience = 0.1
    let results = await conformance.run(["dialogue"])
    #expect(results.first?.outcome == .failed)
    #expect(results.first?.findings == ["no listening within 0 s"])
  }
}

/// A double that never answers, whatever the case requires.
private final class MuteService: ServiceDouble {
  static let traits = BailianConformance.traits
  private let service: BailianConformance

  private init(_ service: BailianConformance) { self.service = service }

  static func start(_ script: ServiceScript) async throws -> MuteService {
    var script = script
    script.isSilent = true
    return MuteService(try await BailianConformance.start(script))
  }

  var parameters: [JSONValue.Member] { service.parameters }
  var seen: ServiceReport { service.seen }
  func stop() { service.stop() }
}
