package import MillraceCore
internal import MillraceDSP

/// The engine of a jitter buffer: puts the packets of one source in order and plays them, 10 ms at a time, as float PCM.
///
/// - In: packets of Opus or PCM as they arrive. A packet's position is the sender's time, in samples at the player's rate. Packets may be
///   missing, late, reordered and duplicated. A packet with the flag `silence` follows a pause that its sender did not transmit.
/// - Out: `hop` frames for each call of `step`, which the owner makes every 10 ms from `due` on.
/// - **Delay.** See `JitterEstimator`: a quantile of how late packets arrive. `JitterPolicy` keeps to it by playing up to 35 % faster or
///   slower at constant pitch, which also corrects the drift of the sender's clock.
/// - **Loss.** Audio that is missing while later packets are there is concealed or, for Opus, decoded from the copy in the next packet.
///   While no packet is there at all, the player keeps concealing without advancing in the stream, so that a late burst is played late
///   rather than lost. With `Settings.fades`, concealment becomes silence within a second.
/// - **Bounds.** 64 packets. At 200 ms beyond the longest delay the oldest packets are skipped. A stream that jumps by more than five
///   seconds, or is marked `discontinuity`, starts over. No input can make it fail.
/// - Heap: none after `init`. Not thread-safe. The pools of the packets must outlive it, or be alive when `clear` is called last.
package struct JitterPlayer: ~Copyable {
  /// Delay above the longest at which packets are skipped.
  private static let excess: Nanoseconds = 200_000_000
  /// A jump of positions, in seconds, that starts another stream.
  private static let jump: Int64 = 5

  private let rate: Int
  private let channels: Int
  private let usual: Int
  private let recovers: Bool

  private var estimator: JitterEstimator
  private var steps: JitterPolicy
  private var buffer = JitterBuffer()
  private let decoder: JitterDecoder
  private var stretcher: TimeStretcher
  private var fade: ConcealmentFade?

  /// Position after the last decoded frame; nil before the first packet.
  private var decodedEnd: Int64?
  /// When the next 10 ms are due; nil before the first packet.
  package private(set) var due: Nanoseconds?
  /// Outcomes since the start.
  package private(set) var counts = Counts()
  private var hasJumped = false
  private var ends = UtteranceEnds()
  /// Ends of utterances that have no audio left to play.
  private var emptyEnds = 0

  /// Creates a player without packets.
  /// - Parameters:
  ///   - rate: of positions and of the output in Hz, a multiple of 100 from 8,000 on; for Opus one of its rates.
  ///   - channels: of the output; for PCM also of the packets.
  package init(_ content: Content, rate: Int, channels: Int, _ settings: Settings) throws(NodeProblem) {
    switch content {
    case .opus: decoder = try OpusJitterDecoder(rate: rate, channels: channels)
    case .pcm(let sample, let longest):
      decoder = PCMJitterDecoder(rate: rate, channels: channels, sample: sample, longest: longest)
    }
    self.rate = rate
    self.channels = channels
    usual = rate / 50
    recovers = settings.recovers
    fade = settings.fades ? ConcealmentFade(rate: rate) : nil
    estimator = JitterEstimator(quantile: settings.quantile)
    steps = JitterPolicy(limits: settings.limits)
    stretcher = TimeStretcher(
      rate: rate, channels: channels, capacity: decoder.sound.byteCount / channels / 4 + rate / 10, slew: 0.1)
  }

  // MARK: State

  /// Frames of 10 ms.
  package var hop: Int { stretcher.hop }

  /// Packets that wait.
  package var packetCount: Int { buffer.count }

  /// True while audio, or the end of an utterance, is left to play.
  package var hasSound: Bool {
    buffer.count > 0 || stretcher.buffered >= stretcher.hop || ends.count > 0
  }

  /// The delay that the network asks for.
  package var target: Nanoseconds { estimator.target }

  /// Frames that stretching time has inserted, minus those it has removed.
  package var inserted: Int64 { stretcher.inserted }

  /// How much later the audio due at `time` plays than the fastest packet would allow.
  package func delay(at time: Nanoseconds) -> Nanoseconds {
    guard let end = decodedEnd ?? buffer.nextPosition, let base = estimator.base else { return 0 }
    return time &- .samples(end &- Int64(stretcher.buffered), rate: rate) &- base
  }

  /// When the frame at a position is played, unless the delay changes before; nil before the first packet.
  package func playTime(of position: Int64) -> Nanoseconds? {
    guard let due, let end = decodedEnd ?? buffer.nextPosition else { return nil }
    return due &+ .samples(position &- (end &- Int64(stretcher.buffered)), rate: rate)
  }

  /// Takes the end of an utterance that has no audio left to play.
  package mutating func takeEmptyEnd() -> Bool {
    guard emptyEnds > 0 else { return false }
    emptyEnds -= 1
    return true
  }

  // MARK: Input

  /// Takes a packet. True when it carries audio, whatever becomes of it.
  /// - Parameter arrival: when it arrived, on the clock of `due`.
  package mutating func admit(_ packet: consuming Packet, arrival: Nanoseconds) -> Bool {
    counts.packets += 1
    // Such positions can only come from corrupt data.
    guard packet.position.magnitude < 1 << 44 else {
      counts.damaged += 1
      return false
    }
    if let end = decodedEnd {
      let distance = packet.position &- end
      if packet.flags.contains(.discontinuity) || distance.magnitude > UInt64(Self.jump) * UInt64(rate) {
        restart()
      }
    }
    if packet.flags.contains(.endOfUtterance) { noteEnd(packet) }
    // An empty packet signals a loss, which the gap shows anyway.
    if packet.byteCount == 0 || packet.flags.contains(.lost) { return false }
    estimator.note(media: .samples(packet.position, rate: rate), arrival: arrival)
    if due == nil { due = arrival &+ max(estimator.target, steps.limits.lowerBound) }
    switch buffer.insert(packet, passed: decodedEnd) {
    case .taken: break
    case .reordered: counts.reordered += 1
    case .duplicate: counts.duplicates += 1
    case .late: counts.late += 1
    case .overflow: counts.skipped += 1
    }
    return true
  }

  /// Records the end of an utterance. Without audio to play, it is due at once.
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
    fade?.reset()
    decodedEnd = nil
    due = nil
    hasJumped = true
  }

  /// Discards everything, ends of utterances too, and returns the packets to their pools.
  package mutating func clear() {
    ends.clear()
    restart()
    emptyEnds = 0
  }

  /// The same, for another source: nothing is left of the one before.
  package mutating func reset() {
    clear()
    hasJumped = false
    counts = Counts()
  }

  // MARK: Stepping

  /// Plays the next 10 ms, due at `time`, into the first `hop` frames of `output`: all of them are written.
  package mutating func step(at time: Nanoseconds, into output: inout MutableSpan<Float>) -> Hop {
    // Untransmitted silence is not delay.
    _ = gapAhead()
    skipExcess(at: time)
    var tries = 0
    // Splicing needs slightly more than a hop to choose from.
    while stretcher.buffered < stretcher.hop * 3 && tries < 8 {
      guard fill(isNeeded: stretcher.buffered < stretcher.hop, at: time) else { break }
      tries += 1
    }
    let made = stretcher.read(into: &output)
    for index in made * channels..<stretcher.hop * channels { output[index] = 0 }
    due = time &+ JitterPolicy.length
    defer { hasJumped = false }
    return Hop(hasJumped: hasJumped, endsUtterance: ends.take(playedTo: stretcher.consumed))
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
      queueDecoded()
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
    decoder.concealedGain = fade?.gain ?? 1
    let isGood = decoder.decode(packet)
    if isGood {
      fade?.reset()
    } else {
      counts.damaged += 1
      conceal()
    }
    let length = isGood ? Int64(decoder.count) : Int64(packet.duration > 0 ? packet.duration : usual)
    decodedEnd = start &+ length
    queueDecoded()
  }

  /// Fills the gap before the next packet: from its copy if it carries one, otherwise by 10 ms of concealment.
  private mutating func concealLoss(_ gap: Int64) {
    let end = decodedEnd ?? 0
    var isPause = false
    if let packet = buffer.borrowNext() {
      isPause = packet.flags.contains(.silence)
      decoder.concealedGain = fade?.gain ?? 1
      var isRecovered = false
      if recovers, !isPause {
        isRecovered = decoder.recover(from: packet, wanted: Int(min(gap, Int64(rate))))
      }
      buffer.returnNext(packet)
      if isRecovered {
        fade?.reset()
        counts.recovered += Int64(decoder.count)
        decodedEnd = end &+ Int64(decoder.count)
        return queueDecoded()
      }
    }
    conceal()
    let frames = min(Int64(decoder.count), gap)
    decoder.count = Int(frames)
    if isPause { counts.paused += frames } else { counts.lost += frames }
    decodedEnd = end &+ frames
    queueDecoded()
  }

  /// Extrapolates 10 ms, or less of it the longer it continues.
  private mutating func conceal() {
    guard fade?.isSilent != true else { return decoder.beSilent() }
    decoder.conceal()
    guard var running = fade else { return }
    var sound = unsafe decoder.sound.room(for: Float.self, count: decoder.count * channels)
    running.apply(to: &sound, channels: channels)
    fade = running
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
}
