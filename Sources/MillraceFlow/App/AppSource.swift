public import MillraceCore

/// `app.source`: brings what the program sends into the graph.
///
/// - Out `out`: packets of `format`. PCM in packets of `frame`; the last, and one that ends an utterance, may be shorter.
/// - The program sends through `GraphRun.source`. What it sends waits in a queue of `capacity` packets, which belongs to the run: a node
///   that is restarted continues with it.
/// - Position: samples sent since the start, those that found no room included. Pacing `waits`: a packet's time is its position divided by
///   the rate; without a rate it is the time it came. Pacing `live`: the time of the first packet is when it came, and sound follows by its
///   samples; after a pause of more than 500 ms position and time skip it, and the packet is marked `discontinuity`.
/// - Ends when the program finishes, or when the graph drains; what is queued then flows out first.
public struct AppSource: Node, ~Copyable {
  /// A live source is taken to have paused when it is so far behind the graph's clock.
  static let longestLag: Nanoseconds = 500_000_000

  private let channel: SourceChannel
  private let isLive: Bool
  /// 0 where packets have no length.
  private let rate: Int
  /// Graph time of position 0, once it is known.
  private var start: Nanoseconds?
  /// Samples of silence that pauses of a live source have put into its positions.
  private var skipped: Int64 = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let channel = setup.source else {
      throw NodeProblem(
        "the program's end of a graph has no use outside of a run",
        cure: "run it by Engine and use GraphRun.source")
    }
    self.channel = channel
    isLive = setup.pacing == .live
    rate = channel.format.rate ?? 0
    start = isLive ? nil : 0
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if try emit(&ports) {
      // The program may have finished before this call: nothing else would wake the node for the end.
      return channel.hasPacket(generation: ports.generation) || channel.isOver ? .again : .done
    }
    return channel.isOver ? .ended : .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    channel.refuse()
    return try emit(&ports) ? .again : .ended
  }

  /// Passes the oldest packet on. False when there is none.
  private mutating func emit(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let sent = channel.take(generation: ports.generation) else { return false }
    var packet = try ports.makePacket(bytes: Int(sent.byteCount), of: HeldReply(of: sent))
    packet.copyBytes(of: sent)
    packet.flags.formUnion(sent.flags)
    packet.duration = sent.duration
    if rate > 0 { place(&packet, sent.position, ports.now) }
    ports.emit(packet)
    return true
  }

  /// Gives a packet its position and time.
  private mutating func place(_ packet: inout Packet, _ position: Int64, _ now: Nanoseconds) {
    let start = self.start ?? now &- .samples(position, rate: rate)
    self.start = start
    let lag = now &- start &- .samples(position &+ skipped, rate: rate)
    if isLive && lag > Self.longestLag {
      skipped &+= lag / 1_000_000 * Int64(rate) / 1_000
      packet.flags.insert(.discontinuity)
    }
    packet.position = position &+ skipped
    packet.timestamp = start &+ .samples(packet.position, rate: rate)
  }
}
