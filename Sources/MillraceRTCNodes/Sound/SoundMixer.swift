internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
internal import MillraceRTCSound

/// Plays all sources of received sound together: a jitter buffer each, their sum, and a limiter, in packets of 10 ms.
///
/// - The grid of 10 ms begins with the first source, and does not end: without sound there is silence.
/// - So many sources are heard as it is made for. A source that has ended, or was silent for 25 s, makes room.
/// - Node's thread. Heap: when a source begins whose codec no free place has had yet; none for packets.
final class SoundMixer {
  /// Sources at the same time, where nobody says how many there may be.
  static let usualSources = 8
  /// A source that was silent for as long makes room: five intervals of reports (RFC 3550 section 6.3.5).
  private static let forgottenAfter: Nanoseconds = .milliseconds(25_000)
  private static let hop: Nanoseconds = .milliseconds(10)
  /// Being late by more, the grid jumps to the present.
  private static let mostLate: Nanoseconds = .milliseconds(1_000)
  /// Hops of a measurement of levels: 200 ms.
  private static let measuredHops = 20
  /// The limiter: just below full scale, 2 ms ahead, back within 50 ms.
  private static let ceiling = -0.1

  private let rate: Int
  private let mixRate: Int
  private let channels: Int
  private let sample: SampleType
  private let settings: JitterPlayer.Settings
  /// Sources at the same time.
  private let sources: Int
  private let pool: SoundPool
  private var places: [SoundSource] = []
  private var resampler: Resampler
  private var limiter: Limiter
  private let sum: FrameBuffer
  private let made: FrameBuffer
  private let frames: Int

  /// When the next 10 ms are due; nil before the first source.
  private(set) var due: Nanoseconds?
  private var position: Int64 = 0
  private var hasJumped = false
  private var hops = 0
  /// Measurements of levels since the start.
  private(set) var measurements = 0
  private var unheard = 0
  /// Counts of sources that have gone.
  private var gone = HeardSound()
  /// Media that are also emitted by themselves.
  private var taps: [SoundTap] = []

