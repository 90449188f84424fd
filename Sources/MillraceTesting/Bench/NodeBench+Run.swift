internal import CMallocCount
public import MillraceCore

extension NodeBench {
  /// Calls the node as an engine would, until nothing is left to do at the current time: no packet makes it run, it asks for no call, or
  /// a held output is full. When its driving inputs have ended, that includes `finish`.
  /// - Parameter limit: most calls to make; for nodes that never stop on their own.
  /// - Returns: the number of calls made.
  /// - Throws: the node's fault. No call is made after one.
  @discardableResult
  public func run(calls limit: Int = 1_000_000) throws(BenchFault) -> Int {
    var made = 0
    while made < limit {
      feed()
      if wakes.take() { wiring.markReady() }
      guard try step() else { break }
      made += 1
    }
    feed()
    return made
  }

  /// Advances the virtual clock. Timers of the node on the way fire at their own time; then everything due at `time` is done.
  public func advance(to time: Nanoseconds) throws(BenchFault) {
    try run()
    while let due = nextTimer, due <= time, !hasEnded {
      clock.advance(to: max(now, due))
      fireTimer()
      let before = callCount
      try run()
      // A call that is due but has no room waits for `release` or the next `run`.
      if callCount == before { break }
    }
    clock.advance(to: max(now, time))
    try run()
  }

  /// Advances the virtual clock by `time` nanoseconds.
  public func advance(by time: Nanoseconds) throws(BenchFault) { try advance(to: now + time) }

  /// Ends every open input, processes what is queued, and lets the node finish, as an engine does at the end of its inputs; a node
  /// without a driving input finishes as when a graph drains. Timers fire at their time. On a realtime clock, it waits for wake-ups by
  /// the node's own threads, at most ten seconds for each.
  /// It stops when a held output is full: release the output and call again.
  public func finish() throws(BenchFault) {
    for index in feeds.indices where feeds[index].shape != nil { feeds[index].isToEnd = true }
    try run()
    if !hasEnded && !hasDrivingInput {
      isFinishing = true
      timerRequest = nil
      timerRetry = nil
      wiring.markReady()
      try run()
    }
    while !hasEnded, awaitNextCall() { try run() }
  }

  /// Waits for the node's timer or wake-up; false when neither can come.
  private func awaitNextCall() -> Bool {
    switch (clock.kind, nextTimer) {
    case (.virtual, let due?): clock.advance(to: max(now, due))
    case (.virtual, nil): return false
    case (.realtime, let due):
      let limit: Nanoseconds = 10_000_000_000
      guard hasRoom, wakes.wait(due.map { max(0, $0 - now) } ?? limit) || due != nil else { return false }
    }
    if let due = nextTimer, due <= now { fireTimer() }
    return true
  }

  /// For nodes with their own threads, on a realtime clock: runs, and sleeps until the node's next wake-up or timer, until the
  /// condition holds.
  /// - Returns: false when `seconds` passed first.
  public func wait(_ seconds: Double, until condition: () -> Bool) throws(BenchFault) -> Bool {
    let real = Clock(.realtime)
    let deadline = real.now + Nanoseconds(seconds * 1e9)
    while true {
      if clock.kind == .realtime, let due = nextTimer, due <= now { fireTimer() }
      try run()
      if condition() { return true }
      let left = deadline - real.now
      if left <= 0 { return false }
      let rest = clock.kind == .realtime ? nextTimer.map { max(0, $0 - now) } ?? left : left
      wakes.wait(min(left, rest))
    }
  }

  /// Resets the count of heap requests, for use after a warm-up.
  public func resetHeapRequests() { heapRequests = 0 }

  // MARK: The turn of a cell

  // The following makes the decisions of an engine (`Worker.activate` and what it calls) for a cell that is alone on its worker.
  // Tests compare the calls of both.

  /// Makes one call of `process` or `finish` when the node is ready. False when it is not.
  private func step() throws(BenchFault) -> Bool {
    guard !hasEnded, fault == nil, let executor, wiring.takeReady(), isCallable, hasRoom else { return false }
    let before = progress
    let outcome = try outcome(of: call { isFinishing ? executor.finish(&$0) : executor.process(&$0) })
    let hasTaken = before.taken != progress.taken
    let due = takeTimerRequest()
    checkIdle(outcome, due, before == progress)
    settle(outcome, due, hasTaken: hasTaken)
    collect()
    return true
  }

  /// True when there is a reason to call the node.
  private var isCallable: Bool {
    if isFinishing || wantsAgain { return true }
    switch inputs {
    case .waiting: return false
    case .ready: return true
    case .over:
      isFinishing = true
      return true
    }
  }

  /// True when the node has a linked input that drives it.
  private var hasDrivingInput: Bool {
    inputNames.indices.contains {
      unsafe nodeTable.pointee.inputs[$0].drives && nodeTable.pointee.inputs[$0].link != nil
    }
  }

  private enum Inputs {
    case waiting, ready, over
  }

