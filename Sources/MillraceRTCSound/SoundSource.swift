package import MillraceCodecs
package import MillraceCore
internal import MillraceDSP
internal import MillraceRTCWire

/// One source of received sound: its jitter buffer, and its way to the rate and the channels of a mix.
///
/// It is made for a codec, and serves one source after another. Node's thread; no heap after `init`.
package final class SoundSource {
  /// Bytes of the largest packet it keeps: 120 ms of 16-bit PCM at 48 kHz in stereo, or an Opus packet.
  package static let packetBytes = 23_040
  /// Packets that it keeps at most: those of its jitter buffer, and one that comes.
  package static let packets = JitterBuffer.capacity + 1
  /// A jump of timestamps, in seconds, that begins another stream.
  private static let jump: Int64 = 5
  /// How much longer than its timestamps say a source may be quiet before it begins another stream.
  private static let longestStall: Nanoseconds = .milliseconds(1_000)
  /// How far from the present an arrival may be: clocks that do not go together must not add delay.
  private static let oldest: Nanoseconds = .milliseconds(1_000)
  /// How far from the last known capture times are derived.
  private static let captureReach: Int64 = 60_000_000_000

  package let codec: SoundCodec
  /// The source it serves; nil: none.
  package private(set) var id: UInt64?
  /// Nothing more comes; what is there is played.
  package var hasEnded = false
  /// As in `SoundDownHead`, of the latest packet.
  package var medium: UInt8 = 0
  /// When the latest packet came.
  package private(set) var heardAt: Nanoseconds = 0
  package private(set) var level = Decibels.floor
  package private(set) var speech = SpeechLevel()
  /// Packets that could not be read.
  private var broken = 0

  private let pool: SoundPool
  private let rate: Int
  private let channels: Int
  private let mixChannels: Int
  private var player: JitterPlayer
  private var resampler: Resampler
  private let played: FrameBuffer
  private let resampled: FrameBuffer
  private let mixHop: Int

  /// The timestamp that is position 0; nil before the first packet.
  private var base: Int64?
  /// The latest packet: its number, its timestamp and the one after it.
  private var newest: (sequence: Int64, start: Int64, end: Int64) = (0, 0, 0)
  /// A position, and when it was captured by the sender's wall clock.
  private var anchor: (position: Int64, capture: Int64)?
  private var energy = (squares: 0.0, samples: 0)

  /// - Parameters:
  ///   - rate: of the mix in Hz: one of Opus.
  ///   - channels: of the mix.
  ///   - pool: has `packets` blocks for it.
  /// - Throws: when the codec cannot be played.
  package init(
    _ codec: SoundCodec, rate mixRate: Int, channels mixChannels: Int, pool: SoundPool,
    _ settings: JitterPlayer.Settings
  ) throws(NodeProblem) {
    self.codec = codec
    self.pool = pool
    self.mixChannels = mixChannels
    let isOpus = codec.kind == .opus
    rate = isOpus ? mixRate : codec.clockRate
    channels = isOpus ? mixChannels : codec.channels
    mixHop = mixRate / 100
    player = try JitterPlayer(
      isOpus ? .opus : .pcm(.s16, longest: rate * OpusRates.longestPacket / 1_000), rate: rate,
      channels: channels, settings)
    do throws(ResamplerProblem) {
      resampler = try Resampler(from: rate, to: mixRate, channels: channels)
    } catch {
      throw NodeProblem(error.description)
    }
    played = FrameBuffer(byteCount: rate / 100 * channels * 4)
    resampled = FrameBuffer(byteCount: mixHop * channels * 4)
  }

  // The blocks return before the pool can go.
  deinit { player.clear() }

  /// True for codecs that can be played.
  package static func canPlay(_ codec: SoundCodec) -> Bool {
    switch codec.kind {
    case .opus: codec.clockRate == OpusPayload.clockRate
    case .pcmu, .pcma, .l16:
      (1...2).contains(codec.channels) && (8_000...48_000).contains(codec.clockRate)
        && codec.clockRate % 100 == 0
    case .telephone: false
    }
  }

  /// Serves a source from now on.
  package func begin(_ id: UInt64, at now: Nanoseconds) {
    self.id = id
    (hasEnded, heardAt, level, speech, broken) = (false, now, Decibels.floor, SpeechLevel(), 0)
    (base, anchor, energy) = (nil, nil, (0, 0))
    player.reset()
    resampler.reset()
  }

  /// The source is gone.
  package func end() {
    id = nil
    player.clear()
  }

  /// Discards what was to be played.
  package func discard() {
    player.clear()
    (base, anchor) = (nil, nil)
  }

  // MARK: Input

  /// Takes a packet of the source.
  package func take(_ head: SoundDownHead, _ payload: Span<UInt8>, at now: Nanoseconds) {
    let quiet = now &- heardAt
    heardAt = now
    hasEnded = false
    guard let frames = frameCount(of: payload) else { return broken += 1 }
    let bytes = codec.kind == .opus ? payload.count : frames * codec.channels * 2
    guard let block = pool.take(bytes) else { return broken += 1 }
    let position = rescale(place(head, after: quiet), from: codec.clockRate, to: rate)
    let length = Int(rescale(Int64(frames), from: codec.clockRate, to: rate))
    var packet = Packet(block, byteCount: 0)
    write(payload, frames, into: &packet)
    packet.position = position
    packet.duration = length
    let follows = head.sequence == newest.sequence &+ 1 && head.timestamp > newest.end
    // Nothing is missing between the numbers, or the sender says so: what is not there was not sent.
    if head.marker || follows { packet.flags.insert(.silence) }
    newest = (head.sequence, head.timestamp, head.timestamp &+ Int64(frames))
    if head.capture != 0 { anchor = (position, head.capture) }
    _ = player.admit(packet, arrival: max(now &- Self.oldest, min(head.arrival, now)))
  }

  /// Samples per channel of a payload at the codec's clock; nil: it is broken.
  private func frameCount(of payload: Span<UInt8>) -> Int? {
    if codec.kind == .opus {
      guard payload.count <= Self.packetBytes else { return nil }
      do throws(PayloadProblem) { return try OpusPayload(parsing: payload).samples } catch { return nil }
    }
    let bytes = codec.kind == .l16 ? L16.bytesPerSample : 1
    let frames = payload.count / (bytes * codec.channels)
    return frames > 0 && frames <= rate * OpusRates.longestPacket / 1_000 ? frames : nil
  }

  /// The timestamp of a packet, counted from the beginning of its stream.
  /// - Parameter quiet: time since the packet before it.
  private func place(_ head: SoundDownHead, after quiet: Nanoseconds) -> Int64 {
    let distance = head.timestamp &- newest.end
    let jumps = distance.magnitude > UInt64(Self.jump) * UInt64(codec.clockRate)
    // Its clock has stood still, or the network has: either way the delay of before counts no more.
    let stalls = !jumps && quiet &- .samples(distance, rate: codec.clockRate) > Self.longestStall
    guard let base, !head.restarts, !jumps, !stalls else {
      discard()
      self.base = head.timestamp
      newest = (head.sequence, head.timestamp, head.timestamp)
      return 0
    }
    return head.timestamp &- base
  }

  private func write(_ payload: Span<UInt8>, _ frames: Int, into packet: inout Packet) {
    guard codec.kind != .opus else {
      packet.setByteCount(payload.count)
      var target = packet.mutableSamples(of: UInt8.self)
      for index in payload.indices { target[index] = payload[index] }
      return
    }
    packet.setByteCount(frames * codec.channels * 2)
    var target = packet.mutableSamples(of: Int16.self)
    switch codec.kind {
    case .pcmu: _ = G711.decode(payload, .mu, into: &target)
    case .pcma: _ = G711.decode(payload, .a, into: &target)
    default: _ = L16.decode(payload, into: &target)
    }
  }

  // MARK: Output

  /// When its first 10 ms are due; nil before the first packet.
  package var due: Nanoseconds? { player.due }

  /// True while something is left to play.
  package var hasSound: Bool { player.hasSound }

  /// Adds the 10 ms that are due at `time` to a mix; nothing before its first packet is due.
  package func mix(at time: Nanoseconds, into sum: inout MutableSpan<Float>) {
    guard let due = player.due, due <= time else { return }
    var hop = unsafe played.room(for: Float.self)
    _ = player.step(at: time, into: &hop)
    let sound = unsafe played.contents(of: Float.self, count: hop.count)
    let measured = SampleMath.energy(sound)
    energy = (energy.squares + measured.squares, energy.samples + sound.count)
    var target = unsafe resampled.room(for: Float.self)
    let made = resampler.process(sound, into: &target).produced
    let result = unsafe resampled.contents(of: Float.self, count: made * channels)
    if channels == mixChannels && made == mixHop {
      SampleMath.mix(result, into: &sum)
    } else {
      add(result, made, to: &sum)
    }
  }

  /// Adds with other channels: two become their mean, one is doubled.
  private func add(_ sound: Span<Float>, _ frames: Int, to sum: inout MutableSpan<Float>) {
    for frame in 0..<min(frames, mixHop) {
      var mean: Float = 0
      for channel in 0..<channels { mean += sound[frame * channels + channel] }
      mean /= Float(channels)
      for channel in 0..<mixChannels {
        let place = frame * mixChannels + channel
        sum[place] = sum[place] + (channels == mixChannels ? sound[place] : mean)
      }
    }
  }

  // MARK: Measurement

  /// Ends a stretch of measurement.
  package func measure(milliseconds: Int) {
    level =
      energy.samples > 0
      ? Decibels.decibels(power: energy.squares / Double(energy.samples)) : Decibels.floor
    energy = (0, 0)
    speech.note(level, milliseconds: milliseconds)
  }

  /// How much later it plays than the fastest packet would allow.
  package var delay: Nanoseconds { player.due.map { player.delay(at: $0) } ?? 0 }

  /// When sound is played that was captured at a time of the sender's wall clock; nil: not known. Without what follows the player.
  package func playTime(ofCapture capture: Int64) -> Nanoseconds? {
    guard let anchor else { return nil }
    let distance = capture &- anchor.capture
    guard distance.magnitude < UInt64(Self.captureReach) else { return nil }
    let position = anchor.position &+ distance * Int64(rate) / 1_000_000_000
    return player.playTime(of: position).map { $0 + resampler.latencyNanoseconds }
  }

  /// Adds what became of its packets.
  package func add(to all: inout HeardSound) {
    all.add(player.counts, rate: rate)
    all.damaged += broken
    all.packets += broken
    all.delay = max(all.delay, delay)
  }
}
