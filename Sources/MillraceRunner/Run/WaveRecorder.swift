internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Records the envelopes of the sound that enters and leaves a graph, through taps.
///
/// Taps are set before the run starts; a task reads them until they end.
final class WaveRecorder: Sendable {
  /// The sound of one link.
  struct Strip: Sendable {
    /// The link's name.
    var name: String
    var format: Format
    /// True when sound leaves the graph here: it is played, encoded or written. False when it enters here.
    var isEnd: Bool
    var envelope = Envelope()
    /// Packets dropped because the tap was read too slowly.
    var droppedCount = 0
  }

  private struct State {
    var strips: [Strip]
  }
  private let state: Mutex<State>
  private let taps: [LinkTap]
  /// False when no node follows a clock: then timestamps are meaningless, and sound is placed by its sample positions.
  private let followsClock: Bool

  /// Most links recorded.
  private static let mostStrips = 12
  /// More than a second of 20 ms packets, read fifty times a second.
  private static let tapCapacity = 64
  private static let pollInterval = Duration.milliseconds(20)
  /// Shorter, because a virtual clock stands still until the taps are read.
  private static let virtualPollInterval = Duration.microseconds(200)

  /// Sets taps on a prepared run.
  /// - Parameter readers: the group for the task of the recorder.
  init(_ run: GraphRun, _ readers: ReaderTasks) {
    let links = Self.links(of: run.plan)
    taps = links.map { run.tap($0.link, capacity: Self.tapCapacity) }
    followsClock = run.plan.nodes.contains { $0.pacing != .waits }
    let strips = zip(taps, links).map { Strip(name: $0.name, format: $0.shape.format, isEnd: $1.isEnd) }
    state = Mutex(State(strips: strips))
    guard !links.isEmpty else { return }
    let interval = run.plan.clock == .virtual ? Self.virtualPollInterval : Self.pollInterval
    readers.start {
      // Polls, because a tap does not wake its reader.
      while !self.taps.allSatisfy(\.isOver) {
        self.read()
        try? await Task.sleep(for: interval)
      }
    }
  }

  var strips: [Strip] { state.withLock { $0.strips } }

  /// The links where sound enters and leaves the graph, in the plan's order.
  static func links(of plan: GraphPlan) -> [(link: Int, isEnd: Bool)] {
    func carriesSound(_ port: NodeSetup.Port) -> Bool { port.isLinked && port.shape?.format.kind == .pcm }
    var seen: Set<GraphPlan.End> = []
    let links = plan.links.indices.compactMap { index -> (link: Int, isEnd: Bool)? in
      let link = plan.links[index]
      guard link.shape.format.kind == .pcm else { return nil }
      let begins = !plan.nodes[link.from.node].inputs.contains(where: carriesSound)
      let ends = !plan.nodes[link.to.node].outputs.contains(where: carriesSound)
      // All links of an output carry the same packets.
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
