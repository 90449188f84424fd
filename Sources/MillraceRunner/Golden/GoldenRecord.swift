internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// What a run of some graphs did, as far as it is the same every time: what `golden.json` says.
///
/// No processor time, no wall time, no path of this machine: files go by the node and parameter that name them.
struct GoldenRecord {
  /// Version of the layout of `golden.json`.
  static let version = 1

  /// A file that a node wrote.
  struct File {
    var node: String
    var parameter: String
    /// Where its copy lies, from the golden folder.
    var name: String
    var bytes: Int
    var sha256: String
    /// Where the node wrote it; not recorded.
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
    /// Packets, by what became of them, in the order of `counters`.
    var counts: [Int]

    /// The names of `counts`.
    static let counters = ["pushed", "popped", "droppedOldest", "droppedNewest", "droppedStale", "discarded"]
  }

  /// One graph, or one instance of it.
  struct Run {
    var name: String
    /// Graph time from start to end.
    var duration: Nanoseconds
    /// The node that ended it before its time; nil when none did.
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
  /// `golden.json`: the same record gives the same bytes.
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
        "golden runs of version \(version) are not known",
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
  /// A member that is a list of objects.
  fileprivate mutating func objects<Item>(
    _ key: String, _ items: [Item], _ members: (Item, inout JSONWriter) -> Void
  ) {
    array(key) { json in for item in items { json.object { members(item, &$0) } } }
  }
}

/// Takes members out of a golden file, or says at which place it is not what it should be.
private struct GoldenReader {
  let document: JSONDocument

  func member(_ node: JSONNode, _ key: String) throws(Problem) -> JSONNode {
    if let value = node[key] { return value }
    throw document.error(
      at: node, "there is no \"\(key)\" here", hint: "record the golden run anew with --record-golden")
  }

  func text(_ node: JSONNode, _ key: String) throws(Problem) -> String {
    let value = try member(node, key)
    if let text = value.string { return text }
    throw document.error(at: value, "\"\(key)\" is text, found \(value.kind)")
  }

  func integer(_ node: JSONNode, _ key: String) throws(Problem) -> Int {
    let value = try member(node, key)
    if let number = value.integer { return Int(number) }
    throw document.error(at: value, "\"\(key)\" is a whole number, found \(value.kind)")
  }

  func array(_ node: JSONNode, _ key: String) throws(Problem) -> [JSONNode] {
    let value = try member(node, key)
    if let items = value.array { return items }
    throw document.error(at: value, "\"\(key)\" is a list, found \(value.kind)")
  }
}
