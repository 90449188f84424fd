internal import CMallocCount
public import MillraceCore

extension NodeBench {
  /// Calls the node as an engine would, until nothing is left to do at the present time: no packet that makes it run, no wish
  /// of its own, or a held output is full. When its driving inputs are over, that includes `finish`.
  /// - Parameter limit: most calls to make; for nodes that would never stop by themselves.
  /// - Returns: calls made.
  /// - Throws: the node's fault. No more calls are made after one.
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

  /// Moves the virtual clock on. The node's timer wishes on the way are met at their own time, then everything that is due at
  /// `time` is done.
  public func advance(to time: Nanoseconds) throws(BenchFault) {
    try run()
    while let wish = nextTimer, wish <= time, !hasEnded {
      clock.advance(to: max(now, wish))
      fireTimer()
      let before = callCount
      try run()
      // A due call that found no room waits for `release` or for the next `run`.
      if callCount == before { break }
    }
    clock.advance(to: max(now, time))
    try run()
  }

  /// Moves the virtual clock on by so many nanoseconds.
  public func advance(by time: Nanoseconds) throws(BenchFault) { try advance(to: now + time) }

  /// Ends every input that still runs, works off what is queued, and lets the node finish, as an engine does at the end of its
  /// inputs; a node without any that drives it is told to finish as when a graph drains. Wishes for a later call are met at
  /// their time; on a realtime clock, wake-ups by the node's own threads are waited for, ten seconds each.
  /// Packets that a held output has no room for stop it: release the output and call again.
  public func finish() throws(BenchFault) {
    for index in feeds.indices where feeds[index].shape != nil { feeds[index].isToEnd = true }
    try run()
    if !hasEnded && !hasDrivingInput {
      isFinishing = true
      timerWish = nil
      timerRetry = nil
      wiring.markReady()
      try run()
    }
    while !hasEnded, awaitNextCall() { try run() }
  }

  /// Lets time pass until the node's timer or wake-up; false when neither can come.
  private func awaitNextCall() -> Bool {
    switch (clock.kind, nextTimer) {
    case (.virtual, let wish?): clock.advance(to: max(now, wish))
    case (.virtual, nil): return false
    case (.realtime, let wish):
      let limit: Nanoseconds = 10_000_000_000
      guard hasRoom, wakes.wait(wish.map { max(0, $0 - now) } ?? limit) || wish != nil else { return false }
    }
    if let wish = nextTimer, wish <= now { fireTimer() }
    return true
  }

  /// For nodes with threads of their own, on a realtime clock: runs, and sleeps until the node's wake-up or timer, until the
  /// condition holds.
  /// - Returns: false when `seconds` passed first.
  public func wait(_ seconds: Double, until condition: () -> Bool) throws(BenchFault) -> Bool {
    let real = Clock(.realtime)
    let deadline = real.now + Nanoseconds(seconds * 1e9)
    while true {
      if clock.kind == .realtime, let wish = nextTimer, wish <= now { fireTimer() }
      try run()
      if condition() { return true }
      let left = deadline - real.now
      if left <= 0 { return false }
      let rest = clock.kind == .realtime ? nextTimer.map { max(0, $0 - now) } ?? left : left
      wakes.wait(min(left, rest))
    }
  }

  /// Forgets the heap requests counted so far: after warm-up.
  public func resetHeapRequests() { heapRequests = 0 }

  // MARK: One cell's turn

  // What follows makes an engine's decisions (`Worker.activate` and what it calls) for a cell that has a worker to itself: the
  // tests hold the calls of both against each other.

  /// One call of `process` or `finish`, when the node is ready for one. False when it was not.
  private func step() throws(BenchFault) -> Bool {
    guard !hasEnded, fault == nil, let executor, wiring.takeReady(), isCallable, hasRoom else { return false }
    let before = progress
    let outcome = try judge(call { isFinishing ? executor.finish(&$0) : executor.process(&$0) })
    let hasTaken = before.taken != progress.taken
    let wish = takeWish()
    noteIdle(outcome, wish, before == progress)
    settle(outcome, wish, hasTaken: hasTaken)
    collect()
    return true
  }

