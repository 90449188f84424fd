internal import CMillraceSys
internal import MillraceCore
internal import MillraceDialog

/// The memory a dialogue costs.
extension ConformanceCase {
  /// The most heap bytes a turn may leak: less than any audio buffer or message.
  static let mostPerTurn = 1_024
  private static let warmUp = 20
  private static let turns = 100
  /// Number of measurements of which the least counts: memory in use at one moment is not leaked.
  private static let few = 10

  /// Only in a process that does nothing else.
  static let memory = ConformanceCase(
    "memory", "\(turns) turns leak nothing: at most \(mostPerTurn) bytes each",
    script: {
      $0.replyMilliseconds = 100
      $0.speed = 1_000
    },
    play: { run in
      try await run.wait(for: .listening)
      var figures: [Int] = []
      for _ in 1...(warmUp + turns) {
        try await run.turn()
        run.double.forget()
        run.stage.record.withLock { $0.entries = $0.entries.suffix(1) }
        figures.append(Int(millrace_heap_in_use()))
      }
      try await run.drain()
      let first = figures[warmUp..<(warmUp + few)].min() ?? 0
      let last = figures.suffix(few).min() ?? 0
      let growth = (last - first) / (turns - few)
      guard growth <= mostPerTurn else {
        throw CaseFailure("each turn leaks \(growth) bytes of heap")
      }
    })
}