  /// The state of the driving inputs, by the contract's drive.
  private var inputs: Inputs {
    var (driving, over) = (0, 0)
    for index in inputNames.indices {
      let slot = unsafe nodeTable.pointee.inputs[index]
      guard unsafe slot.drives, let link = unsafe slot.link else { continue }
      driving += 1
      if unsafe link.pointee.hasPacket(generation: nodeTable.pointee.generation) {
        if contract.drive == .anyInput { return .ready }
      } else if unsafe link.pointee.isOver() {
        over += 1
      } else if contract.drive == .allInputs {
        return .waiting
      }
    }
    if driving > 0 && over == driving { return .over }
    switch contract.drive {
    case .anyInput: return .waiting
    case .allInputs: return driving > 0 ? .ready : .waiting
    case .itself: return .ready
    }
  }

  /// True when every linked output that gates the node has room and a free block; otherwise its reader makes the node ready again.
  private var hasRoom: Bool {
    for (index, link) in wiring.outputLinks.enumerated() {
      guard let link, wiring.gates(output: index) else { continue }
      if unsafe !link.link.pointee.hasRoomOrRequestsWake() { return false }
      if let pool = wiring.outputPools[index], !pool.hasFree {
        // An engine checks again a little later.
        wiring.markReady()
        return false
      }
    }
    return true
  }

  /// Applies the result of a call of `process` or `finish`.
  private func settle(_ outcome: Outcome, _ due: Nanoseconds?, hasTaken: Bool) {
    let wasWanted = wantsAgain && contract.drive != .itself
    let waitsForBlock = armRetry()
    wantsAgain = false
    switch outcome {
    case .ended: hasEnded = true
    case .done where isFinishing: hasEnded = true
    case .done:
      if let due { arm(due) }
      let inputs = inputs
      if inputs == .over || ((hasTaken || wasWanted) && inputs == .ready) { wiring.markReady() }
    case .again:
      if let due {
        arm(due)
      } else if !waitsForBlock {
        wantsAgain = true
        wiring.markReady()
      }
    }
  }

  /// Applies the requests of a message or an interruption and marks the node ready.
  func settleMessage() {
    _ = armRetry()
    if let due = takeTimerRequest() { arm(due) }
    wiring.markReady()
  }

  private func takeTimerRequest() -> Nanoseconds? {
    let due = unsafe nodeTable.pointee.wakeAt
    unsafe nodeTable.pointee.wakeAt = .max
    return due == .max ? nil : due
  }

  private func arm(_ due: Nanoseconds) {
    timerRequest = due
    if due <= now { fireTimer() }
  }

  /// When the node's next timer fires.
  private var nextTimer: Nanoseconds? { [timerRequest, timerRetry].compactMap { $0 }.min() }

  /// True when the node asked for room and no block was free; it is called again a millisecond later.
  private func armRetry() -> Bool {
    guard unsafe nodeTable.pointee.requests.contains(.retry) else { return false }
    timerRetry = min(timerRetry ?? .max, now + 1_000_000)
    return true
  }

  private func fireTimer() {
    if let due = timerRequest, due <= now { timerRequest = nil }
    if let retry = timerRetry, retry <= now { timerRetry = nil }
    wantsAgain = true
    wiring.markReady()
  }

  /// Packets that entered and left the node.
  private struct Progress: Equatable {
    var taken = 0
    var emitted = 0
  }

  private var progress: Progress {
    Progress(
      taken: unsafe nodeTable.pointee.taken,
      emitted: wiring.outputLinks.reduce(0) { $0 + ($1?.counts.pushed ?? 0) })
  }

  /// Traps for a node that keeps asking for immediate calls and does nothing in them: it would run for ever and keep a worker busy.
  private func checkIdle(_ outcome: Outcome, _ due: Nanoseconds?, _ wasIdle: Bool) {
    let asksAtOnce = due.map { $0 <= now } ?? (outcome == .again)
    idleCalls = wasIdle && asksAtOnce && !isFinishing ? idleCalls + 1 : 0
    if idleCalls > 10_000 {
      fatalError("\(contract.type) was called 10,000 times in a row and neither took nor emitted a packet")
    }
  }

  /// Makes one call with new ports and counts its heap requests.
  func call(_ body: (inout Ports) -> CallResult) -> CallResult {
    unsafe wiring.node.pointee.now = now
    unsafe wiring.node.pointee.fault = nil
    unsafe wiring.node.pointee.requests = []
    callCount += 1
    var ports = unsafe Ports(nodeTable)
    let before = millrace_malloc_thread_requests()
    let result = body(&ports)
    heapRequests += Int(millrace_malloc_thread_requests() - before)
    return result
  }

  /// Returns the outcome of a call, or throws its fault with its message.
  func outcome(of result: CallResult) throws(BenchFault) -> Outcome {
    var found = unsafe wiring.node.pointee.fault
    var outcome = Outcome.ended
    switch result {
    case .outcome(let answer): outcome = answer
    case .fault(let thrown): found = thrown
    }
    guard let found else { return outcome }
    let failure = BenchFault(fault: found, text: executor?.explain(found))
    fault = failure
    hasEnded = true
    collect()
    throw failure
  }
}
