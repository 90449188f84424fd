import Glibc

/// A far end, and what a microphone hears of it in a small room: an echo after 60 ms that decays over a third of a second, from a
/// loudspeaker with slight distortion, with faint noise. Synthetic, the same in every run. 16 kHz, one channel.
struct EchoRoom {
  static let rate = 16_000
  static let delayMilliseconds = 60
  /// Seconds in which the echo decays by 60 dB.
  private static let fade = 0.3
  /// Level of the echo relative to the far end: -6 dB.
  private static let loudness: Float = 0.5
  private static let noise = 0.0005

  let far: [Float]
  let near: [Float]

  init(seconds: Double) {
    let rate = Self.rate
    far = Sound.voice(seconds: seconds, rate: rate).map { Float($0) / 32_768 }
    var dice = Dice()
    // The room: direct sound, and random reflections under an exponential.
    let length = Int(Self.fade * Double(rate))
    let decay = -6.9 / Double(length)
    var response = (0..<length).map { Float(dice.uniform() * 0.15 * exp(decay * Double($0))) }
    response[0] = Self.loudness
    let played = far.map { $0 - 0.05 * $0 * abs($0) }
    let start = Self.delayMilliseconds * rate / 1_000
    // Every fourth reflection only, to keep the computation short.
    var near = (0..<far.count).map { _ in Float(dice.uniform() * Self.noise) }
    for tap in stride(from: 0, to: length, by: 4) {
      let gain = response[tap]
      for index in start + tap..<max(start + tap, near.count) {
        near[index] += gain * played[index - start - tap]
      }
    }
    self.near = near
  }

  /// How many dB `output` is quieter than the microphone, from a second on.
  func echoReturn(_ output: [Float], from second: Double) -> Double {
    let first = Int(second * Double(Self.rate))
    func energy(_ samples: [Float]) -> Double {
      samples[first...].reduce(0.0) { $0 + Double($1) * Double($1) }
    }
    return 10 * log10((energy(near) + 1e-12) / (energy(output) + 1e-12))
  }
}
