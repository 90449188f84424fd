import Millrace

/// The cost of loading: a large graph with all checks, and the JSON scanner alone.
enum CheckSuite {
  static func run() throws -> [Figure] {
    let graph = largeGraph(chains: 100)
    let document = Array(largeDocument(bytes: 2 << 20).utf8)
    var checks: [Double] = []
    var scans: [Double] = []
    for round in 0..<22 {
      let start = seconds()
      let plan = try plan(graph, named: "large.json")
      let checked = seconds()
      use(try JSONDocument.scan(SourceFile(name: "large.json", bytes: document)).root.range)
      let scanned = seconds()
      guard plan.nodes.count == 1_000 else {
        throw MeasurementProblem("the plan has \(plan.nodes.count) nodes")
      }
      if round == 0 { continue }
      checks.append((checked - start) * 1e3)
      scans.append((scanned - checked) * 1e3)
    }
    return [
      Figure(
        "check", "1000 nodes, 900 links, from bytes to plan", unit: "ms", goal: "<= 50", samples: checks),
      Figure("check", "JSON of 2 MiB, from bytes to document", unit: "ms", samples: scans),
    ]
  }

  /// A graph of chains, each of ten nodes of the standard catalogue.
  private static func largeGraph(chains: Int) -> String {
    let types = [
      #""type": "audio.tone", "rate": 48000, "channels": 1, "sample": "s16", "duration": 1000"#,
      #""type": "audio.gain", "gain": -3"#,
      #""type": "audio.resample", "rate": 16000"#, #""type": "audio.level", "window": 100"#,
      #""type": "opus.encode", "bitrate": 24000"#, #""type": "opus.decode", "rate": 16000"#,
      #""type": "audio.gain", "gain": 3"#, #""type": "audio.resample", "rate": 48000"#,
      #""type": "audio.level""#, #""type": "flow.null""#,
    ]
    var nodes: [String] = []
    var links: [String] = []
    for chain in 0..<chains {
      for (index, type) in types.enumerated() { nodes.append("    \"n\(chain)x\(index)\": { \(type) }") }
      links.append("    \"" + types.indices.map { "n\(chain)x\($0)" }.joined(separator: " -> ") + "\"")
    }
    return """
      {
        "millrace": 1,
        "name": "large",
        "nodes": {
      \(nodes.joined(separator: ",\n"))
        },
        "links": [
      \(links.joined(separator: ",\n"))
        ]
      }
      """
  }

  /// A document of objects with strings, numbers and lists.
  private static func largeDocument(bytes: Int) -> String {
    var items: [String] = []
    var count = 0
    while count < bytes {
      let index = items.count
      let item =
        #"  { "id": \#(index), "name": "caf\u00e9 number \#(index)", "level": -\#(index % 97).5e-1, "tags": ["a", "b\n"], "on": true, "rest": null }"#
      items.append(item)
      count += item.utf8.count + 2
    }
    return "[\n" + items.joined(separator: ",\n") + "\n]"
  }
}
