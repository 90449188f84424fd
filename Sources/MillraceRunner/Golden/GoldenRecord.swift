internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The reproducible results of a run: the content of `golden.json`.
///
/// It contains no CPU time, wall-clock time or path of this machine: files are identified by the node and parameter that name them.
struct GoldenRecord {
  /// Version of the layout of `golden.json`.
  static let version = 1

  /// A file that a node wrote.
  struct File {
    var node: String
    var parameter: String
    /// Path of the copy, relative to the golden directory.
    var name: String
    var bytes: Int
    var sha256: String
    /// Path of the original; not recorded.
    var source = ""
  }

  struct Node {
    var name: String
    var type: String
    var packetsIn: Int
    var packetsOut: Int
    var restarts: Int
  }

  struct Link {
    var name: String
    var format: String
    /// Packet counts in the order of `counters`.
    var counts: [Int]

    /// The names of `counts`.
    static let counters = ["pushed", "popped", "droppedOldest", "droppedNewest", "droppedStale", "discarded"]
  }

  /// One run of a graph.
  struct Run {
    var name: String
    /// Graph time from start to end.
    var duration: Nanoseconds
    /// The node whose failure ended the run; nil when there was none.
    var failedNode: String?
    var eventFile: String
    var eventCount: Int
    var files: [File]
    var nodes: [Node]
    var links: [Link]
  }

  var runs: [Run]
}

// MARK: - JSON

extension GoldenRecord {
  /// The content of `golden.json`. Equal records give equal bytes.
  var json: String {
    var json = JSONWriter(pretty: true)
    json.object { json in
      json.member("millraceGolden", Self.version)
      json.objects("runs", runs) { $0.write(to: &$1) }
    }
    return json.text + "\n"
  }

  /// Reads `golden.json`.
  init(_ document: JSONDocument) throws(Problem) {
    let reader = GoldenReader(document: document)
    let version = try reader.integer(document.root, "millraceGolden")
    guard version == Self.version else {
      throw document.error(
        at: document.root["millraceGolden"] ?? document.root,
        "golden run version \(version) is not supported",
        hint: "record it again with --record-golden")
    }
    runs = []
    for node in try reader.array(document.root, "runs") { runs.append(try Run(node, reader)) }
  }
}

extension GoldenRecord.Run {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("name", name)
    json.member("nanoseconds", duration)
    if let failedNode { json.member("failedNode", failedNode) }
    json.object("events") { json in
      json.member("file", eventFile)
      json.member("count", eventCount)
    }
    json.objects("files", files) { $0.write(to: &$1) }
    json.objects("nodes", nodes) { $0.write(to: &$1) }
    json.objects("links", links) { $0.write(to: &$1) }
  }

  fileprivate init(_ node: JSONNode, _ reader: GoldenReader) throws(Problem) {
    name = try reader.text(node, "name")
    duration = Nanoseconds(try reader.integer(node, "nanoseconds"))
    failedNode = node["failedNode"]?.string
    let events = try reader.member(node, "events")
    eventFile = try reader.text(events, "file")
    eventCount = try reader.integer(events, "count")
    (files, nodes, links) = ([], [], [])
    for file in try reader.array(node, "files") { files.append(try GoldenRecord.File(file, reader)) }
    for node in try reader.array(node, "nodes") { nodes.append(try GoldenRecord.Node(node, reader)) }
    for link in try reader.array(node, "links") { links.append(try GoldenRecord.Link(link, reader)) }
  }
}

extension GoldenRecord.File {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("node", node)
    json.member("parameter", parameter)
    json.member("file", name)
    json.member("bytes", bytes)
    json.member("sha256", sha256)
  }

  fileprivate init(_ file: JSONNode, _ reader: GoldenReader) throws(Problem) {
    self.init(
      node: try reader.text(file, "node"), parameter: try reader.text(file, "parameter"),
      name: try reader.text(file, "file"), bytes: try reader.integer(file, "bytes"),
      sha256: try reader.text(file, "sha256"))
  }
}

extension GoldenRecord.Node {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("name", name)
    json.member("type", type)
    json.member("packetsIn", packetsIn)
    json.member("packetsOut", packetsOut)
    json.member("restarts", restarts)
  }

  fileprivate init(_ node: JSONNode, _ reader: GoldenReader) throws(Problem) {
    self.init(
      name: try reader.text(node, "name"), type: try reader.text(node, "type"),
      packetsIn: try reader.integer(node, "packetsIn"), packetsOut: try reader.integer(node, "packetsOut"),
      restarts: try reader.integer(node, "restarts"))
  }
}

extension GoldenRecord.Link {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("name", name)
    json.member("format", format)
    for (counter, count) in zip(Self.counters, counts) { json.member(counter, count) }
  }

  fileprivate init(_ link: JSONNode, _ reader: GoldenReader) throws(Problem) {
    (name, format, counts) = (try reader.text(link, "name"), try reader.text(link, "format"), [])
    for counter in Self.counters { counts.append(try reader.integer(link, counter)) }
  }
}

extension JSONWriter {
  /// Writes a member whose value is an array of objects.
  fileprivate mutating func objects<Item>(
    _ key: String, _ items: [Item], _ members: (Item, inout JSONWriter) -> Void
  ) {
    array(key) { json in for item in items { json.object { members(item, &$0) } } }
  }
}

/// Reads members of a golden file; errors name the position.
private struct GoldenReader {
  let document: JSONDocument

  func member(_ node: JSONNode, _ key: String) throws(Problem) -> JSONNode {
    if let value = node[key] { return value }
    throw document.error(
      at: node, "missing member \"\(key)\"", hint: "record the golden run again with --record-golden")
  }

  func text(_ node: JSONNode, _ key: String) throws(Problem) -> String {
    let value = try member(node, key)
    if let text = value.string { return text }
    throw document.error(at: value, "\"\(key)\" must be a string, found \(value.kind)")
  }

  func integer(_ node: JSONNode, _ key: String) throws(Problem) -> Int {
    let value = try member(node, key)
    if let number = value.integer { return Int(number) }
    throw document.error(at: value, "\"\(key)\" must be an integer, found \(value.kind)")
  }

  func array(_ node: JSONNode, _ key: String) throws(Problem) -> [JSONNode] {
    let value = try member(node, key)
    if let items = value.array { return items }
    throw document.error(at: value, "\"\(key)\" must be an array, found \(value.kind)")
  }
}
