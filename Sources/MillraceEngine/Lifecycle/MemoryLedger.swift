internal import MillraceCore
internal import MillraceGraph

/// The memory limit for all runs of an engine together, and what the present runs have claimed of it.
final class MemoryLedger: Sendable {
  /// Who sets the limit.
  enum Limit: Sendable {
    case program(Int)
    case machine(MachineMemory)
    /// Neither the program nor the system sets one.
    case none
  }

  private struct Claims {
    var bytes = 0
    var runs = 0
  }

  let limit: Limit
  private let claims = Locked(Claims())

  init(_ limit: Limit) { self.limit = limit }

  /// The most bytes all runs may take together; nil: no limit is known.
  var limitBytes: Int? {
    switch limit {
    case .program(let bytes): bytes
    case .machine(let memory): memory.bytes
    case .none: nil
    }
  }

  /// Bytes that the present runs have claimed.
  var claimedBytes: Int { claims.withLock { $0.bytes } }

  /// Claims the memory that a run of a plan can take.
  func claim(_ memory: PlanMemory, of plan: GraphPlan) throws(StartProblem) -> MemoryClaim {
    let bytes = memory.byteCount
    if let limit = plan.memoryLimit, bytes > limit {
      throw StartProblem(
        node: "",
        text:
          "a run can use \(Figures.bytes(bytes)), but \"memory\" allows \(Figures.bytes(limit))\(memory.largestClaimsClause(of: plan))",
        cure: "reduce capacities or packet sizes, or raise \"memory\"")
    }
    let limit = limitBytes ?? .max
    let refusing = claims.withLock { claims -> Claims? in
      let sum = claims.bytes.addingClamped(bytes)
      guard sum <= limit && sum < .max else { return claims }
      claims.bytes = sum
      claims.runs += 1
      return nil
    }
    if let refusing {
      throw refusal("a run can use \(Figures.bytes(bytes))", beside: refusing, memory, plan)
    }
    return MemoryClaim(self, bytes: bytes)
  }

  /// Throws when the given runs would not fit together with the present ones. Claims nothing.
  func check(_ plans: [(plan: GraphPlan, memory: PlanMemory, count: Int)]) throws(StartProblem) {
    let sum = plans.map { $0.memory.byteCount.multipliedClamped(by: $0.count) }.clampedSum
    let there = claims.withLock { $0 }
    guard sum.addingClamped(there.bytes) > min(limitBytes ?? .max, Int.max - 1),
      let largest = plans.max(by: {
        $0.memory.byteCount.multipliedClamped(by: $0.count)
          < $1.memory.byteCount.multipliedClamped(by: $1.count)
      })
    else { return }
    let count = plans.map(\.count).clampedSum
    let whose = plans.count == 1 ? "" : " of \(Problem.quoted(largest.plan.name))"
    let each = count == 1 ? "" : ", each\(whose) \(Figures.bytes(largest.memory.byteCount))"
    let what = count == 1 ? "a run" : "\(count) runs"
    throw refusal(
      "\(what) can use \(Figures.bytes(sum))\(each)", beside: there, largest.memory, largest.plan)
  }

  /// Claims the memory that a live link can take.
  func claim(_ bytes: Int, for link: String) throws(EditProblem) -> MemoryClaim {
    let limit = limitBytes ?? .max
    let isGranted = claims.withLock { claims -> Bool in
      let sum = claims.bytes.addingClamped(bytes)
      guard sum <= limit && sum < .max else { return false }
      claims.bytes = sum
      return true
    }
    guard isGranted else {
      throw EditProblem(
        .memory,
        "link \(Problem.quoted(link)) can use \(Figures.bytes(bytes)) in addition to \(Figures.bytes(claimedBytes)) of the present runs; the limit is \(Figures.bytes(limit))",
        cure: "give it a smaller capacity, or end a run")
    }
    return MemoryClaim(self, bytes: bytes, isRun: false)
  }

  private func refusal(
    _ what: String, beside claims: Claims, _ memory: PlanMemory, _ plan: GraphPlan
  ) -> StartProblem {
    let others =
      claims.runs == 0
      ? "" : " in addition to \(Figures.bytes(claims.bytes)) of \(Figures.counted(claims.runs, "other run"))"
    let (most, cure) =
      switch limit {
      case .program(let bytes):
        ("the limit is \(Figures.bytes(bytes))", ", or raise the memory limit")
      case .machine(let machine):
        (machine.limitText, ", or set a memory limit if the links are never all full at once")
      case .none: ("no machine has that much", "")
      }
    return StartProblem(
      node: "", text: "\(what)\(others), but \(most)\(memory.largestClaimsClause(of: plan))",
      cure: "reduce capacities or packet sizes, run fewer graphs at once" + cure)
  }

  fileprivate func release(_ bytes: Int, endsRun: Bool) {
    claims.withLock {
      $0.bytes -= bytes
      if endsRun { $0.runs -= 1 }
    }
  }
}

/// The claim of one run or one live link. Released with its last reference, except for what is still in use then.
final class MemoryClaim: Sendable {
  private let ledger: MemoryLedger
  private let bytes: Int
  /// False: the claim of a live link.
  private let isRun: Bool
  private let isReleased = Locked(false)

  fileprivate init(_ ledger: MemoryLedger, bytes: Int, isRun: Bool = true) {
    self.isRun = isRun
    self.ledger = ledger
    self.bytes = bytes
  }

  deinit { release() }

  /// Releases the claim. Only the first call has an effect.
  /// - Parameter kept: bytes that stay in use permanently.
  func release(keeping kept: Int = 0) {
    let isFirst = isReleased.withLock { isReleased in
      defer { isReleased = true }
      return !isReleased
    }
    if isFirst { ledger.release(bytes - min(kept, bytes), endsRun: isRun) }
  }
}
