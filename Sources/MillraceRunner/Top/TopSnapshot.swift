internal import MillraceCore
internal import MillraceGraph

/// The statistics of a process at one moment. Times are in milliseconds.
struct TopSnapshot {
  struct Node {
    var name: String
    var type: String
    var lane: String
    var calls: Int
    var packets: Int
    var busy: Double
    var worst: Double
    var overBudget: Int
    var overAge: Int
    var waited: Int
    var queued: Int
    var dropped: Int
    var age: Double?
    var worstAge: Double?
  }

  struct Graph {
    var title: String
    /// The number of instances in each phase, such as `running`.
    var phases: [(phase: String, count: Int)]
    var duration: Double
    var nodes: [Node]
  }

  struct WorkerLoad {
    var name: String
    var busy: Double
  }

  var process: Int
  var name: String
  /// Time of the snapshot on the machine's monotonic clock.
  var now: Double
  /// Time since the runs started.
  var wall: Double
  var workers: [WorkerLoad]
  var graphs: [Graph]

  /// nil when the text is not a runner's answer of this version.
  init?(_ text: String) {
    guard let root = (try? JSONDocument.scan(SourceFile(name: "top", text: text)))?.root,
      root["millraceTop"]?.integer == Int64(RunStatistics.version)
    else { return nil }
    process = root.count("process")
    name = root["name"]?.string ?? ""
    now = root["now"]?.double ?? 0
    workers = (root["workers"]?.array ?? []).map {
      WorkerLoad(name: $0["name"]?.string ?? "", busy: $0["busy"]?.double ?? 0)
    }
    let graphs = root["graphs"]?.array ?? []
    wall = graphs.compactMap { $0["wall"]?.double }.max() ?? 0
    self.graphs = graphs.map { graph in
      Graph(
        title: graph["title"]?.string ?? "",
        phases: (graph["instances"]?.object?.members ?? []).map { ($0.key, Int($0.value.integer ?? 0)) },
        duration: graph["duration"]?.double ?? 0, nodes: (graph["nodes"]?.array ?? []).map(Node.init))
    }
  }
}

extension TopSnapshot.Node {
  init(_ json: JSONNode) {
    self.init(
      name: json["name"]?.string ?? "", type: json["type"]?.string ?? "", lane: json["lane"]?.string ?? "",
      calls: json.count("calls"), packets: json.count("packetsIn"), busy: json["busy"]?.double ?? 0,
      worst: json["worstCall"]?.double ?? 0, overBudget: json.count("overBudget"),
      overAge: json.count("overAge"), waited: json.count("blocked") + json.count("starved"),
      queued: json.count("queued"), dropped: json.count("dropped"), age: json["lastAge"]?.double,
      worstAge: json["worstAge"]?.double)
  }
}

extension JSONNode {
  fileprivate func count(_ key: String) -> Int { self[key]?.integer.map { Int($0) } ?? 0 }
}
