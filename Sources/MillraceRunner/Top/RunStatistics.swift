internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The statistics of all runs of a process as JSON, for `top`. Times are in milliseconds.
enum RunStatistics {
  /// Version of the layout below.
  static let version = 1

  /// - Parameters:
  ///   - name: name of the runs.
  ///   - graphs: the combined current reports of the runs of each graph.
  static func json(_ name: String, _ graphs: [MergedReport], workers: [(name: String, busy: Nanoseconds)])
    -> String
  {
    var json = JSONWriter()
    json.object { json in
      json.member("millraceTop", version)
      json.member("process", Int(getpid()))
      json.member("name", name)
      json.member("now", Double(millrace_monotonic_ns()) / 1e6)
      json.array("workers") { json in
        for worker in workers {
          json.object { json in
            json.member("name", worker.name)
            json.member("busy", Double(worker.busy) / 1e6)
          }
        }
      }
      json.array("graphs") { json in for graph in graphs { json.object { write(graph, to: &$0) } } }
    }
    return json.text + "\n"
  }

  private static func write(_ graph: MergedReport, to json: inout JSONWriter) {
    json.member("title", graph.title)
    json.member("clock", graph.plan.clock.rawValue)
    json.object("instances") { json in
      for phase in RunPhase.allCases {
        json.member(phase.rawValue, graph.runs.count { $0.report.phase == phase })
      }
    }
    json.member("duration", Double(graph.duration) / 1e6)
    json.member("wall", Double(graph.wall) / 1e6)
    // For each node, the packets queued and dropped on its input links.
    var queued = [Int](repeating: 0, count: graph.nodes.count)
    var dropped = queued
    for (link, report) in zip(graph.plan.links, graph.links) {
      queued[link.to.node] += report.queued
      dropped[link.to.node] += report.dropped
    }
    json.array("nodes") { json in
      for (index, node) in graph.nodes.enumerated() {
        json.object { json in
          RunReportFile.write(node, to: &json)
          json.member("queued", queued[index])
          json.member("dropped", dropped[index])
        }
      }
    }
    json.array("links") { json in
      for link in graph.links { json.object { RunReportFile.write(link, to: &$0) } }
    }
  }
}
