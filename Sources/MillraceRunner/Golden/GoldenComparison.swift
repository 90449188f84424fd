internal import MillraceCore
internal import MillraceGraph

/// Compares runs with golden runs.
struct GoldenComparison {
  let folder: GoldenFolder
  let golden: GoldenRecord
  let now: GoldenRecord
  /// The events of each run of `now`.
  let events: [[String]]
  let tolerance: GoldenTolerance

  /// Most differences listed per run: the first ones usually cause the others.
  private static let mostListed = 20

  /// The differences, one per line, in the order of the record.
  var differences: [String] {
    guard golden.runs.map(\.name) == now.runs.map(\.name) else {
      let (before, after) = (golden.runs, now.runs)
      return ["the runs are \(Self.names(after)), golden \(Self.names(before))"]
    }
    return now.runs.indices.flatMap { index in
      let run = now.runs[index]
      let all = differences(golden.runs[index], run, events[index])
      let listed = all.prefix(Self.mostListed).map { "\(run.name): \($0)" }
      return listed + (all.count > listed.count ? ["\(run.name): and \(all.count - listed.count) more"] : [])
    }
  }

  /// Mentions the files that differ within the tolerance; otherwise empty.
  var note: String {
    let pairs = zip(golden.runs, now.runs).flatMap { zip($0.files, $1.files) }
    let near = pairs.count { $0.sha256 != $1.sha256 }
    return near == 0 ? "" : " (\(Figures.counted(near, "file")) within the tolerance)"
  }

  private static func names(_ runs: [GoldenRecord.Run]) -> String {
    runs.map { Problem.quoted($0.name) }.joined(separator: ", ")
  }

  private func differences(
    _ golden: GoldenRecord.Run, _ now: GoldenRecord.Run, _ events: [String]
  ) -> [String] {
    var found: [String] = []
    if golden.failedNode != now.failedNode {
      func text(_ node: String?) -> String {
        node.map { "node \(Problem.quoted($0)) failed" } ?? "no node failed"
      }
      found.append("\(text(now.failedNode)), golden: \(text(golden.failedNode))")
    }
    found += files(golden, now)
    if let difference = eventDifference(golden, events) { found.append(difference) }
    if golden.duration != now.duration {
      found.append("duration \(Figures.duration(now.duration)), golden \(Figures.duration(golden.duration))")
    }
    found += nodes(golden, now) + links(golden, now)
    return found
  }

  // MARK: Files and events

  private func files(_ golden: GoldenRecord.Run, _ now: GoldenRecord.Run) -> [String] {
    func key(_ file: GoldenRecord.File) -> String { "\(file.node).\(file.parameter)" }
    var found: [String] = []
    for file in golden.files {
      guard let other = now.files.first(where: { key($0) == key(file) }) else {
        found.append("\(key(file)): no file was written, golden \(Figures.bytes(file.bytes))")
        continue
      }
      guard other.sha256 != file.sha256 else { continue }
      let difference = FileDifference(
        golden: folder.file(file.name), now: other.source, tolerance: tolerance)
      if let text = difference.text { found.append("\(key(file)): \(text)") }
    }
    for file in now.files where !golden.files.contains(where: { key($0) == key(file) }) {
      found.append("\(key(file)): \(Figures.bytes(file.bytes)) written, golden no file")
    }
    return found
  }

  private func eventDifference(_ golden: GoldenRecord.Run, _ events: [String]) -> String? {
    guard let lines = LineDifference.lines(of: folder.file(golden.eventFile)) else {
      return "the golden events cannot be read: \(Problem.quoted(folder.file(golden.eventFile))) is missing"
    }
    return LineDifference(golden: lines, now: events, tolerance: tolerance.number).text("event")
  }

  // MARK: Counts

  private func nodes(_ golden: GoldenRecord.Run, _ now: GoldenRecord.Run) -> [String] {
    compare(golden.nodes, now.nodes, "node", \.name) { golden, now in
      let counts = [
        ("packets in", golden.packetsIn, now.packetsIn), ("packets out", golden.packetsOut, now.packetsOut),
        ("restarts", golden.restarts, now.restarts),
      ]
      let type = golden.type == now.type ? [] : ["is \(now.type), golden \(golden.type)"]
      return type + counts.filter { $0.1 != $0.2 }.map { "\($0.0) \($0.2), golden \($0.1)" }
    }
  }

  private func links(_ golden: GoldenRecord.Run, _ now: GoldenRecord.Run) -> [String] {
    compare(golden.links, now.links, "link", \.name) { golden, now in
      let format = golden.format == now.format ? [] : ["carries \(now.format), golden \(golden.format)"]
      let counts = GoldenRecord.Link.counters.indices.filter { golden.counts[$0] != now.counts[$0] }
      return format
        + counts.map { "\(GoldenRecord.Link.counters[$0]) \(now.counts[$0]), golden \(golden.counts[$0])" }
    }
  }

  /// Lists the items that are new, missing or different.
  private func compare<Item>(
    _ golden: [Item], _ now: [Item], _ what: String, _ name: (Item) -> String,
    _ differences: (Item, Item) -> [String]
  ) -> [String] {
    let known = Dictionary(golden.map { (name($0), $0) }) { first, _ in first }
    let changed = now.compactMap { item -> String? in
      guard let other = known[name(item)] else { return "\(what) \(Problem.quoted(name(item))) is new" }
      let found = differences(other, item)
      return found.isEmpty ? nil : "\(what) \(Problem.quoted(name(item))): \(found.joined(separator: "; "))"
    }
    let present = Set(now.map(name))
    return changed
      + golden.filter { !present.contains(name($0)) }.map { "\(what) \(Problem.quoted(name($0))) is missing" }
  }
}
