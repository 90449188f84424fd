/// Continues a steady tone over a loss: a dial tone, a held note, music on hold.
///
/// The concealment of speech codecs is made for voices. libopus 1.3.1 lets a tone of 1 kHz fall by 20 dB within 20 ms where its encoder has
/// chosen the hybrid mode, and needs up to 100 ms afterwards until its level is steady again. So the last periods are repeated instead: at
/// full level for 100 ms, then fading for 250 ms into the codec's own concealment. Voices are not that steady: they are left to the codec.
///
/// The owner calls `note` with every piece of audio that is played: after `conceal`, which changes the codec's concealment, and after
/// `merge`, which changes the first audio behind a loss. Interleaved float. Pure; no allocation after `init`; one thread at a time. Cost:
/// at the beginning of a loss up to a million multiplications, at 48 kHz in mono.
@safe package struct ToneContinuation: ~Copyable, @unchecked Sendable {
  /// Milliseconds that are compared with those a period before them, and of the periods: long ones, of several periods of the tone, as a
  /// voice does not repeat itself for so long.
  private static let match = 20
  private static let shortest = 10
  private static let longest = 20
  /// From this similarity on it is a tone. Measured at 16 and 32 kb/s: tones 0.98 to 1, vowels 0.7 to 0.97.
  private static let steady: Float = 0.97
  /// Milliseconds after a loss for which its tone is known, and of the audio that must be similar to it for it to continue.
  private static let memory = 200
  private static let comparison = 10
  private static let similar: Float = 0.7
  /// Milliseconds at full level, and of the fade.
  private static let hold = 100
  private static let fade = 250
  /// Mean square (-50 dBFS) below which there is no tone.
  private static let silence: Float = 1e-5
  /// The least level of audio that a tone continues from, as a share of the tone's mean square: -20 dB.
  private static let least: Float = 0.01

  private let rate: Int
  private let channels: Int
  private let length: Int
  /// The newest `length` frames that were played, oldest first.
  private let history: UnsafeMutablePointer<Float>
  private var filled = 0
  /// What is repeated: `period` frames, and their beginning once more, as far as comparisons need it. Written when there is a tone.
  private let tone: UnsafeMutablePointer<Float>
  /// 0: no tone is known.
  private var period = 0
  private var phase = 0
  /// A loss is being concealed, by the tone or not.
  private var isLost = false
  private var isContinuing = false
  /// Frames that the tone was continued for.
  private var elapsed = 0
  /// Frames since the last loss that the tone was continued over.
  private var since = 0

  /// Creates a continuation that knows no tone; allocates all memory. Rate in Hz: at least 8,000.
  package init(rate: Int, channels: Int) {
    self.rate = rate
    self.channels = channels
    length = rate * (Self.match + Self.longest) / 1_000
    unsafe history = .allocate(capacity: length * channels)
    unsafe history.initialize(repeating: 0, count: length * channels)
    unsafe tone = .allocate(capacity: rate * (Self.longest + Self.comparison) / 1_000 * channels)
  }

  deinit {
    unsafe history.deallocate()
    unsafe tone.deallocate()
  }

  /// Forgets everything.
  package mutating func reset() {
    (filled, period, phase, elapsed, since) = (0, 0, 0, 0, 0)
    (isLost, isContinuing) = (false, false)
  }

  /// True while a tone is continued.
  package var isActive: Bool { isContinuing }

  /// Records audio that is played.
  package mutating func note(_ samples: Span<Float>) {
    let frames = samples.count / channels
    guard frames > 0 else { return }
    if !isLost { since = min(since + frames, rate) }
    let kept = min(frames, length)
    unsafe history.update(from: history + kept * channels, count: (length - kept) * channels)
    for index in 0..<kept * channels {
      unsafe history[(length - kept) * channels + index] = samples[(frames - kept) * channels + index]
    }
    filled = min(length, filled + kept)
  }

  /// Replaces a codec's concealment, if there was a tone before the loss.
  package mutating func conceal(_ sound: inout MutableSpan<Float>) {
    if !isLost {
      isLost = true
      isContinuing = begin()
    }
    guard isContinuing else { return }
    for frame in 0..<sound.count / channels {
      let gain = self.gain
      for channel in 0..<channels {
        let place = frame * channels + channel
        let (other, wanted) = (sound[place], unsafe tone[phase * channels + channel])
        sound[place] = other + gain * (wanted - other)
      }
      advance()
    }
  }

  /// Fades from the tone to the first audio after a loss, within a packet of 20 ms: a decoder that has concealed begins too quietly.
  package mutating func merge(_ sound: inout MutableSpan<Float>) {
    guard isLost else { return }
    isLost = false
    guard isContinuing else { return }
    isContinuing = false
    since = 0
    let frames = min(rate / 50, sound.count / channels)
    for frame in 0..<frames {
      let weight = gain * (1 - (Float(frame) + 0.5) / Float(frames))
      for channel in 0..<channels {
        let place = frame * channels + channel
        let (new, old) = (sound[place], unsafe tone[phase * channels + channel])
        sound[place] = new + weight * (old - new)
      }
      advance()
    }
  }

  private var gain: Float {
    let faded = elapsed - rate * Self.hold / 1_000
    return 1 - Float(max(0, faded)) / Float(rate * Self.fade / 1_000)
  }

  private mutating func advance() {
    phase = phase + 1 == period ? 0 : phase + 1
    elapsed = min(elapsed + 1, rate * (Self.hold + Self.fade) / 1_000)
  }

  // MARK: Search

  /// True when there is a tone to continue.
  private mutating func begin() -> Bool {
    guard filled == length else { return false }
    if !findTone() && !findAgain() {
      period = 0
      return false
    }
    elapsed = 0
    return true
  }

  /// Finds a tone in what was played last.
  private mutating func findTone() -> Bool {
    let match = rate * Self.match / 1_000
    let sound = unsafe Span(_unsafeStart: UnsafePointer(history), count: length * channels)
    let latest = sound.extracting((length - match) * channels..<length * channels)
    guard SampleMath.dot(latest, latest) > Self.silence * Float(latest.count) else { return false }
    let (least, most) = (rate * Self.shortest / 1_000, rate * Self.longest / 1_000)
    let found = SpliceSearch.best(
      sound, channels: channels, at: length - match, jumps: -most...(-least), length: match)
    guard found.similarity >= Self.steady else { return false }
    period = -found.jump
    phase = 0
    let start = (length - period) * channels
    for index in 0..<(period + rate * Self.comparison / 1_000) * channels {
      unsafe tone[index] = history[start + index % (period * channels)]
    }
    return true
  }

  /// Finds where the tone of a loss not long ago continues: what was decoded since is not steady yet.
  private mutating func findAgain() -> Bool {
    guard period > 0, since < rate * Self.memory / 1_000 else { return false }
    let compared = rate * Self.comparison / 1_000
    let sound = unsafe Span(_unsafeStart: UnsafePointer(history), count: length * channels)
    let latest = sound.extracting((length - compared) * channels..<length * channels)
    let energy = SampleMath.dot(latest, latest)
    guard energy > Self.silence * Float(latest.count) else { return false }
    let known = unsafe Span(_unsafeStart: UnsafePointer(tone), count: (period + compared) * channels)
    var best = Self.similar
    var place: Int?
    for start in 0..<period {
      let there = known.extracting(start * channels..<(start + compared) * channels)
      let product = SampleMath.dot(latest, there)
      guard product > 0 else { continue }
      let other = SampleMath.dot(there, there)
      let similarity = product / (energy * other).squareRoot()
      guard similarity > best, energy > Self.least * other else { continue }
      best = similarity
      place = start
    }
    guard let place else { return false }
    phase = (place + compared) % period
    return true
  }
}
