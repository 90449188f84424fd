/// Decides by sequence numbers which packets belong to a source (RFC 3550, appendix A.1).
struct SequenceCheck: Sendable {
  typealias Verdict = RTPReceiverStatistics.Verdict

  /// Packets in sequence that a new source must show.
  private let wanted: Int
  /// Packets in sequence that are still missing.
  private var missing: Int
  /// The sequence number that would continue the source under probation, or confirm a restart.
  private var awaited: UInt16?
  /// The first number of the source.
  private(set) var first: Int64 = 0
  /// The highest number with its wraps; nil: the source is not valid.
  private(set) var highest: Int64?

  init(probation: Int) {
    wanted = max(0, probation)
    missing = wanted
  }

  /// Numbers from the first to the highest.
  var expected: Int64 { highest.map { $0 - first + 1 } ?? 0 }

  mutating func note(_ sequence: UInt16) -> Verdict {
    guard let highest else { return prove(sequence) }
    let step = sequence &- UInt16(truncatingIfNeeded: highest)
    if step < RTPReceiverStatistics.largestDropout {
      self.highest = highest + Int64(step)
    } else if step <= 0 &- RTPReceiverStatistics.largestMisorder {
      return jump(to: sequence)
    }
    awaited = nil
    return .valid
  }

  private mutating func prove(_ sequence: UInt16) -> Verdict {
    // A packet out of sequence is the first of another attempt.
    missing = sequence == awaited ? missing - 1 : wanted - 1
    awaited = sequence &+ 1
    guard missing <= 0 else { return .probation }
    start(at: sequence)
    return .valid
  }

  private mutating func jump(to sequence: UInt16) -> Verdict {
    guard sequence == awaited else {
      awaited = sequence &+ 1
      return .stray
    }
    start(at: sequence)
    return .restarted
  }

  private mutating func start(at sequence: UInt16) {
    first = Int64(sequence)
    highest = first
    awaited = nil
  }
}
