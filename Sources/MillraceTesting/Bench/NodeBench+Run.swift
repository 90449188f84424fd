internal import CMallocCount
public import MillraceCore

extension NodeBench {
  /// Calls `process` as an engine would, until nothing is left to do at the present time: the drive condition no longer
  /// holds, or a held output is full.
  /// - Parameter limit: most calls to make; for nodes that would never stop by themselves.
  /// - Returns: calls made.
  /// - Throws: the node's fault. No more calls are made after one.
  @discardableResult
  public func run(calls limit: Int = 1_000_000) throws(BenchFault) -> Int {
    var made = 0
    while made < limit {
      feed()
      if wakes.take() { isDue = true }
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
    while let wish = timerWish, wish <= time, !hasEnded {
      clock.advance(to: max(now, wish))
      unsafe wiring.node.pointee.wakeAt = .max
      isDue = true
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

  /// When the node asked to be called next, if it did.
  public var timerWish: Nanoseconds? {
    let wish = unsafe wiring.node.pointee.wakeAt
    return wish == .max ? nil : wish
  }

  /// Ends every input that still runs, works off what is queued, then calls `finish` until the node has nothing more.
  /// Packets that a held output has no room for stop it: release the output and call again.
  public func finish() throws(BenchFault) {
    for index in feeds.indices where feeds[index].shape != nil { feeds[index].isToEnd = true }
    try run()
    while !hasEnded && hasRoom {
      guard let executor else { return }
      let outcome = try judge(call { executor.finish(&$0) })
      collect()
      if outcome != .again { hasEnded = true }
    }
  }

  /// For nodes with threads of their own, on a realtime clock: runs, and sleeps until the node's wake-up or timer, until the
  /// condition holds.
  /// - Returns: false when `seconds` passed first.
  public func wait(_ seconds: Double, until condition: () -> Bool) throws(BenchFault) -> Bool {
    let real = Clock(.realtime)
    let deadline = real.now + Nanoseconds(seconds * 1e9)
    while true {
      if clock.kind == .realtime, let wish = timerWish, wish <= now {
        unsafe wiring.node.pointee.wakeAt = .max
        isDue = true
      }
      try run()
      if condition() { return true }
      let left = deadline - real.now
      if left <= 0 { return false }
      let rest = clock.kind == .realtime ? timerWish.map { max(0, $0 - now) } ?? left : left
      wakes.wait(min(left, rest))
    }
  }

  /// Forgets the heap requests counted so far: after warm-up.
  public func resetHeapRequests() { heapRequests = 0 }

  /// One call of `process`, when one is due. False when none was.
  private func step() throws(BenchFault) -> Bool {
    guard !hasEnded, fault == nil, let executor, isDue || drives, hasRoom else { return false }
    isDue = false
    let before = progress
    let outcome = try judge(call { executor.process(&$0) })
    idleCalls = before == progress && outcome != .ended ? idleCalls + 1 : 0
    collect()
    switch outcome {
    case .done: break
    case .again: isDue = true
    case .ended: hasEnded = true
    }
    if idleCalls > 10_000 {
      fatalError("\(contract.type) was called 10,000 times in a row and neither took nor emitted a packet")
    }
    return true
  }

  /// The contract's drive condition. As an engine sees it: by packets, not by what the node would do with them.
  private var drives: Bool {
    let table = unsafe wiring.node
    let ports = unsafe Ports(table)
    var someHas = false
    var allHave = true
    for index in inputNames.indices where unsafe table.pointee.inputs[index].drives {
      guard ports.isLinked(input: index) else { continue }
      if ports.hasPacket(index) {
        someHas = true
      } else if !ports.isOver(index) {
        allHave = false
      }
    }
    switch contract.drive {
    case .anyInput: return someHas
    case .allInputs: return someHas && allHave
    case .itself: return false
    }
  }

  private var hasRoom: Bool {
    let ports = unsafe Ports(nodeTable)
    for index in outputNames.indices where !ports.hasRoom(index) { return false }
    return true
  }

  /// Grows with every packet that enters or leaves the node.
  private var progress: Int {
    let taken = wiring.inputLinks.reduce(0) {
      $0 + ($1.map { $0.counts.popped + $0.counts.droppedOldest } ?? 0)
    }
    return wiring.outputLinks.reduce(taken) { $0 + ($1?.counts.pushed ?? 0) }
  }

  /// Makes one call with fresh ports, counting its heap requests.
  func call(_ body: (inout Ports) -> CallResult) -> CallResult {
    unsafe wiring.node.pointee.now = now
    unsafe wiring.node.pointee.fault = nil
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
