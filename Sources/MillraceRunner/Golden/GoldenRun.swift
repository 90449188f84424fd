internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// Records a run as a golden run, or compares a run with one.
final class GoldenRun {
  private let options: GoldenOptions
  private let folder: GoldenFolder
  /// The record to compare with, read before anything runs; nil when recording.
  private let expected: GoldenRecord?
  private let out: Output
  /// The state of the files at the nodes' paths before the nodes were created.
  private var before: [String: FileStamp] = [:]
  private var events: [GoldenEvents] = []
  private let readers = ReaderTasks()

  /// nil when the options request no golden run.
  init?(_ options: GoldenOptions, out: Output) throws {
    guard let path = options.compare ?? options.recordGolden else { return nil }
    self.options = options
    self.out = out
    folder = GoldenFolder(path: path)
    expected = options.compare == nil ? nil : try folder.read()
    if expected == nil { try folder.make("files") }
  }

  /// Notes the state of the files that a plan's nodes name. Call before the nodes are created.
  func expect(_ plan: GraphPlan) {
    for (_, _, path) in Self.paths(plan) { before[path] = FileStamp(path) }
  }

  /// The values of all path parameters of a plan's nodes.
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

  /// Starts observing a run. Call for all runs in order, before they start.
  func observe(_ run: GraphRun) { events.append(GoldenEvents(of: run, readers)) }

  /// Records or compares the runs after they have ended. Prints the differences.
  func finish(_ reports: [(plan: GraphPlan, report: RunReport)], isQuiet: Bool) -> ExitStatus {
    guard !Signals.isDrainRequested else {
      out.write("golden: the run was interrupted, so it is not recorded or compared\n")
      return .interrupted
    }
    let isComplete = readers.wait()
    let lost = reports.reduce(0) { $0 + $1.report.lostEvents }
    guard lost == 0 && isComplete else {
      out.write("golden: \(Figures.counted(lost, "event")) lost, so the run cannot be compared\n")
      return .differed
    }
    do { return expected == nil ? try record(reports, isQuiet) : try compare(reports, isQuiet) } catch {
      // The error message has already been printed.
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
    if !isQuiet { out.write("golden: recorded \(Self.extent(record)) in \(Problem.quoted(folder.path))\n") }
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

  /// The record of a run, without the sizes and hashes of its files.
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

  /// The files at the nodes' paths that the run has created or changed.
  private func files(_ plan: GraphPlan, _ place: String) -> [GoldenRecord.File] {
    Self.paths(plan).compactMap { node, parameter, path in
      guard FileKind(path: path) == .regular, FileStamp(path) != before[path] else { return nil }
      let suffix =
        path.split(separator: "/").last?.split(separator: ".").dropFirst().last.map { ".\($0)" } ?? ""
      return GoldenRecord.File(
        node: node, parameter: parameter, name: "\(place)/\(node).\(parameter)\(suffix)", bytes: 0,
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
    // Differences quote lines of files, and a node may have written a secret to its file.
    let secrets = reports.map(\.plan.secrets)
    for difference in differences {
      let text = secrets.reduce(difference) { $1.redacting($0) }
      out.write("golden: \(Problem.printable(text))\n")
    }
    guard differences.isEmpty else {
      out.write(
        "golden: the run differs from \(Problem.quoted(folder.path)); if this is intended, record it again with --record-golden\n"
      )
      return .differed
    }
    if !isQuiet {
      out.write(
        "golden: the run matches \(Problem.quoted(folder.path)): \(Self.extent(record))\(comparison.note)\n")
    }
    return .done
  }
}

/// Tells whether a file has been written: its inode, its size and the time of its last change.
private struct FileStamp: Equatable {
  let number: UInt
  let size: Int
  let seconds: Int
  let nanoseconds: Int

  /// nil when the file does not exist.
  init?(_ path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    (number, size) = (UInt(status.st_ino), Int(status.st_size))
    (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }
}