  /// True when there is something to call the node for.
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

  /// True when an input's packets make the node run.
  private var hasDrivingInput: Bool {
    inputNames.indices.contains {
      unsafe nodeTable.pointee.inputs[$0].drives && nodeTable.pointee.inputs[$0].link != nil
    }
  }

  private enum Inputs {
    case waiting, ready, over
  }

  /// The driving inputs, as the contract's drive looks at them.
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

  /// True when every linked output that is waited for has room and a block; otherwise its reader makes the node ready again.
  private var hasRoom: Bool {
    for (index, link) in wiring.outputLinks.enumerated() {
      guard let link, wiring.gates(output: index) else { continue }
      if unsafe !link.link.pointee.hasRoomOrAsks() { return false }
      if let pool = wiring.outputPools[index], !pool.hasFree {
        // An engine looks again a little later.
        wiring.markReady()
        return false
      }
    }
    return true
  }

  /// What a call of `process` or `finish` leaves to do.
  private func settle(_ outcome: Outcome, _ wish: Nanoseconds?, hasTaken: Bool) {
    let wasWanted = wantsAgain && contract.drive != .itself
    let waitsForBlock = noteRetry()
    wantsAgain = false
    switch outcome {
    case .ended: hasEnded = true
    case .done where isFinishing: hasEnded = true
    case .done:
      if let wish { arm(wish) }
      let inputs = inputs
      if inputs == .over || ((hasTaken || wasWanted) && inputs == .ready) { wiring.markReady() }
    case .again:
      if let wish {
        arm(wish)
      } else if !waitsForBlock {
        wantsAgain = true
        wiring.markReady()
      }
    }
  }

  /// What a message or an interruption leaves to do: the node is looked at again.
  func settleAside() {
    _ = noteRetry()
    if let wish = takeWish() { arm(wish) }
    wiring.markReady()
  }

  private func takeWish() -> Nanoseconds? {
    let wish = unsafe nodeTable.pointee.wakeAt
    unsafe nodeTable.pointee.wakeAt = .max
    return wish == .max ? nil : wish
  }

  private func arm(_ wish: Nanoseconds) {
    timerWish = wish
    if wish <= now { fireTimer() }
  }

  /// When the node is called next for the time's sake.
  private var nextTimer: Nanoseconds? { [timerWish, timerRetry].compactMap { $0 }.min() }

  /// The node asked for room where no block was free: it is called a millisecond later. True when it did.
  private func noteRetry() -> Bool {
    guard unsafe nodeTable.pointee.notes.contains(.retry) else { return false }
    timerRetry = min(timerRetry ?? .max, now + 1_000_000)
    return true
  }

  private func fireTimer() {
    if let wish = timerWish, wish <= now { timerWish = nil }
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

  /// A node that asks for call after call, or to be called at a time that has passed, and does nothing in them would keep the
  /// bench for ever, and a worker busy.
  private func noteIdle(_ outcome: Outcome, _ wish: Nanoseconds?, _ wasIdle: Bool) {
    let asksAtOnce = wish.map { $0 <= now } ?? (outcome == .again)
    idleCalls = wasIdle && asksAtOnce && !isFinishing ? idleCalls + 1 : 0
    if idleCalls > 10_000 {
      fatalError("\(contract.type) was called 10,000 times in a row and neither took nor emitted a packet")
    }
  }

  /// Makes one call with fresh ports, counting its heap requests.
  func call(_ body: (inout Ports) -> CallResult) -> CallResult {
    unsafe wiring.node.pointee.now = now
    unsafe wiring.node.pointee.fault = nil
    unsafe wiring.node.pointee.notes = []
    callCount += 1
    var ports = unsafe Ports(nodeTable)
    let before = millrace_malloc_thread_requests()
    let result = body(&ports)
    heapRequests += Int(millrace_malloc_thread_requests() - before)
    return result
  }

  /// The outcome of a call, or its fault, put into words.
  func judge(_ result: CallResult) throws(BenchFault) -> Outcome {
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
