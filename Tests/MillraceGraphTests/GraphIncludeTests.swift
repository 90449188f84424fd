import Foundation
import MillraceCore
import MillraceGraph
import Testing

@Suite("Included graphs")
struct GraphIncludeTests {
  /// Writes files into a folder of their own and loads one of them; the folder's name is taken out of problems.
  private static func load(_ files: [String: String], _ name: String) throws -> Result<GraphPlan, Problems> {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "millrace-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    for (name, text) in files {
      let file = folder.appendingPathComponent(name)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: file)
    }
    do throws(Problems) {
      return .success(
        try Graph.load(
          path: folder.appendingPathComponent(name).path, settings: GraphSettings(environment: .values([:])),
          contracts: TestCatalogue.contracts))
    } catch {
      return .failure(error)
    }
  }

  private static let encode = """
    { "millrace": 1,
      "parameters": { "bitrate": { "default": 24000 }, "file": { "default": "inner.wav" } },
      "nodes": {
        "enc": { "type": "opus.encode", "bitrate": "${bitrate}" },
        "down": { "type": "audio.resample", "rate": 16000 },
        "meter": { "type": "audio.level" },
        "copy": { "type": "audio.write", "path": "${file}" }
      },
      "links": [ "down -> meter -> enc", "down -> copy" ],
      "expose": { "in": "down", "out": "enc.out", "loudness": "meter.events" } }
    """

  @Test("values that every include repeats do not grow beyond all bounds", arguments: ["text", "list"])
  func repeatedValues(kind: String) throws {
    let once = kind == "text" ? #""${a}${a}${a}${a}${a}${a}${a}${a}${a}${a}${a}${a}${a}${a}${a}${a}""# : nil
    let many = once ?? "[" + Array(repeating: #""${a}""#, count: 16).joined(separator: ",") + "]"
    func graph(_ next: Int) -> String {
      """
      { "millrace": 1, "parameters": { "a": { "default": "0123456789abcdef" } },
        "nodes": { "deep": { "type": "graph", "path": "g\(next).json", "set": { "a": \(many) } } } }
      """
    }
    // Sixteen times more in each of ten files would be 17 TB.
    var files = Dictionary(uniqueKeysWithValues: (0..<10).map { ("g\($0).json", graph($0 + 1)) })
    files["g10.json"] = #"{ "millrace": 1, "parameters": { "a": {} }, "nodes": {} }"#
    guard case .failure(let problems) = try Self.load(files, "g0.json") else {
      Issue.record("17 TB were taken")
      return
    }
    let text = "the values substituted for ${…} exceed 16 MiB in total"
    #expect(problems.sorted.count { $0.text == text } == 1)
  }

  @Test("nodes of an included graph carry the including node's name, its ports stand for exposed ones")
  func exposedPorts() throws {
    let main = """
      { "millrace": 1,
        "nodes": {
          "mic": { "type": "audio.read", "path": "a.wav" },
          "left": { "type": "graph", "path": "parts/encode.json", "set": { "bitrate": 12000, "file": "outer.wav" },
                    "onError": "isolate" },
          "right": { "type": "graph", "path": "parts/encode.json" },
          "a": { "type": "ogg.write", "path": "a.opus" },
          "b": { "type": "ogg.write", "path": "b.opus" },
          "log": { "type": "event.log", "path": "e.jsonl" }
        },
        "links": [ "mic -> left -> a", "mic -> right.in", "right.out -> b", "left.loudness -> log.in1" ] }
      """
    let plan = try Self.load(["main.json": main, "parts/encode.json": Self.encode], "main.json").get()
    #expect(
      Set(plan.linkNames) == [
        "left.down -> left.meter", "left.meter -> left.enc", "left.down -> left.copy",
        "right.down -> right.meter", "right.meter -> right.enc", "right.down -> right.copy",
        "mic -> left.down", "left.enc -> a", "mic -> right.down", "right.enc -> b",
        "left.meter.events -> log.in1",
      ])
    #expect(plan.node("left.enc")?.parameters.integer("bitrate") == 12_000)
    #expect(plan.node("right.enc")?.parameters.integer("bitrate") == 24_000)
    #expect(plan.node("left.enc")?.onError == .isolate)
    #expect(plan.node("right.enc")?.onError == .stop)
    let outer = try #require(plan.node("left.copy")?.parameters.string("path"))
    let inner = try #require(plan.node("right.copy")?.parameters.string("path"))
    #expect(outer.hasSuffix("/outer.wav") && !outer.contains("/parts/"))
    #expect(inner.hasSuffix("/parts/inner.wav"))
    #expect(plan.warnings.isEmpty)
  }

  @Test("without a choice of its own a graph exposes every port it leaves open")
  func openPorts() throws {
    let part = """
      { "millrace": 1,
        "nodes": { "aec": { "type": "audio.echoCancel" }, "enc": { "type": "opus.encode" } },
        "links": [ "aec -> enc" ] }
      """
    let middle = """
      { "millrace": 1, "nodes": { "up": { "type": "graph", "path": "part.json" }, "gain": { "type": "audio.gain" } },
        "links": [ "gain -> up.near" ] }
      """
    let main = """
      { "millrace": 1,
        "nodes": {
          "mic": { "type": "audio.read", "path": "a16k.wav" }, "far": { "type": "audio.read", "path": "b16k.wav" },
          "bot": { "type": "graph", "path": "middle.json" }, "out": { "type": "ogg.write", "path": "a.opus" }
        },
        "links": [ "mic -> bot.in", "far -> bot.reference", "bot -> out" ] }
      """
    let plan = try Self.load(["main.json": main, "middle.json": middle, "part.json": part], "main.json").get()
    #expect(
      Set(plan.linkNames) == [
        "mic -> bot.gain", "bot.gain -> bot.up.aec.near", "bot.up.aec -> bot.up.enc",
        "far -> bot.up.aec.reference",
        "bot.up.enc -> out",
      ])
  }

  @Test("a problem inside an included file names that file and its line")
  func problemsInside() throws {
    let part = """
      { "millrace": 1,
        "nodes": {
          "enc": { "type": "opus.encode",
                   "bitrate": 1 } } }
      """
    let main = """
      { "millrace": 1,
        "nodes": { "mic": { "type": "audio.read", "path": "a.wav" }, "up": { "type": "graph", "path": "part.json" },
                   "bin": { "type": "flow.null" } },
        "links": [ "mic -> up -> bin" ] }
      """
    guard case .failure(let problems) = try Self.load(["main.json": main, "part.json": part], "main.json")
    else {
      Issue.record("the graph was accepted")
      return
    }
    let problem = try #require(problems.sorted.first)
    #expect(problems.sorted.count == 1)
    #expect(problem.source?.name.hasSuffix("/part.json") == true)
    #expect(problem.position?.line == 4)
    #expect(problem.path.description == "nodes.enc.bitrate")
  }

  @Test("includes end at sixteen levels")
  func depth() throws {
    var files: [String: String] = [:]
    for level in 0..<20 {
      files["\(level).json"] = """
        { "millrace": 1, "nodes": { "next": { "type": "graph", "path": "\(level + 1).json" } } }
        """
    }
    guard case .failure(let problems) = try Self.load(files, "0.json") else {
      Issue.record("the graph was accepted")
      return
    }
    #expect(problems.sorted.map(\.text) == ["includes are nested more than 16 levels deep"])
    #expect(problems.sorted.first?.source?.name.hasSuffix("/16.json") == true)
  }

  @Test("a graph that doubles with every include is refused once, not built")
  func doubling() throws {
    var files = ["16.json": #"{ "millrace": 1, "nodes": { "meter": { "type": "audio.level" } } }"#]
    for level in 0..<16 {
      let next = #"{ "type": "graph", "path": "\#(level + 1).json" }"#
      files["\(level).json"] = #"{ "millrace": 1, "nodes": { "a": \#(next), "b": \#(next) } }"#
    }
    guard case .failure(let problems) = try Self.load(files, "0.json") else {
      Issue.record("the graph was accepted")
      return
    }
    let outgrown = problems.sorted.filter {
      $0.text == "the graph has more than 100000 nodes and included graphs"
    }
    #expect(outgrown.count == 1)
    #expect(outgrown.first?.hint == "include fewer graphs, or run parts of it as separate graphs")
  }

  @Test("a plan knows the files it was read from, an included one once; text and Swift have none")
  func files() throws {
    let part = #"""
      { "millrace": 1, "nodes": { "meter": { "type": "audio.level" } }, "expose": { "in": "meter", "out": "meter.out" } }
      """#
    let graph = #"""
      { "millrace": 1,
        "nodes": {
          "tone": { "type": "audio.tone" },
          "a": { "type": "graph", "path": "part.json" }, "b": { "type": "graph", "path": "./part.json" },
          "end": { "type": "audio.write", "path": "out.wav" } },
        "links": [ "tone -> a -> b -> end" ] }
      """#
    let plan = try Self.load(["graph.json": graph, "part.json": part], "graph.json").get()
    let names = plan.files.map { $0.split(separator: "/").last.map(String.init) ?? "" }
    #expect(names == ["graph.json", "part.json"])
    let text = try Graph.load(
      SourceFile(name: "text", text: Self.alone), settings: GraphSettings(environment: .values([:])),
      contracts: TestCatalogue.contracts)
    #expect(text.files.isEmpty)
  }

  private static let alone = #"""
    { "millrace": 1, "nodes": { "tone": { "type": "audio.tone" }, "end": { "type": "audio.write", "path": "o.wav" } },
      "links": [ "tone -> end" ] }
    """#
}
