internal import Glibc
public import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// A second reader of one link: copies of the packets that its writer emits, for a thread outside the graph.
///
/// ```swift
/// let tap = try run.tap("mic -> enc")
/// while !tap.isOver {
///   while let packet = tap.next() { envelope.add(packet.samples(of: Int16.self)) }
///   usleep(20_000)
/// }
/// ```
///
/// What it does *not* do: it never holds the graph up, never takes blocks of the graph's pools, and wakes nobody: look every
/// few packets. Packets are seen before the link's own policy drops any. What finds the tap full is dropped and
/// counted, except on a virtual clock: there time stands still until the tap is read again, so that nothing is missing.
///
/// While it is set, each packet costs its writer a copy of the bytes and about 30 ns; a link without one costs nothing. One
/// thread at a time may read. The tap ends with `stop`, with its last reference, or with the graph.
public final class LinkTap: Sendable {
  /// The link's index in the plan, and its name: `mic -> enc`.
  public let link: Int
  /// The link as listings show it.
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

  /// Takes the oldest packet; nil when none waits. The packet may be kept: the tap then holds one less.
  public func next() -> Packet? { line.next() }

  /// True when nothing is left and nothing will come.
  public var isOver: Bool { line.isOver }

  /// Packets that the tap had no room for.
  public var droppedCount: Int { line.droppedCount }

  /// Ends the tap. What is in it can still be taken. May be called more than once, from any thread.
  public func stop() {
    if line.close() { remove() }
  }
}

extension GraphRun {
  /// Packets a tap holds unless asked otherwise: more than a second of 20 ms each.
  public static let tapCapacity = 64

  /// Sets a tap on a link, by its index in the plan. In any phase; set between `prepare` and `start` it misses nothing.
  /// - Parameters:
  ///   - link: its place in the plan's `links`. Any other traps.
  ///   - capacity: packets it holds until they are taken, at least 1; their memory is the tap's own.
  public func tap(_ link: Int, capacity: Int = tapCapacity) -> LinkTap {
    precondition(plan.links.indices.contains(link), "no such link")
    let planned = plan.links[link]
    // On a virtual clock the worker looks at the tap between turns of the strand, and a turn may emit so much.
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
          + (near.map { "; did you mean \"\($0)\"?" } ?? "; \"explain\" lists the links of a graph"))
    }
    return tap(link, capacity: capacity)
  }

  /// Gives an output other taps, and asks its worker to take them over.
  private func change(_ output: GraphPlan.End, _ edit: (inout [TapLine]) -> Void) {
    let isOpen = outlets.withLock { $0.change(output, in: self) { edit(&$0.taps) } }
    if isOpen { places[output.node].strand.request(Strand.Request.outputs) }
  }
}

extension Worker {
  /// On a virtual clock no packet of a tap may be lost because it is read slowly: time stands still meanwhile, unless the
  /// run is to stop.
  @inline(never)
  func waitForTaps(_ strand: Strand) {
    var next = unsafe strand.firstTap
    while let line = unsafe next {
      while unsafe line._withUnsafeGuaranteedRef({ $0.isHalfFull })
        && strand.requests.load(ordering: .relaxed) & Strand.Request.retire == 0
      {
        // Who reads a tap wakes nobody: a live graph does not wait for it. Long enough to leave the processor to the reader,
        // short beside what it needs for half a tap.
        usleep(50)
      }
      unsafe next = unsafe line._withUnsafeGuaranteedRef { unsafe $0.following }
    }
  }
}
