internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// One call of `run` that is recorded, or compared with a recorded one.
final class Golden {
  private let options: GoldenOptions
  private let folder: GoldenFolder
  /// What is to be compared with, read before anything runs; nil when this run is recorded.
  private let expected: GoldenRecord?
  private let out: Output
  /// What lay at each path before nodes were made, by the path.
  private var before: [String: FileMark] = [:]
  private var events: [GoldenEvents] = []
  private let readers = Readers()

  /// nil when no golden run is asked for.
  init?(_ options: GoldenOptions, out: Output) throws {
    guard let path = options.compare ?? options.recordGolden else { return nil }
    self.options = options
    self.out = out
    folder = GoldenFolder(path: path)
    expected = options.compare == nil ? nil : try folder.read()
    if expected == nil { try folder.make("files") }
  }

  /// Looks at the files that a plan's nodes name. Call before they are made.
  func expect(_ plan: GraphPlan) {
    for (_, _, path) in Self.paths(plan) { before[path] = FileMark(path) }
  }

  /// Every path that a node of a plan was given.
  private static func paths(_ plan: GraphPlan) -> [(node: String, parameter: String, path: String)] {
    plan.nodes.flatMap { node in
      node.contract.parameters.compactMap { parameter in
        guard case .path = parameter.kind, case .string(let path)? = node.parameters[parameter.name] else {
          return nil
        }
        return (node.name, parameter.name, path)
      }
    }
  }

  /// Takes a run in. Call for every run in order, before it starts.
  func watch(_ run: GraphRun) { events.append(GoldenEvents(of: run, readers)) }

  /// The runs have ended: records or compares. Tells what differs; answers the status when it is not `done`.
  func finish(_ reports: [(plan: GraphPlan, report: RunReport)], isQuiet: Bool) -> ExitStatus {
    guard !Signals.isAskedToEnd else {
      out.write("golden: the run was interrupted, so it is neither kept nor compared\n")
      return .interrupted
    }
    let isComplete = readers.wait()
    let lost = reports.reduce(0) { $0 + $1.report.lostEvents }
    guard lost == 0 && isComplete else {
      out.write("golden: \(Figures.counted(lost, "event")) got lost, so the run cannot be compared\n")
      return .differed
    }
    do { return expected == nil ? try record(reports, isQuiet) : try compare(reports, isQuiet) } catch {
      // What could not be read or written has been told.
      return .usage
    }
  }

  // MARK: Recording

  private func record(_ reports: [(plan: GraphPlan, report: RunReport)], _ isQuiet: Bool) throws -> ExitStatus
  {
    var record = GoldenRecord(runs: [])
    for (index, (plan, report)) in reports.enumerated() {
      let place = GoldenFolder.folderName(of: plan.name, number: index + 1)
      try folder.make(place)
      var run = self.run(plan, report, index, place)
      for number in run.files.indices {
        let kept = try folder.keep(run.files[number].source, as: run.files[number].name)
        (run.files[number].bytes, run.files[number].sha256) = (kept.bytes, kept.sha256)
      }
      try TextFile.write(events[index].lines.map { $0 + "\n" }.joined(), to: folder.file(run.eventFile))
      record.runs.append(run)
    }
    try TextFile.write(record.json, to: folder.file(GoldenFolder.recordName))
    if !isQuiet { out.write("golden: \(Self.extent(record)) kept in \(Problem.quoted(folder.path))\n") }
    return .done
  }

  private static func extent(_ record: GoldenRecord) -> String {
    let counts = [
      (record.runs.reduce(0) { $0 + $1.files.count }, "file"),
      (record.runs.reduce(0) { $0 + $1.eventCount }, "event"),
      (record.runs.reduce(0) { $0 + $1.links.count }, "link"),
    ]
    return counts.map { Figures.counted($0.0, $0.1) }.joined(separator: ", ")
  }

  /// The record of a run, sizes and hashes of its files left open.
  private func run(_ plan: GraphPlan, _ report: RunReport, _ index: Int, _ place: String) -> GoldenRecord.Run
  {
    GoldenRecord.Run(
      name: plan.name, duration: report.duration, failedNode: report.failure?.node,
      eventFile: "\(place)/events.jsonl", eventCount: events[index].lines.count, files: files(plan, place),
      nodes: report.nodes.map {
        GoldenRecord.Node(
          name: $0.name, type: $0.type, packetsIn: $0.packetsIn, packetsOut: $0.packetsOut,
          restarts: $0.restarts)
      },
      links: report.links.map {
        GoldenRecord.Link(
          name: $0.name, format: $0.format.description,
          counts: [$0.pushed, $0.popped, $0.droppedOldest, $0.droppedNewest, $0.droppedStale, $0.discarded])
      })
  }

  /// The files of a plan's nodes that are not what they were before.
  private func files(_ plan: GraphPlan, _ place: String) -> [GoldenRecord.File] {
    Self.paths(plan).compactMap { node, parameter, path in
      guard FileKind(path: path) == .regular, FileMark(path) != before[path] else { return nil }
      let ending =
        path.split(separator: "/").last?.split(separator: ".").dropFirst().last.map { ".\($0)" } ?? ""
      return GoldenRecord.File(
        node: node, parameter: parameter, name: "\(place)/\(node).\(parameter)\(ending)", bytes: 0,
        sha256: "",
        source: path)
    }
  }

  // MARK: Comparing

  private func compare(_ reports: [(plan: GraphPlan, report: RunReport)], _ isQuiet: Bool) throws
    -> ExitStatus
  {
    guard let expected else { return .done }
    var record = GoldenRecord(runs: [])
    for (index, (plan, report)) in reports.enumerated() {
      var run = self.run(plan, report, index, "")
      for number in run.files.indices {
        let measured = unsafe try GoldenFolder.measure(run.files[number].source)
        (run.files[number].bytes, run.files[number].sha256) = (measured.bytes, measured.sha256)
      }
      record.runs.append(run)
    }
    let comparison = GoldenComparison(
      folder: folder, golden: expected, now: record, events: events.map(\.lines), tolerance: options.tolerance
    )
    let differences = comparison.differences
    // Lines of a file are told as they are, and a node may have written a secret into its file.
    let secrets = reports.map(\.plan.secrets)
    for difference in differences {
      let told = secrets.reduce(difference) { $1.redacting($0) }
      out.write("golden: \(Problem.printable(told))\n")
    }
    guard differences.isEmpty else {
      out.write(
        "golden: the run differs from \(Problem.quoted(folder.path)); if this is intended, record it again with --record-golden\n"
      )
      return .differed
    }
    if !isQuiet {
      out.write("golden: as in \(Problem.quoted(folder.path)): \(Self.extent(record))\(comparison.remark)\n")
    }
    return .done
  }
}

/// What tells whether a file was written: its number, its size and the time of its last change.
private struct FileMark: Equatable {
  let number: UInt
  let size: Int
  let seconds: Int
  let nanoseconds: Int

  /// nil when there is no such file.
  init?(_ path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    (number, size) = (UInt(status.st_ino), Int(status.st_size))
    (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }
}
