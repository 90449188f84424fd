internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// The outlines of the sound that enters and leaves a graph, taken from taps while it runs.
///
/// Everything is prepared before the run starts; a task reads the taps until they are over.
final class WaveRecorder: Sendable {
  /// The sound of one link.
  struct Strip: Sendable {
    /// The link's name.
    var name: String
    var format: Format
    /// Sound ends here: it is played, coded, written. Else it begins here.
    var isEnd: Bool
    var envelope = Envelope()
    /// Packets that came faster than they were read.
    var droppedCount = 0
  }

  private struct State {
    var strips: [Strip]
  }
  private let state: Mutex<State>
  private let taps: [LinkTap]
  /// False where nothing follows a clock: times then say nothing, and sound is placed by its samples.
  private let followsClock: Bool

  /// Most links listened to.
  private static let mostStrips = 12
  /// More than a second of 20 ms packets, read fifty times a second.
  private static let tapCapacity = 64
  private static let pause = Duration.milliseconds(20)
  /// A virtual clock stands still while nobody reads.
  private static let virtualPause = Duration.microseconds(200)

  /// Sets taps on a prepared run.
  /// - Parameter readers: what its task is among.
  init(_ run: GraphRun, _ readers: Readers) {
    let links = Self.links(of: run.plan)
    taps = links.map { run.tap($0.link, capacity: Self.tapCapacity) }
    followsClock = run.plan.nodes.contains { $0.pacing != .waits }
    let strips = zip(taps, links).map { Strip(name: $0.name, format: $0.shape.format, isEnd: $1.isEnd) }
    state = Mutex(State(strips: strips))
    guard !links.isEmpty else { return }
    let pause = run.plan.clock == .virtual ? Self.virtualPause : Self.pause
    readers.start {
      // A tap wakes nobody.
      while !self.taps.allSatisfy(\.isOver) {
        self.read()
        try? await Task.sleep(for: pause)
      }
    }
  }

  var strips: [Strip] { state.withLock { $0.strips } }

  /// The links where sound begins, and those where it ends, in the plan's order.
  static func links(of plan: GraphPlan) -> [(link: Int, isEnd: Bool)] {
    func carriesSound(_ port: NodeSetup.Port) -> Bool { port.isLinked && port.shape?.format.kind == .pcm }
    var seen: Set<GraphPlan.End> = []
    let links = plan.links.indices.compactMap { index -> (link: Int, isEnd: Bool)? in
      let link = plan.links[index]
      guard link.shape.format.kind == .pcm else { return nil }
      let begins = !plan.nodes[link.from.node].inputs.contains(where: carriesSound)
      let ends = !plan.nodes[link.to.node].outputs.contains(where: carriesSound)
      // All links of an output carry the same.
      guard begins || ends, seen.insert(link.from).inserted else { return nil }
      return (index, ends && !begins)
    }
    return Array(links.prefix(mostStrips))
  }

  private func read() {
    state.withLock { state in
      for (index, tap) in taps.enumerated() {
        while let packet = tap.next() { take(packet, into: &state.strips[index]) }
        state.strips[index].droppedCount = tap.droppedCount
      }
    }
  }

  private func take(_ packet: borrowing Packet, into strip: inout Strip) {
    guard case .pcm(let rate, let channels, let sample) = strip.format else { return }
    let start = followsClock ? packet.timestamp : Nanoseconds.samples(packet.position, rate: rate)
    switch sample {
    case .s16:
      let samples = packet.samples(of: Int16.self)
      strip.envelope.add(count: samples.count, channels: channels, rate: rate, start: start) { index in
        Float(samples[index]) / 32_768
      }
    case .f32:
      let samples = packet.samples(of: Float.self)
      strip.envelope.add(count: samples.count, channels: channels, rate: rate, start: start) { samples[$0] }
    }
  }
}