  /// - Parameters:
  ///   - shape: of the output: PCM of 8 to 96 kHz, 1 or 2 channels, in packets of at least 10 ms.
  ///   - taps: outputs of single media, with the same rate and channels.
  ///   - sources: heard at the same time. Each reserves memory, which it takes when it is used.
  init(
    _ shape: OutputShape, _ settings: JitterPlayer.Settings, taps: [SoundTapRequest] = [],
    sources: Int = SoundMixer.usualSources
  ) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = shape.format, (8_000...96_000).contains(rate),
      rate % 100 == 0, (1...2).contains(channels)
    else {
      throw NodeProblem(
        "received sound cannot be \(shape.format)", parameter: "rate",
        cure: "set a multiple of 100 Hz from 8000 on, and 1 or 2 channels")
    }
    self.rate = rate
    self.channels = channels
    self.sample = sample
    self.settings = settings
    self.sources = max(1, sources)
    pool = SoundPool(sources: max(1, sources))
    frames = rate / 100
    mixRate = OpusRates.holding(rate)
    do throws(ResamplerProblem) {
      resampler = try Resampler(from: mixRate, to: rate, channels: channels)
    } catch {
      throw NodeProblem(error.description, parameter: "rate")
    }
    limiter = Self.limiter(rate: rate, channels: channels)
    for tap in taps {
      let made = try SoundTap(
        tap.output, medium: tap.medium, tap.sample, rate: rate, mixRate: mixRate, channels: channels)
      self.taps.append(made)
    }
    sum = FrameBuffer(byteCount: mixRate / 100 * channels * 4)
    made = FrameBuffer(byteCount: frames * channels * 4)
    places.reserveCapacity(max(1, sources))
    // Nearly always the first source.
    places.append(
      try SoundSource(.opus, rate: mixRate, channels: channels, pool: pool, settings))
  }

  static func limiter(rate: Int, channels: Int) -> Limiter {
    Limiter(
      channels: channels, ceiling: Decibels.amplitude(decibels: ceiling), lookAhead: rate / 500,
      release: rate / 20)
  }

  // MARK: Input

  /// Takes a packet.
  func take(_ head: SoundDownHead, _ payload: Span<UInt8>, at now: Nanoseconds) {
    guard let codec = SoundCodec(packed: head.codec), SoundSource.canPlay(codec),
      let place = findPlace(head.source, codec, at: now)
    else { return unheard += 1 }
    place.medium = head.medium
    place.take(head, payload, at: now)
    if due == nil { due = place.due }
  }

  /// A source has ended; what is left of it is played.
  func end(_ id: UInt64) {
    for index in 0..<places.count where places[index].id == id { places[index].hasEnded = true }
  }

  /// The index of the first place that a test holds for.
  ///
  /// By hand, as all loops here: iterating an array of references, and so `first(where:)`, makes a heap request an element in debug builds.
  private func indexOfPlace(where test: (SoundSource) -> Bool) -> Int? {
    for index in 0..<places.count where test(places[index]) { return index }
    return nil
  }

  private func findPlace(_ id: UInt64, _ codec: SoundCodec, at now: Nanoseconds) -> SoundSource? {
    if let index = indexOfPlace(where: { $0.id == id }) {
      let place = places[index]
      if place.codec == codec { return place }
      // It has changed its codec.
      release(place)
    }
    guard let place = freePlace(codec, at: now) else { return nil }
    place.begin(id, at: now)
    return place
  }

  /// A place for a codec: a free one, a new one, or that of a source which is not heard any more.
  private func freePlace(_ codec: SoundCodec, at now: Nanoseconds) -> SoundSource? {
    if let free = indexOfPlace(where: { $0.id == nil && $0.codec == codec }) { return places[free] }
    var index = places.count
    if index == sources {
      let free = indexOfPlace { $0.id == nil }
      guard let old = free ?? indexOfPlace(where: { isOver($0, now) }) else { return nil }
      release(places[old])
      if places[old].codec == codec { return places[old] }
      index = old
    }
    do throws(NodeProblem) {
      let made = try SoundSource(codec, rate: mixRate, channels: channels, pool: pool, settings)
      if index < places.count { places[index] = made } else { places.append(made) }
      return made
    } catch { return nil }
  }

  private func isOver(_ place: SoundSource, _ now: Nanoseconds) -> Bool {
    place.hasEnded || now &- place.heardAt >= Self.forgottenAfter
  }

  private func release(_ place: SoundSource) {
    guard place.id != nil else { return }
    place.add(to: &gone)
    gone.delay = 0
    place.end()
  }

  /// Discards everything that was to be played.
  func discard() { for index in 0..<places.count { places[index].discard() } }

  // MARK: Output

  /// Emits the 10 ms that are due. The output has room.
  /// - Parameter output: nil: the mix is not wanted, only single media are.
  func emit(_ ports: inout Ports, _ output: Int?, of reply: HeldReply) throws(NodeFault) {
    guard let planned = due else { return }
    let time = catchUp(planned, at: ports.now)
    mix(at: time)
    if let output {
      var packet = try ports.makePacket(output, bytes: frames * channels * sample.byteCount, of: reply)
      Self.write(unsafe made.contents(of: Float.self, count: frames * channels), sample, into: &packet)
      packet.position = position
      packet.duration = frames
      packet.timestamp = time
      if hasJumped { packet.flags.insert(.discontinuity) }
      ports.emit(packet, to: output)
    }
    for index in 0..<taps.count {
      try taps[index].emit(&ports, position: position, at: time, hasJumped: hasJumped)
    }
    hasJumped = false
    position &+= Int64(frames)
    due = time &+ Self.hop
    measure(at: time)
  }

  /// The time to play at: the planned one, unless that is long past.
  private func catchUp(_ time: Nanoseconds, at now: Nanoseconds) -> Nanoseconds {
    guard now &- time > Self.mostLate else { return time }
    let skipped = (now &- time) / Self.hop
    position &+= skipped * Int64(frames)
    hasJumped = true
    return time &+ skipped * Self.hop
  }

  private func mix(at time: Nanoseconds) {
    var total = unsafe sum.room(for: Float.self)
    for index in total.indices { total[index] = 0 }
    for index in 0..<taps.count { taps[index].clear() }
    for index in 0..<places.count where places[index].id != nil {
      let place = places[index]
      if let tap = tap(of: place.medium) {
        tap.mix(place, at: time)
      } else {
        place.mix(at: time, into: &total)
      }
    }
    for index in 0..<taps.count { taps[index].add(to: &total) }
    let mixed = unsafe sum.contents(of: Float.self, count: total.count)
    var target = unsafe made.room(for: Float.self)
    let count = resampler.process(mixed, into: &target).produced * channels
    for index in count..<target.count { target[index] = 0 }
    limiter.process(&target)
  }

  private func tap(of medium: UInt8) -> SoundTap? {
    for index in 0..<taps.count where taps[index].medium == medium { return taps[index] }
    return nil
  }

  /// Writes samples into a packet of their number.
  static func write(_ sound: Span<Float>, _ sample: SampleType, into packet: inout Packet) {
    switch sample {
    case .s16:
      var target = packet.mutableSamples(of: Int16.self)
      SampleConversion.convert(sound, into: &target)
    case .f32:
      var target = packet.mutableSamples(of: Float.self)
      for index in sound.indices { target[index] = sound[index] }
    }
  }

  /// Ends a stretch of measurement when it is long enough, and the sources that are not heard any more.
  private func measure(at now: Nanoseconds) {
    hops += 1
    guard hops == Self.measuredHops else { return }
    hops = 0
    measurements += 1
    for index in 0..<places.count where places[index].id != nil {
      let place = places[index]
      place.measure(milliseconds: Self.measuredHops * 10)
      if now &- place.heardAt >= Self.forgottenAfter || place.hasEnded && !place.hasSound { release(place) }
    }
  }

  // MARK: State

  /// Sources that are heard now.
  var sourceCount: Int {
    var count = 0
    for index in 0..<places.count where places[index].id != nil { count += 1 }
    return count
  }

  /// Calls `body` with each source that is heard.
  func forEachSource(_ body: (HeardSource) -> Void) {
    for index in 0..<places.count {
      let place = places[index]
      guard let id = place.id else { continue }
      body(
        HeardSource(
          source: id, level: place.level, isSpeaking: place.speech.isSpeaking, delay: place.delay))
    }
  }

  /// True while something is left to play.
  var hasSound: Bool { indexOfPlace { $0.id != nil && $0.hasSound } != nil }

  /// When sound of a session is played that was captured at a time of its sender's wall clock; nil: not known.
  /// - Parameter medium: in which the sound comes; nil: any.
  func playTime(ofCapture capture: Int64, session: UInt64?, medium: UInt8? = nil) -> Nanoseconds? {
    for index in 0..<places.count {
      let place = places[index]
      guard let id = place.id, session == nil || id >> 32 == session,
        medium == nil || place.medium == medium, let time = place.playTime(ofCapture: capture)
      else { continue }
      return time + resampler.latencyNanoseconds + .samples(Int64(limiter.latencyFrames), rate: rate)
    }
    return nil
  }

  /// What became of all that was received.
  var counts: HeardSound {
    var all = gone
    for index in 0..<places.count where places[index].id != nil { places[index].add(to: &all) }
    all.unheard += unheard
    return all
  }
}
