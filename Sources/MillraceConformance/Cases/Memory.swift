internal import CMillraceSys
internal import MillraceCore
internal import MillraceDialog

/// What a dialogue costs.
extension ConformanceCase {
  /// Bytes of the heap a turn may leave behind: less than any buffer of sound or any message has.
  static let mostPerTurn = 1_024
  private static let warmUp = 10
  private static let turns = 30

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
      // The least of several: what is on its way at one moment is not what stays.
      let first = figures[warmUp..<(warmUp + 5)].min() ?? 0
      let last = figures.suffix(5).min() ?? 0
      let growth = (last - first) / (turns - 5)
      guard growth <= mostPerTurn else {
        throw Mismatch("each turn leaves \(growth) bytes of the heap behind")
      }
    })
}
