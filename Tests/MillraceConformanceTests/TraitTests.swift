import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

private enum Good: ParrotVariant {}
private enum Streaming: ParrotVariant { static var streams: Bool { true } }
private enum HearsWhileMuted: ParrotVariant { static var defect: ParrotDefect { .hearsWhileMuted } }
private enum Interrupts: ParrotVariant { static var defect: ParrotDefect { .interrupts } }
private enum LosesMedia: ParrotVariant { static var defect: ParrotDefect { .loses("media") } }
private enum RepeatsPeers: ParrotVariant { static var defect: ParrotDefect { .repeats("peer") } }
private enum LosesReason: ParrotVariant { static var defect: ParrotDefect { .loses("kicked") } }
private enum ConnectsAlone: ParrotVariant { static var defect: ParrotDefect { .connectsAlone } }
private enum KeepsOldKey: ParrotVariant { static var defect: ParrotDefect { .keepsOldKey } }
private enum LosesAnswers: ParrotVariant { static var defect: ParrotDefect { .loses("answer") } }
private enum RepeatsAnswers: ParrotVariant { static var defect: ParrotDefect { .repeats("answer") } }
private enum AnswersWithoutID: ParrotVariant { static var defect: ParrotDefect { .answersWithoutID } }
private enum TakesDoubles: ParrotVariant { static var defect: ParrotDefect { .takesDoubles } }
private enum ForgetsWaiting: ParrotVariant { static var defect: ParrotDefect { .forgetsWaiting } }
private enum IsLate: ParrotVariant {
  static var defect: ParrotDefect { .isLate }
  static var streams: Bool { true }
}

/// The cases for what only some services have, with a service within this process: one whose node is right, and ones with a defect each.
@Suite("traits of services", .serialized, .timeLimit(.minutes(30))) struct TraitTests {
  private func run(
    _ double: any ServiceDouble.Type, _ name: String, patience: Double = 60
  ) async -> ConformanceResult? {
    var catalogue = Catalogue()
    catalogue.add(ParrotNode.self)
    var conformance = Conformance(double, catalogue: catalogue)
    conformance.patience = patience
    return await conformance.run([name]).first
  }

  @Test(
    "a node that honours what its service reports conforms",
    arguments: [
      "dialogue", "voice", "gate muted", "gate uninterruptible", "media", "kicked, replaced",
      "kicked, removed",
      "kicked, ended", "key expires soon", "participants", "shared connection", "answers",
      "answers at the end",
    ])
  func good(name: String) async {
    let result = await run(ParrotDouble<Good>.self, name)
    #expect(result?.outcome == .passed, "\(name): \(String(describing: result))")
  }

  @Test("a service whose replies are a stream conforms without audio at the node")
  func stream() async {
    for name in ["reply as a stream", "dialogue"] {
      let result = await run(ParrotDouble<Streaming>.self, name)
      #expect(result?.outcome == .passed, "\(name): \(String(describing: result))")
    }
  }

  @Test("a defect of the node is found by the case of its trait, with a message")
  func defects() async {
    let defects: [(any ServiceDouble.Type, String, String)] = [
      (
        ParrotDouble<HearsWhileMuted>.self, "gate muted",
        "completeSpeech: the user spoke 8000 samples that are not silence, and 16000 reached the service"
      ),
      (
        ParrotDouble<Interrupts>.self, "gate uninterruptible",
        "uninterrupted: a reply was interrupted 1 times"
      ),
      (
        ParrotDouble<LosesMedia>.self, "media", "reported: media was not posted"
      ),
      (
        ParrotDouble<RepeatsPeers>.self, "participants",
        "reported: posted were peer, peer, peer, peer instead of peer, peer"
      ),
      (ParrotDouble<LosesReason>.self, "kicked, ended", "reported: kicked was not posted"),
      (
        ParrotDouble<ConnectsAlone>.self, "shared connection",
        "refusal: the node connected 2 times, at most 1 were allowed"
      ),
      (
        ParrotDouble<IsLate>.self, "reply as a stream",
        "streams: a reply began before the address of its stream was posted"
      ),
      (
        ParrotDouble<LosesAnswers>.self, "answers",
        "answers: commands with the id \"question\": 1, and answers to it: 0"
      ),
      (
        ParrotDouble<RepeatsAnswers>.self, "answers",
        "answers: commands with the id \"invalid\": 1, and answers to it: 2"
      ),
      (
        ParrotDouble<AnswersWithoutID>.self, "answers",
        "answers: commands with the id \"none\": 0, and answers to it: 2"
      ),
      (
        ParrotDouble<TakesDoubles>.self, "answers at the end",
        "answers: commands with the id \"waiting\": 2, and answers to it: 1"
      ),
      (
        ParrotDouble<ForgetsWaiting>.self, "answers at the end",
        "answers: commands with the id \"waiting\": 2, and answers to it: 1"
      ),
    ]
    for (double, name, finding) in defects {
      let result = await run(double, name)
      #expect(result?.outcome == .failed, "\(name)")
      #expect(result?.findings.contains(finding) == true, "\(name): \(String(describing: result?.findings))")
    }
  }

  @Test("a node that does not do what the case waits for fails with what is missing")
  func missing() async {
    let keeps = await run(ParrotDouble<KeepsOldKey>.self, "key expires soon", patience: 60)
    #expect(keeps?.findings == ["no renewal of the key within 60 s"])
  }

  @Test("a case is skipped for a service without the trait, with the reason")
  func skipped() async {
    let reasons = [
      "gate muted": "the service does not mute the microphone",
      "gate uninterruptible": "the service does not protect its replies",
      "media": "the service sends nothing to display",
      "kicked, other": "the service does not state this reason",
      "key expires soon": "the service does not announce that a key expires",
      "participants": "the service has no other participants",
      "reply as a stream": "replies are not a stream",
      "shared connection": "nodes do not share connections",
      "answers": "the node answers no commands",
    ]
    for (name, reason) in reasons {
      let result = await run(PlainParrot.self, name)
      #expect(result?.outcome == .leftOut && result?.seen == reason, "\(name): \(String(describing: result))")
    }
  }
}

/// A parrot without any trait.
private final class PlainParrot: ServiceDouble {
  static var traits: ServiceTraits {
    var traits = ServiceTraits(nodeType: "test.parrot", vendor: "parrot", key: ParrotService.key)
    traits.faults = [.kick: [.listening]]
    return traits
  }
  static func start(_ script: ServiceScript) async throws -> PlainParrot { PlainParrot() }
  var parameters: [JSONValue.Member] { [] }
  var seen: ServiceReport { ServiceReport() }
  func stop() {}
}
