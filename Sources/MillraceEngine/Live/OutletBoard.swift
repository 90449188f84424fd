internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Where one output's packets go: links of the plan, links made since, taps. Laid out on the control side, read by the worker.
@safe
final class FanOut: @unchecked Sendable {
  let links: UnsafeMutablePointer<UnsafeMutablePointer<Link>>
  let count: Int
  let layout: Layout
  /// The worker uses it, and none that came before it.
  var isInPlace = false

  /// What an output feeds.
  struct Layout {
    /// Links of the plan, by their index in it.
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

/// A link that an output no longer feeds, until its worker has let go of it.
@safe
struct Departure {
  let link: UnsafeMutablePointer<Link>
  /// Keeps the link's memory; nil for a link of the plan.
  let live: LiveLink?
  /// True: the reader's input ends with it. False: another link may follow.
  let ends: Bool

  /// Tells the reader. On the writer's worker, or when no worker writes any more.
  func notifyReader() {
    if ends { unsafe link.pointee.end() } else { unsafe link.pointee.detach() }
  }
}

/// What the outputs of a run feed, where that differs from the plan. Under its lock; a worker takes that only when something changes.
struct OutletBoard {
  /// What each changed output is to send to.
  private(set) var fans: [GraphPlan.End: FanOut] = [:]
  /// Laid out earlier and perhaps still used by the worker.
  private var former: [GraphPlan.End: [FanOut]] = [:]
  /// Links that left since the worker took the last layout over.
  private var departures: [GraphPlan.End: [Departure]] = [:]
  private var isClosed = false

  /// Lays an output out again, in one step for its worker. False when the run is over: nothing is written then any more.
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

  /// The worker has taken an output's new layout over: the former ones can go, and the readers of what left may know.
  mutating func takeOver(_ output: GraphPlan.End) {
    fans[output]?.isInPlace = true
    former[output] = nil
    for departure in departures.removeValue(forKey: output) ?? [] { departure.notifyReader() }
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
  /// Puts the links that the control side laid out in the place of those that packets went to.
  @inline(never)
  func changeOutputs(of strand: Strand) {
    unsafe strand.run.outlets.withLock { board in
      for (output, fan) in board.fans where !fan.isInPlace {
        let place = unsafe strand.run.places[output.node]
        guard place.strand === strand else { continue }
        guard fan.layout.live.allSatisfy({ $0.translate() }) else {
          // A run that was started a moment ago has not begun yet.
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
        board.takeOver(output)
        // It may have waited for room in a link that is gone.
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
