import MillraceCore
import MillraceGraph
import Testing

@Suite("Capacity and policy of links")
struct LinkTermsTests {
  private static func plan(_ source: String, _ rest: String, _ links: String) throws(Problems) -> GraphPlan {
    try GraphBench.plan(
      "{ \"millrace\": 1, \"nodes\": { \"mic\": { \(source) }, \(rest) }, \"links\": [ \(links) ] }")
  }

  private static let file = "\"type\": \"audio.read\", \"path\": \"a.wav\""
  private static let bin = "\"bin\": { \"type\": \"flow.null\" }"

  @Test("nodes behind a file that waits for them may take as long as they like")
  func budgetBehindAFile() {
    func words(_ pace: Bool) -> String {
      GraphBench.words(
        """
        { "millrace": 1, "nodes": { "mic": { \(Self.file), "pace": \(pace) }, "enc": { "type": "opus.encode",
          "budget": 30000 }, \(Self.bin) }, "links": [ "mic -> enc -> bin" ] }
        """)
    }
    #expect(words(false).isEmpty)
    #expect(words(true).contains("the nodes on lane \"voice\" can use 150 % of a worker"))
  }

  @Test("behind a file, links make the writer wait")
  func behindAFile() throws {
    let plan = try Self.plan(
      Self.file,
      """
      "meter": { "type": "audio.level" }, "log": { "type": "event.log", "path": "e.jsonl" },
      "cam": { "type": "video.read", "path": "a.mp4" }, "none": { "type": "flow.null" }, \(Self.bin)
      """,
      "\"mic -> meter -> bin\", \"meter.events -> log.in1\", \"cam -> none\"")
    #expect(plan.links.map(\.policy) == [.block, .block, .block, .block])
    #expect(plan.links.map(\.limit) == [16, 16, 64, 4])
    #expect(plan.nodes.allSatisfy { $0.pacing == .waits })
  }

  @Test("behind a paced file or a microphone, old audio goes, the latest picture and the first events stay")
  func behindAClock() throws {
    for source in [Self.file + ", \"pace\": true", "\"type\": \"audio.capture\""] {
      let plan = try Self.plan(
        source,
        """
        "short": { "type": "audio.convert", "frame": 7 },
        "meter": { "type": "audio.level" }, "log": { "type": "event.log", "path": "e.jsonl" },
        "cam": { "type": "video.read", "path": "a.mp4", "pace": true }, "none": { "type": "flow.null" }, \(Self.bin)
        """,
        "\"mic -> short -> meter -> bin\", \"meter.events -> log.in1\", \"cam -> none\"")
      #expect(plan.links.map(\.policy) == [.dropOldest, .dropOldest, .dropOldest, .dropNewest, .latest])
      // 200 ms are 10 packets of 20 ms and 29 of 7 ms.
      #expect(plan.links.map(\.limit) == [10, 29, 29, 64, 1])
    }
  }

  @Test("the most urgent driving input decides the pace, an accompanying one does not")
  func pacing() throws {
    let plan = try Self.plan(
      "\"type\": \"audio.read\", \"path\": \"a16k.wav\"",
      """
      "far": { "type": "audio.tone", "rate": 16000 }, "aec": { "type": "audio.echoCancel" },
      "mix": { "type": "audio.mix" }, \(Self.bin)
      """,
      "\"mic -> aec.near -> mix.in1\", \"far -> aec.reference\", \"far -> mix.in2\", \"mix -> bin\"")
    #expect(plan.node("aec")?.pacing == .waits)
    #expect(plan.node("mix")?.pacing == .paced)
    #expect(plan.link("aec -> mix.in1")?.policy == .block)
    #expect(plan.link("mix -> bin")?.policy == .dropOldest)
  }

  @Test(
    "times become whole packets, at least one",
    arguments: [
      ("\"20ms\"", 1), ("\"21 ms\"", 2), ("\"1ms\"", 1), ("\"1.5s\"", 75), ("12", 12), ("\"0.06s\"", 3),
      ("\"60s\"", 3_000),
    ])
  func times(_ capacity: String, _ packets: Int) throws {
    let plan = try Self.plan(
      Self.file, Self.bin, "{ \"from\": \"mic\", \"to\": \"bin\", \"capacity\": \(capacity) }")
    #expect(plan.links[0].limit == packets)
    #expect(plan.links[0].policy == .block)
  }

  @Test("a graph may say otherwise", arguments: LinkPolicy.allCases)
  func ownPolicy(_ policy: LinkPolicy) throws {
    let plan = try Self.plan(
      Self.file, Self.bin,
      "{ \"from\": \"mic\", \"to\": \"bin\", \"capacity\": 3, \"whenFull\": \"\(policy.rawValue)\" }")
    #expect(plan.links[0].policy == policy)
    #expect(plan.links[0].limit == (policy == .latest ? 1 : 3))
  }

  @Test("a paced source may be held back when the graph says so")
  func blockBehindAPacedFile() throws {
    let plan = try Self.plan(
      Self.file + ", \"pace\": true", Self.bin,
      "{ \"from\": \"mic\", \"to\": \"bin\", \"whenFull\": \"block\" }")
    #expect(plan.links[0].policy == .block)
  }
}
