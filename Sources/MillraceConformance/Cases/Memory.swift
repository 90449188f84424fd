internal import CMillraceSys
internal import MillraceCore
internal import MillraceDialog

/// What a dialogue costs.
extension ConformanceCase {
  /// Bytes of the heap a turn may leave behind: less than any buffer of sound or any message has.
  static let mostPerTurn = 1_024
  private static let warmUp = 20
  private static let turns = 100
  /// The least of so many counts: what is on its way at one moment is not what stays.
  private static let few = 10

  /// Only in a process that does nothing else.
  static let memory = ConformanceCase(
    "memory", "\(turns) turns leave nothing behind: at most \(mostPerTurn) bytes each",
    script: {
      $0.replyMilliseconds = 100
      $0.speed = 1_000
    },
    play: { rehearsal in
      try await rehearsal.wait(for: .listening)
      var figures: [Int] = []
      for _ in 1...(warmUp + turns) {
        try await rehearsal.turn()
        rehearsal.double.forget()
        rehearsal.stage.record.withLock { $0.entries = $0.entries.suffix(1) }
        figures.append(Int(millrace_heap_in_use()))
      }
      try await rehearsal.drain()
      let first = figures[warmUp..<(warmUp + few)].min() ?? 0
      let last = figures.suffix(few).min() ?? 0
      let growth = (last - first) / (turns - few)
      guard growth <= mostPerTurn else {
        throw Mismatch("each turn leaves \(growth) bytes of the heap behind")
      }
    })
}
