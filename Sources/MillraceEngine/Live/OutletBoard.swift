internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// The links of one output: those of the plan, live links, taps. Created on the control side, read by the worker.
@safe
final class FanOut: @unchecked Sendable {
  let links: UnsafeMutablePointer<UnsafeMutablePointer<Link>>
  let count: Int
  let layout: Layout
  /// The worker uses this layout and no earlier one.
  var isInPlace = false

  /// What an output feeds.
  struct Layout {
    /// Links of the plan, by index.
    var own: [Int]
    var live: [LiveLink] = []
    var taps: [TapLine] = []
  }

  init(_ layout: Layout, address: (Int) -> UnsafeMutablePointer<Link>) {
    self.layout = layout
    let all =
      unsafe layout.own.map { unsafe address($0) } + layout.live.map { unsafe $0.address }
      + layout.taps.map { unsafe $0.address }
    count = unsafe all.count
    unsafe links = .allocate(capacity: max(1, count))
    for index in 0..<count { unsafe (links + index).initialize(to: all[index]) }
  }

  deinit { unsafe links.deallocate() }
}

/// A link that an output no longer feeds, until its worker has released it.
@safe
struct Departure {
  let link: UnsafeMutablePointer<Link>
  /// Owns the link's memory; nil for a link of the plan.
  let live: LiveLink?
  /// True: the reader's input ends with it. False: another link may follow.
  let ends: Bool

  /// Ends or detaches the link for its reader. On the writer's worker, or when no worker writes any more.
  func notifyReader() {
    if ends { unsafe link.pointee.end() } else { unsafe link.pointee.detach() }
  }
}

/// The links of a run's outputs where they differ from the plan. Under its lock, which a worker takes only on a change.
struct OutletBoard {
  /// The new layout of each changed output.
  private(set) var fans: [GraphPlan.End: FanOut] = [:]
  /// Earlier layouts that the worker may still use.
  private var former: [GraphPlan.End: [FanOut]] = [:]
  /// Links removed since the worker adopted the last layout.
  private var departures: [GraphPlan.End: [Departure]] = [:]
  private var isClosed = false

  /// Changes the layout of an output, atomically for its worker. False when the run is over and writes nothing more.
  mutating func change(
    _ output: GraphPlan.End, leaving: [Departure] = [], in run: GraphRun,
    _ edit: (inout FanOut.Layout) -> Void
  ) -> Bool {
    var layout =
      fans[output]?.layout
      ?? FanOut.Layout(own: run.plan.links.indices.filter { run.plan.links[$0].from == output })
    edit(&layout)
    guard !isClosed, let memory = run.memory else {
      for tap in layout.taps { _ = tap.close() }
      for live in layout.live { unsafe live.address.pointee.end() }
      for departure in leaving { departure.notifyReader() }
      return false
    }
    if let fan = fans[output] { former[output, default: []].append(fan) }
    fans[output] = unsafe FanOut(layout) { unsafe memory.links + $0 }
    departures[output, default: []] += leaving
    return true
  }

  /// The worker has adopted an output's new layout: notifies the readers of removed links. Returns what it no longer uses, to be
  /// released outside the lock.
  mutating func takeOver(_ output: GraphPlan.End) -> (former: [FanOut], removed: [Departure]) {
    fans[output]?.isInPlace = true
    let removed = departures.removeValue(forKey: output) ?? []
    for departure in removed { departure.notifyReader() }
    return (former.removeValue(forKey: output) ?? [], removed)
  }

  /// No worker writes any more.
  mutating func close(releasing: Bool) {
    isClosed = true
    for fan in fans.values {
      for tap in fan.layout.taps { _ = tap.close() }
      for live in fan.layout.live { unsafe live.address.pointee.end() }
    }
    for departure in departures.values.joined() where departure.live != nil { departure.notifyReader() }
    guard releasing else { return }
    fans = [:]
    former = [:]
    departures = [:]
  }
}

extension Worker {
  /// Adopts the new layouts of a strand's outputs.
  @inline(never)
  func changeOutputs(of strand: Strand) {
    threadOwner.assertIsCurrent()
    var unused: [(former: [FanOut], removed: [Departure])] = []
    defer { withExtendedLifetime(unused) {} }
    unsafe strand.run.outlets.withLock { board in
      for (output, fan) in board.fans where !fan.isInPlace {
        let place = unsafe strand.run.places[output.node]
        guard place.strand === strand else { continue }
        guard fan.layout.live.allSatisfy({ $0.translate() }) else {
          // The other run has been started but has not begun yet.
          strand.request(Strand.Request.outputs)
          continue
        }
        let cell = unsafe strand.cells + place.index
        unsafe cell.pointee.table.outputs[output.port].links = unsafe fan.links
        unsafe cell.pointee.table.outputs[output.port].linkCount = fan.count
        if unsafe cell.pointee.phase.isOver {
          for line in fan.layout.taps { line.end() }
          for live in fan.layout.live { unsafe live.address.pointee.end() }
        }
        unused.append(board.takeOver(output))
        // It may have been waiting for room in a removed link.
        unsafe strand.markReady(cell)
      }
      guard isVirtual else { return }
      unsafe strand.firstTap = nil
      for (output, fan) in board.fans where unsafe strand.run.places[output.node].strand === strand {
        for line in fan.layout.taps {
          unsafe line.following = unsafe strand.firstTap
          unsafe strand.firstTap = unsafe Unmanaged.passUnretained(line)
        }
      }
    }
  }
}
