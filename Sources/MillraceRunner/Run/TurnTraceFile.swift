internal import MillraceCore
internal import MillraceDialog
internal import MillraceServer
internal import Synchronization

/// The turns of a run as OpenTelemetry JSON, written when the run has ended.
struct TurnTraceFile: ~Copyable {
  private var file: TextFile
  /// Where graph time begins, in nanoseconds since 1970.
  private var epoch: UInt64 = 0

  init(_ file: consuming TextFile) { self.file = file }

  /// Notes the time. Call it when the graphs start.
  mutating func begin() { epoch = TurnTrace.now }

  /// Writes the turns. Throws, when that could not be done, what is on standard error already.
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
