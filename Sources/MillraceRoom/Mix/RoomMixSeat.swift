internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
package import MillraceRTCSound

/// The place of a member in the mix of its room. On the thread of its `RoomMixer`.
package final class RoomMixSeat {
  /// Which encoder a member's packets come from.
  enum Stream { case none, shared, own }

  /// A voice is active from here on, in dBFS.
  private static let threshold = -60.0
  /// Frames below it after which it is not any more: half a second.
  private static let hangover = 25
  /// How slowly loudness falls, in dB a frame: a pause between words counts little.
  private static let decay = 0.5
  /// Frames for which a member keeps its own stream after its voice was in the sum: what is in the memory of the shared encoder by then
  /// lies further back than encoders (6.5 ms) and their limiter (2 ms) look.
  private static let apart = 3
  /// Frames without anybody that are still sent after the last voice, so that decoders come to rest: a fifth of a second.
  static let restFrames = 10

  /// Nil: the member has not sent anything that can be played.
  private var source: SoundSource?
  private let own = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private var ownEncoder: MixEncoder?
  /// Samples that were not sent since the latest packet.
  private var pause = 0
  private var softFrames = RoomMixSeat.hangover
  private var apartFrames = 0
  /// Frames for which nobody else was heard.
  private var quietFrames = RoomMixSeat.restFrames + 1
  /// The highest level since `takeLevel`.
  private var highest = Decibels.floor
  /// Counts of sources that have gone, and packets of other codecs.
  private var gone = HeardSound()

  /// Takes the mix; nil: nobody does.
  package private(set) var listener: (any RoomMixListener)?
  /// Which encoder the latest packet came from.
  var stream = Stream.none
  /// Its voice is in the sum of this frame, and was in that of the one before.
  var isHeard = false
  private(set) var wasHeard = false
  private var isInSum = false
  /// Its voice is loud enough to be heard.
  private(set) var isActive = false
  /// Of its voice, in dBFS: the level, slowly falling.
  private(set) var loudness = Decibels.floor

  init() {}

  /// The member hears the mix from now on, by a decoder that has heard nothing; nil: it does not.
  package func setListener(_ listener: (any RoomMixListener)?) {
    self.listener = listener
    stream = .none
  }

  // MARK: In

  func take(
    _ head: SoundDownHead, _ payload: Span<UInt8>, _ settings: RoomMixSettings, at now: Nanoseconds
  ) {
    guard let codec = SoundCodec(packed: head.codec), codec.kind == .opus, let source = makeSource(settings)
    else { return gone.unheard += 1 }
    if source.id != head.source {
      source.add(to: &gone)
      gone.delay = 0
      source.begin(head.source, at: now)
    }
    source.take(head, payload, at: now)
  }

  /// The member has ended its sound, and what is left of it is not played.
  package func endSource() {
    source?.end()
    quieten()
  }

  /// Discards what little is left to play: the next packet begins another stream.
  func sleep() {
    source?.discard()
    quieten()
  }

  private func quieten() {
    (softFrames, isActive, isHeard) = (Self.hangover, false, false)
    (loudness, highest) = (Decibels.floor, Decibels.floor)
  }

  private func makeSource(_ settings: RoomMixSettings) -> SoundSource? {
    if let source { return source }
    do throws(NodeProblem) {
      let made = try SoundSource(
        .opus, rate: RoomMixer.rate, channels: 1, pool: SoundPool(sources: 1), settings.player)
      source = made
      return made
    } catch { return nil }
  }

  /// Something is left to play.
  var hasSound: Bool {
    guard let source, source.id != nil else { return false }
    return source.hasSound || isActive
  }

  /// Plays 20 ms.
  func play(at time: Nanoseconds) {
    wasHeard = isInSum
    guard let source, source.id != nil else { return }
    var target = unsafe own.room(for: Float.self)
    for index in target.indices { target[index] = 0 }
    let half = RoomMixer.frame / 2
    var first = unsafe own.room(for: Float.self, count: half)
    source.mix(at: time - RoomMixer.hop, into: &first)
    var second = unsafe own.room(for: Float.self, from: half, count: half)
    source.mix(at: time, into: &second)
    // A stream that was made to be decoded far above full scale would turn all others down.
    for index in target.indices { target[index] = max(-1, min(1, SampleMath.sanitized(target[index]))) }
    let measured = SampleMath.energy(unsafe sound())
    let level = Decibels.decibels(power: measured.squares / Double(RoomMixer.frame))
    loudness = max(level, loudness - Self.decay)
    highest = max(highest, level)
    softFrames = level > Self.threshold ? 0 : min(softFrames + 1, Self.hangover)
    isActive = softFrames < Self.hangover
  }

  /// What the member sent in this frame.
  @unsafe
  @_lifetime(immortal)
  func sound() -> Span<Float> { unsafe own.contents(of: Float.self, count: RoomMixer.frame) }

  /// The highest level since the last call, in dBFS; nil: it has not spoken.
  package func takeLevel() -> Double? {
    defer { highest = Decibels.floor }
    return highest > SpeechLevel.threshold ? highest : nil
  }

  /// What became of what it has sent.
  package var counts: HeardSound {
    var all = gone
    source?.add(to: &all)
    return all
  }

  // MARK: Out

  /// Takes note of a frame.
  /// - Parameter others: that are heard in it.
  func note(others: Int) {
    isInSum = isHeard
    apartFrames = isHeard ? Self.apart : max(0, apartFrames - 1)
    quietFrames = others > 0 ? 0 : min(quietFrames + 1, Self.restFrames + 1)
  }

  /// This frame is for it.
  var takesFrame: Bool { listener != nil && quietFrames <= Self.restFrames }

  /// It needs a stream of its own: its voice is in the sum, or was there a moment ago.
  var isApart: Bool { apartFrames > 0 }

  /// The encoder of its own; nil: libopus has no memory for it.
  func encoder(_ settings: RoomMixSettings) -> MixEncoder? {
    if let ownEncoder { return ownEncoder }
    do throws(NodeProblem) { ownEncoder = try MixEncoder(settings) } catch { return nil }
    return ownEncoder
  }

  /// Nothing is sent for frames.
  func skip(_ frames: Int = 1) { pause += frames * RoomMixer.frame }

  func takePause() -> Int {
    defer { pause = 0 }
    return pause
  }
}
