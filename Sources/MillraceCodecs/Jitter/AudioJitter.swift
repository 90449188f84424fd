public import MillraceCore
internal import MillraceDSP

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
  /// Delay above the longest at which packets are skipped.
  private static let excess: Nanoseconds = 200_000_000
  /// A jump of positions, in seconds, that starts another stream.
  private static let jump: Int64 = 5

  private let rate: Int
  private let channels: Int
  private let usual: Int
  private let recovers: Bool
  private let reportEvery: Nanoseconds

  private var estimator: JitterEstimator
  private var steps: JitterPolicy
  private var buffer = JitterBuffer()
  private let decoder: JitterDecoder
  private var stretcher: TimeStretcher

  /// Position after the last decoded frame; nil before the first packet.
  private var decodedEnd: Int64?
  /// When the next 10 ms are due; nil before the first packet.
  private var due: Nanoseconds?
  private var position: Int64 = 0
  private var hasJumped = false
  private var ends = UtteranceEnds()
  /// Ends of utterances that have no audio left to play; emitted as empty packets.
  private var emptyEnds = 0
  private var reply = HeldReply()
  private var nextReport: Nanoseconds = 0
  private var counts = Counts()

  /// Outcomes of packets and of time, since the start.
  struct Counts: Equatable {
    var packets = 0
    var late = 0
    var duplicates = 0
    var reordered = 0
    var damaged = 0
    var skipped = 0
    /// Frames concealed because they were lost, recovered from copies, and concealed while no packet was there.
    var lost: Int64 = 0
    var recovered: Int64 = 0
    var waited: Int64 = 0
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, .f32) = setup.outputFormat(), let shape = setup.inputs[0].shape
    else {
      throw NodeProblem("\"\(setup.name)\" produces float PCM")
    }
    let values = setup.parameters
    func time(_ name: String) -> Nanoseconds { Nanoseconds((values.number(name) * 1e6).rounded()) }
    switch shape.format {
    case .opus: decoder = try OpusJitterDecoder(rate: rate, channels: channels)
    case .pcm(_, _, let sample):
      decoder = PCMJitterDecoder(
        rate: rate, channels: channels, sample: sample, longest: shape.frames ?? rate)
    default: throw NodeProblem("\"\(setup.name)\" takes Opus or PCM")
    }
    self.rate = rate
    self.channels = channels
    usual = rate / 50
    recovers = values.bool("fec")
    reportEvery = time("report")
    estimator = JitterEstimator(quantile: values.number("quantile"))
    steps = JitterPolicy(limits: time("least")...max(time("least"), time("longest")))
    stretcher = TimeStretcher(
      rate: rate, channels: channels, capacity: decoder.sound.byteCount / channels / 4 + rate / 10, slew: 0.1)
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { admit(packet, now: ports.now) }
    if emptyEnds > 0 { return try emitEnd(&ports) }
    guard let time = due else { return .done }
    guard time <= ports.now else {
      ports.wake(at: time)
      return .done
    }
    try step(&ports)
    report(&ports)
    ports.wake(at: due ?? ports.now)
    return .done
  }

  /// Plays the rest at its time.
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { admit(packet, now: ports.now) }
    if emptyEnds > 0 { return try emitEnd(&ports) }
    guard let time = due, buffer.count > 0 || stretcher.buffered >= stretcher.hop || ends.count > 0 else {
      return .ended
    }
    if time <= ports.now { try step(&ports) }
    ports.wake(at: due ?? ports.now)
    return .again
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    ends.clear()
    restart()
    emptyEnds = 0
  }

  // MARK: Input

  private mutating func admit(_ packet: consuming Packet, now: Nanoseconds) {
    counts.packets += 1
    // Such positions can only come from corrupt data.
    guard packet.position.magnitude < 1 << 44 else { return counts.damaged += 1 }
    if let end = decodedEnd {
      let distance = packet.position &- end
      if packet.flags.contains(.discontinuity) || distance.magnitude > UInt64(Self.jump) * UInt64(rate) {
        restart()
      }
    }
    if packet.flags.contains(.endOfUtterance) { noteEnd(packet) }
    // An empty packet signals a loss, which the gap shows anyway.
    if packet.byteCount == 0 || packet.flags.contains(.lost) { return }
    reply.follow(packet)
    estimator.note(media: .samples(packet.position, rate: rate), arrival: now)
    if due == nil { due = now &+ max(estimator.target, steps.limits.lowerBound) }
    switch buffer.insert(packet, passed: decodedEnd) {
    case .taken: break
    case .reordered: counts.reordered += 1
    case .duplicate: counts.duplicates += 1
    case .late: counts.late += 1
    case .overflow: counts.skipped += 1
    }
  }

  /// Records the end of an utterance. Without audio to play, it is emitted at once.
  private mutating func noteEnd(_ packet: borrowing Packet) {
    guard packet.byteCount > 0 || due != nil else { return emptyEnds += 1 }
    let length = packet.byteCount > 0 && packet.duration <= 0 ? usual : packet.duration
    ends.note(packet.position &+ Int64(length))
    passEnds()
  }

  /// Passes on ends whose audio has been decoded.
  private mutating func passEnds() {
    guard let decodedEnd else { return }
    ends.pass(upTo: decodedEnd, playedAt: stretcher.consumed &+ Int64(stretcher.buffered))
  }

  /// Starts over with the next packet.
  private mutating func restart() {
    emptyEnds += ends.count
    ends.clear()
    buffer.clear()
    decoder.reset()
    stretcher.reset()
    estimator.reset()
    steps.reset()
    decodedEnd = nil
    due = nil
    hasJumped = true
  }

  // MARK: Stepping

  /// How much later the audio due at `time` plays than the fastest packet would allow.
  private func delay(at time: Nanoseconds) -> Nanoseconds {
    guard let end = decodedEnd ?? buffer.nextPosition, let base = estimator.base else { return 0 }
    return time &- .samples(end &- Int64(stretcher.buffered), rate: rate) &- base
  }

  /// Emits the next 10 ms.
  private mutating func step(_ ports: inout Ports) throws(NodeFault) {
    let time = due ?? ports.now
    // Untransmitted silence is not delay.
    _ = gapAhead()
    skipExcess(at: time)
    var tries = 0
    // Splicing needs slightly more than a hop to choose from.
    while stretcher.buffered < stretcher.hop * 3 && tries < 8 {
      guard fill(isNeeded: stretcher.buffered < stretcher.hop, at: time) else { break }
      tries += 1
    }
    try emit(time, &ports)
    due = time &+ JitterPolicy.length
  }

  /// Decodes or conceals into the stretcher; false when nothing more is there and nothing is needed.
  private mutating func fill(isNeeded: Bool, at time: Nanoseconds) -> Bool {
    let gap = gapAhead()
    let hasNext = buffer.count > 0 && gap == 0
    if !isNeeded && !hasNext { return false }
    let step = steps.next(
      hasNext: hasNext, hasLater: nextPosition != nil, delay: delay(at: time), target: estimator.target)
    switch step {
    case .play(let speed):
      stretcher.setSpeed(speed)
      decodeNext()
    case .concealLoss: concealLoss(gap)
    case .wait:
      conceal()
      counts.waited += Int64(decoder.count)
    }
    return true
  }

  /// The next position in the stream: a packet, or an earlier end of an utterance, which also shows that audio is missing.
  private var nextPosition: Int64? {
    let packet = buffer.nextPosition
    return ends.next.map { min($0, packet ?? $0) } ?? packet
  }

  /// Frames missing before the next position, minus those already covered by concealment.
  private mutating func gapAhead() -> Int64 {
    guard let next = nextPosition else { return 0 }
    let end = decodedEnd ?? buffer.nextPosition ?? 0
    guard next > end else { return 0 }
    let gap = next &- end
    let covered = steps.credit(for: .samples(gap, rate: rate)) &* Int64(rate) / 1_000_000_000
    // Rounding leaves less than one sample; that is not a loss.
    let isCovered = covered >= gap - 1
    decodedEnd = isCovered ? next : end &+ covered
    passEnds()
    return isCovered ? gapAhead() : gap &- covered
  }

  private mutating func decodeNext() {
    guard let packet = buffer.take() else { return }
    let start = packet.position
    let isGood = decoder.decode(packet)
    if !isGood {
      counts.damaged += 1
      decoder.conceal()
    }
    let length = isGood ? Int64(decoder.count) : Int64(packet.duration > 0 ? packet.duration : usual)
    decodedEnd = start &+ length
    queueDecoded()
  }

  /// Fills the gap before the next packet: from its copy if it carries one, otherwise by 10 ms of concealment.
  private mutating func concealLoss(_ gap: Int64) {
    let end = decodedEnd ?? 0
    if recovers, let packet = buffer.borrowNext() {
      let isRecovered = decoder.recover(from: packet, wanted: Int(min(gap, Int64(rate))))
      buffer.returnNext(packet)
      if isRecovered {
        counts.recovered += Int64(decoder.count)
        decodedEnd = end &+ Int64(decoder.count)
        return queueDecoded()
      }
    }
    decoder.conceal()
    let frames = min(Int64(decoder.count), gap)
    decoder.count = Int(frames)
    counts.lost += frames
    decodedEnd = end &+ frames
    queueDecoded()
  }

  private mutating func conceal() {
    decoder.conceal()
    queueDecoded()
  }

  private mutating func queueDecoded() {
    defer { passEnds() }
    _ = stretcher.write(unsafe decoder.sound.contents(of: Float.self, count: decoder.count * channels))
  }

  /// Skips the oldest packets after a burst that cannot be caught up with in time.
  private mutating func skipExcess(at time: Nanoseconds) {
    guard delay(at: time) > steps.limits.upperBound &+ Self.excess else { return }
    let target = min(max(estimator.target, steps.limits.lowerBound), steps.limits.upperBound)
    while buffer.count > 1, delay(at: time) > target {
      guard let packet = buffer.take() else { return }
      counts.skipped += 1
      decodedEnd = packet.position &+ Int64(packet.duration > 0 ? packet.duration : usual)
      passEnds()
      hasJumped = true
    }
  }

  // MARK: Output

  private mutating func emit(_ time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: stretcher.hop * channels * 4, of: reply)
    var samples = packet.mutableSamples(of: Float.self)
    let made = stretcher.read(into: &samples)
    for index in made * channels..<stretcher.hop * channels { samples[index] = 0 }
    packet.position = position
    packet.duration = stretcher.hop
    packet.timestamp = time
    if hasJumped { packet.flags.insert(.discontinuity) }
    if ends.take(playedTo: stretcher.consumed) { packet.flags.insert(.endOfUtterance) }
    hasJumped = false
    position &+= Int64(stretcher.hop)
    ports.emit(packet)
  }

  /// Emits the end of an utterance as an empty packet.
  private mutating func emitEnd(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    emptyEnds -= 1
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
    let (counts, rate) = (counts, Double(rate) / 1_000)
    let (target, delay) = (Double(estimator.target) / 1e6, Double(delay(at: due ?? ports.now)) / 1e6)
    let stretched = Double(stretcher.inserted)
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
