internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
internal import MillraceRTCSound

/// The place of a member in the mix of its room. On the thread of its `RoomMixer`.
package final class RoomMixSeat {
  /// A voice is heard from here on, in dBFS.
  private static let threshold = -60.0
  /// Frames below it after which it is no longer heard: half a second.
  private static let hangover = 25

  /// Nil: the member has not sent anything that can be played.
  private var source: SoundSource?
  private var pool: SoundPool?
  private let own = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private var ownEncoder: MixEncoder?
  /// Samples that were not sent since the latest packet.
  private var pause = 0
  private var softFrames = RoomMixSeat.hangover

  /// It takes the mix.
  var listens = false
  /// Its latest packet came from its own encoder.
  var hasOwnStream = false
  /// Frames for which it was the only one to be heard.
  var quietFrames = 0
  /// Its voice is in the mix.
  private(set) var isHeard = false
  /// Of the latest frame, in dBFS.
  package private(set) var level = Decibels.floor
  /// Packets that were no Opus, or for which there was no decoder.
  package private(set) var refused = 0

  init() {}

  /// What the member sent in this frame.
  @unsafe
  @_lifetime(immortal)
  func sound() -> Span<Float> { unsafe own.contents(of: Float.self, count: RoomMixer.frame) }

  // MARK: In

  func take(
    _ head: SoundDownHead, _ payload: Span<UInt8>, _ settings: RoomMixSettings, at now: Nanoseconds
  ) {
    guard let codec = SoundCodec(packed: head.codec), codec.kind == .opus, let source = makeSource(settings)
    else { return refused += 1 }
    if source.id != head.source { source.begin(head.source, at: now) }
    source.take(head, payload, at: now)
  }

  /// The member has ended its sound, and what is left of it is not played.
  package func endSource() {
    source?.end()
    isHeard = false
    level = Decibels.floor
  }

  private func makeSource(_ settings: RoomMixSettings) -> SoundSource? {
    if let source { return source }
    let pool = SoundPool(sources: 1)
    do throws(NodeProblem) {
      let made = try SoundSource(.opus, rate: RoomMixer.rate, channels: 1, pool: pool, settings.player)
      (self.pool, source) = (pool, made)
      return made
    } catch { return nil }
  }

  /// Plays 20 ms. False: nothing of it is heard.
  func play(at time: Nanoseconds) -> Bool {
    guard let source, source.id != nil else { return false }
    var target = unsafe own.room(for: Float.self)
    for index in target.indices { target[index] = 0 }
    let half = RoomMixer.frame / 2
    var first = unsafe own.room(for: Float.self, count: half)
    source.mix(at: time - .milliseconds(10), into: &first)
    var second = unsafe own.room(for: Float.self, from: half, count: half)
    source.mix(at: time, into: &second)
    let measured = SampleMath.energy(unsafe sound())
    level = Decibels.decibels(power: measured.squares / Double(RoomMixer.frame))
    softFrames = level > Self.threshold ? 0 : min(softFrames + 1, Self.hangover)
    isHeard = softFrames < Self.hangover
    return isHeard
  }

  // MARK: Out

  /// The encoder of its own; nil: libopus has no memory for it.
  func encoder(_ settings: RoomMixSettings) -> MixEncoder? {
    if let ownEncoder { return ownEncoder }
    do throws(NodeProblem) { ownEncoder = try MixEncoder(settings) } catch { return nil }
    return ownEncoder
  }

  /// Nothing is sent for a frame.
  func skip() { pause += RoomMixer.frame }

  func takePause() -> Int {
    defer { pause = 0 }
    return pause
  }
}
