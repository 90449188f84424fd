internal import MillraceCore
internal import MillraceDialog
internal import MillraceServer
internal import Synchronization

/// Writes the turns of a run as OpenTelemetry JSON when the run has ended.
struct TurnTraceFile: ~Copyable {
  private var file: TextFile
  /// Graph time 0, in nanoseconds since 1970.
  private var epoch: UInt64 = 0

  init(_ file: consuming TextFile) { self.file = file }

  /// Notes the current time. Call when the graphs start.
  mutating func begin() { epoch = TurnTrace.now }

  /// Writes the turns. On failure, prints the error and throws a usage error.
  mutating func finish(_ turns: [Turn], graph: String) throws {
    let program = RunnerContext.current.withLock(\.name)
    var trace = TurnTrace(service: program, version: MillraceCommand.version)
    for turn in turns {
      // With several runs the label is the run's name with a colon.
      let name = turn.label.hasSuffix(": ") ? String(turn.label.dropLast(2)) : graph
      trace.add(turn, graph: name, epoch: epoch)
    }
    var random = SystemRandomNumberGenerator()
    file.write(trace.json(random: &random))
    try file.finish()
  }
}
