public import MillraceCore

/// `audio.jitter`: an adaptive jitter buffer that turns packets from a network into continuous audio.
///
/// - Input `in`: Opus packets or PCM as they arrive. A packet's position is the sender's time; its arrival time is when the node sees it, on
///   the graph's clock. Packets may be missing, late, reordered and duplicated.
/// - Output `out`: float PCM, 10 ms every 10 ms without gaps, starting at the first packet's arrival plus the delay. Positions count what was
///   played.
/// - **Delay.** See `JitterEstimator`: a quantile of how late packets arrive. `JitterPolicy` keeps to it by playing up to 35 % faster or
///   slower at constant pitch.
/// - **Loss.** Audio that is missing while later packets are there is concealed or, for Opus, decoded from the copy in the next
///   packet. While no packet is there at all, the node keeps concealing without advancing in the stream, so that a late burst is played late
///   rather than lost. Silence that the sender did not transmit (DTX) is covered the same way and adds no delay.
/// - **Utterances.** The 10 ms packet in which the last audio of an utterance is played carries its end. Audio that has not arrived when its
///   end has is lost like any other.
/// - **Bounds.** At 200 ms beyond `longest` the oldest packets are skipped. A stream that jumps by more than five seconds, or is marked
///   `discontinuity`, starts over. No input can make the node fail; memory and delay are bounded. NaN and infinities in PCM become
///   silence; samples above +120 dBFS are clipped.
/// - Event `state` every `report` ms: target and actual delay, and packet counts by outcome.
/// - Heap: none after `init`. Latency: the delay, at least `least`.
public struct AudioJitter: ~Copyable, Node {
  private let rate: Int
  private let channels: Int
  private let reportEvery: Nanoseconds

  private var player: JitterPlayer
  private var position: Int64 = 0
  private var reply = HeldReply()
  private var nextReport: Nanoseconds = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, .f32) = setup.outputFormat(), let shape = setup.inputs[0].shape
    else {
      throw NodeProblem("\"\(setup.name)\" produces float PCM")
    }
    let values = setup.parameters
    func time(_ name: String) -> Nanoseconds { Nanoseconds((values.number(name) * 1e6).rounded()) }
    let content: JitterPlayer.Content
    switch shape.format {
    case .opus: content = .opus
    case .pcm(_, _, let sample): content = .pcm(sample, longest: shape.frames ?? rate)
    default: throw NodeProblem("\"\(setup.name)\" takes Opus or PCM")
    }
    player = try JitterPlayer(
      content, rate: rate, channels: channels,
      JitterPlayer.Settings(
        quantile: values.number("quantile"), limits: time("least")...max(time("least"), time("longest")),
        recovers: values.bool("fec")))
    self.rate = rate
    self.channels = channels
    reportEvery = time("report")
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { admit(packet, now: ports.now) }
    if player.takeEmptyEnd() { return try emitEnd(&ports) }
    guard let time = player.due else { return .done }
    guard time <= ports.now else {
      ports.wake(at: time)
      return .done
    }
    try emit(time, &ports)
    report(&ports)
    ports.wake(at: player.due ?? ports.now)
    return .done
  }

  /// Plays the rest at its time.
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { admit(packet, now: ports.now) }
    if player.takeEmptyEnd() { return try emitEnd(&ports) }
    guard let time = player.due, player.hasSound else { return .ended }
    if time <= ports.now { try emit(time, &ports) }
    ports.wake(at: player.due ?? ports.now)
    return .again
  }

  public mutating func interrupted(_ ports: inout Ports) {
    if reply.isStale(at: ports.generation) { player.clear() }
  }

  private mutating func admit(_ packet: consuming Packet, now: Nanoseconds) {
    let held = HeldReply(of: packet)
    if player.admit(packet, arrival: now) { reply = held }
  }

  // MARK: Output

  /// Emits the next 10 ms.
  private mutating func emit(_ time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: player.hop * channels * 4, of: reply)
    var samples = packet.mutableSamples(of: Float.self)
    let hop = player.step(at: time, into: &samples)
    packet.position = position
    packet.duration = player.hop
    packet.timestamp = time
    if hop.hasJumped { packet.flags.insert(.discontinuity) }
    if hop.endsUtterance { packet.flags.insert(.endOfUtterance) }
    position &+= Int64(player.hop)
    ports.emit(packet)
  }

  /// Emits the end of an utterance as an empty packet.
  private mutating func emitEnd(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    var packet = try ports.makePacket(bytes: 0, of: reply)
    packet.position = position
    packet.duration = 0
    packet.timestamp = ports.now
    packet.flags.insert(.endOfUtterance)
    ports.emit(packet)
    return .again
  }

  private mutating func report(_ ports: inout Ports) {
    guard reportEvery > 0, ports.now >= nextReport else { return }
    let isFirst = nextReport == 0
    nextReport = ports.now &+ reportEvery
    if isFirst { return }
    let (counts, rate) = (player.counts, Double(rate) / 1_000)
    let target = Double(player.target) / 1e6
    let delay = Double(player.delay(at: player.due ?? ports.now)) / 1e6
    let stretched = Double(player.inserted)
    ports.post(0) { event in
      event.field("target", target, decimals: 0)
      event.field("delay", delay, decimals: 1)
      event.field("packets", counts.packets)
      event.field("late", counts.late)
      event.field("duplicates", counts.duplicates)
      event.field("reordered", counts.reordered)
      event.field("damaged", counts.damaged)
      event.field("skipped", counts.skipped)
      event.field("lost", Double(counts.lost) / rate, decimals: 0)
      event.field("recovered", Double(counts.recovered) / rate, decimals: 0)
      event.field("waited", Double(counts.waited) / rate, decimals: 0)
      event.field("stretched", stretched / rate, decimals: 0)
    }
  }
}
