internal import Glibc
public import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// A second reader of one link: copies of the packets its writer emits, for a thread outside the graph.
///
/// ```swift
/// let tap = try run.tap("mic -> enc")
/// while !tap.isOver {
///   while let packet = tap.next() { envelope.add(packet.samples(of: Int16.self)) }
///   usleep(20_000)
/// }
/// ```
///
/// What it does *not* do: it never blocks the graph, never takes blocks from the graph's pools, and never wakes its reader: poll
/// it every few packets. It sees packets before the link's own policy drops any. A packet that finds the tap full is dropped and
/// counted, except on a virtual clock: there time does not advance until the tap is read, so that no packet is missing.
///
/// While the tap is set, each packet costs its writer a copy of the bytes and about 30 ns; a link without a tap costs nothing. One
/// thread at a time may read. The tap ends with `stop`, with its last reference, or with the graph.
public final class LinkTap: Sendable {
  /// The link's index in the plan, and its name: `mic -> enc`.
  public let link: Int
  /// The link's name as listings show it.
  public let name: String
  /// What packets carry.
  public let shape: OutputShape
  private let line: TapLine
  private let remove: @Sendable () -> Void

  init(_ link: Int, in plan: GraphPlan, line: TapLine, remove: @escaping @Sendable () -> Void) {
    self.link = link
    self.line = line
    self.remove = remove
    name = plan.describe(plan.links[link])
    shape = plan.links[link].shape
  }

  deinit { stop() }

  /// Takes the oldest packet; nil when there is none. The packet may be kept: the tap then holds one packet less.
  public func next() -> Packet? { line.next() }

  /// True when no packet is left and none will come.
  public var isOver: Bool { line.isOver }

  /// Packets dropped because the tap was full.
  public var droppedCount: Int { line.droppedCount }

  /// Ends the tap. Queued packets can still be taken. May be called more than once, from any thread.
  public func stop() {
    if line.close() { remove() }
  }
}

extension GraphRun {
  /// The default capacity of a tap in packets: more than a second of 20 ms packets.
  public static let tapCapacity = 64

  /// Sets a tap on a link, by its index in the plan. Valid in any phase; set between `prepare` and `start` to miss nothing.
  /// - Parameters:
  ///   - link: an index into the plan's `links`; an invalid one traps.
  ///   - capacity: packets it holds until they are taken, at least 1; their memory is the tap's own.
  public func tap(_ link: Int, capacity: Int = tapCapacity) -> LinkTap {
    precondition(plan.links.indices.contains(link), "no such link")
    let planned = plan.links[link]
    // On a virtual clock the worker checks the tap between turns of the strand, and one turn may emit this much.
    let turn = engine.clock == .virtual ? 2 * Worker.budget * max(1, planned.shape.burst) : 0
    let bytes = max(planned.shape.packetBytes, planned.shape.format == .event ? EventWriter.eventBytes : 1)
    let line = TapLine(capacity: max(1, capacity, turn), packetBytes: bytes, nullWake: engine.nullWake)
    change(planned.from) { $0.append(line) }
    return LinkTap(link, in: plan, line: line) { [weak self] in
      self?.change(planned.from) { $0.removeAll { $0 === line } }
    }
  }

  /// Sets a tap on a link by its name as listings show it: `mic -> enc`, `tee.out2 -> aec.near`.
  public func tap(_ name: String, capacity: Int = tapCapacity) throws(ControlProblem) -> LinkTap {
    let names = plan.links.map { plan.describe($0) }
    guard let link = names.firstIndex(of: name) else {
      let near = Spelling.nearest(to: name, among: names)
      throw ControlProblem(
        "no link is named \"\(name)\""
          + (near.map { "; did you mean \"\($0)\"?" } ?? "; \"explain\" lists the links of a graph"),
        .unknownLink)
    }
    return tap(link, capacity: capacity)
  }

  /// Changes the taps of an output; its worker adopts the new layout.
  private func change(_ output: GraphPlan.End, _ edit: (inout [TapLine]) -> Void) {
    let isOpen = outlets.withLock { $0.change(output, in: self) { edit(&$0.taps) } }
    if isOpen { places[output.node].strand.request(Strand.Request.outputs) }
  }
}

extension Worker {
  /// On a virtual clock no packet of a tap may be lost because it is read slowly: time does not advance meanwhile, unless the run
  /// is stopping.
  @inline(never)
  func waitForTaps(_ strand: Strand) {
    var next = unsafe strand.firstTap
    while let line = unsafe next {
      while unsafe line._withUnsafeGuaranteedRef({ $0.isHalfFull })
        && strand.requests.load(ordering: .relaxed) & Strand.Request.retire == 0
      {
        // Readers of a tap do not wake the worker, since a live graph never waits for one. The pause is long enough to let the
        // reader run, and short compared with the time it needs for half a tap.
        usleep(50)
      }
      unsafe next = unsafe line._withUnsafeGuaranteedRef { unsafe $0.following }
    }
  }
}
