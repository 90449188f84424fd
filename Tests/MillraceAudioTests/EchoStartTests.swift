import Glibc
import MillraceTesting
import Testing

/// Near-end speech over the echo from the first second on, before the filter has converged: recorded echoes and voices
/// through a measured room, a nonlinear loudspeaker and a simulated room, at once and 220 ms later.
@Suite("Echo canceller at the start", .enabled(if: Corpus.has("audio/aec"), "\(Corpus.skipReason)"))
struct EchoStartTests {
  struct Scene: Sendable, CustomTestStringConvertible {
    var room: String
    /// Delay of the echo in the recording in milliseconds, and milliseconds added.
    var delay: Int
    var added = 0
    var voice = "librispeech_1088"
    var testDescription: String { "\(room), \(delay) + \(added) ms, \(voice)" }
  }

  static let scenes = [
    Scene(room: "dt_real1_d20_n30", delay: 20), Scene(room: "dt_real1_d20_n30", delay: 20, added: 220),
    Scene(room: "dt_300_d60_soft_n30", delay: 60), Scene(room: "dt_300_d60_soft_n30", delay: 60, added: 220),
    Scene(room: "fest_300_d50_n30", delay: 50), Scene(room: "fest_300_d50_n30", delay: 50, added: 220),
  ]
  static let misleading = [
    Scene(room: "dt_real1_d20_n30", delay: 20, added: 220, voice: "librivox_0870"),
    Scene(room: "dt_300_d60_soft_n30", delay: 60, added: 220),
    Scene(room: "fest_300_d50_n30", delay: 50, added: 220, voice: "librivox_0870"),
    Scene(room: "fest_300_d50_n30", delay: 50, voice: "arctic_axb"),
  ]

  private static let rate = 16_000
  private static let late = 128
  /// Samples in a frame of speech that counts as preserved or not, and the fraction from which it does.
  private static let frame = 512
  private static let keptShare: Float = 0.3

  private struct Mixture {
    var far: [Float]
    var near: [Float]
    var voice: [Float]
  }

  /// Echo and near-end speech, equally loud.
  private func mix(_ scene: Scene, seconds: Int) throws -> Mixture {
    let count = seconds * Self.rate
    let folder = "aec/\(scene.room)/"
    var echo = Array(try EchoRecordings.samples(folder + "mic.flac")[..<count])
    if scene.room.hasPrefix("dt") {
      let other = try EchoRecordings.samples(folder + "near.flac")
      for index in 0..<count { echo[index] -= other[index] }
    }
    echo = Array([Float](repeating: 0, count: scene.added * Self.rate / 1_000) + echo).prefix(count).map {
      $0
    }
    let names = scene.voice == "arctic_axb" ? (4...6).map { "arctic_axb_\($0)" } : [scene.voice]
    let spoken = try names.flatMap { try EchoRecordings.samples("speech/\($0).flac") }.prefix(count)
    let gain = Float(Fixture.rms(echo) / Fixture.rms(Array(spoken)))
    let voice = spoken.map { $0 * gain }
    let far = try EchoRecordings.samples(folder + "far.flac").prefix(voice.count)
    return Mixture(far: Array(far), near: zip(echo, voice).map { $0 + $1 }, voice: voice)
  }

  /// Fraction of the speech frames between two times that are preserved.
  private func kept(_ mixture: Mixture, _ output: [Float], _ from: Double, _ to: Double) -> Double {
    let frames = (0..<(output.count - Self.late) / Self.frame).map {
      number -> (energy: Float, share: Float) in
      let first = number * Self.frame
      var (energy, common) = (Float(0), Float(0))
      for index in first..<first + Self.frame {
        energy += mixture.voice[index] * mixture.voice[index]
        common += mixture.voice[index] * output[index + Self.late]
      }
      return (energy, common / (energy + 1e-9))
    }
    let loudest = frames.map(\.energy).max() ?? 0
    let place = Int(from * Double(Self.rate)) / Self.frame..<Int(to * Double(Self.rate)) / Self.frame
    let spoken = frames[place].filter { $0.energy > 0.01 * loudest }
    return Double(spoken.filter { $0.share > Self.keptShare }.count) / Double(max(1, spoken.count))
  }

  @Test(
    "near-end speech over the first echo is preserved, more than half of it in the first second",
    arguments: scenes)
  func voiceIsKept(scene: Scene) throws {
    let mixture = try mix(scene, seconds: 4)
    let output = EchoRecordings.cleaned(mixture.near, mixture.far)
    #expect(kept(mixture, output, 0, 1) > 0.5)
    #expect(kept(mixture, output, 1, 3) > 0.8)
  }

  @Test("under near-end speech no delay but the echo's is ever found", arguments: misleading)
  func delay(scene: Scene) throws {
    let mixture = try mix(scene, seconds: 5)
    var found: [Int] = []
    _ = EchoRecordings.cleaned(mixture.near, mixture.far) { state in
      if let delay = state.delay, delay / 16 != found.last { found.append(delay / 16) }
    }
    #expect(!found.isEmpty)
    let wrong = found.filter {
      !(scene.delay + scene.added - 20...scene.delay + scene.added + 8).contains($0)
    }
    #expect(wrong.isEmpty, "found \(found) ms")
  }

  @Test(
    "a far end alone is still attenuated in its first second",
    arguments: [("fest_300_d50_n30", 30.0), ("fest_300_d80_p50_n30", 30.0), ("fest_300_jump_n30", 14.0)])
  func farAlone(name: String, floor: Double) throws {
    let near = Array(try EchoRecordings.samples("aec/\(name)/mic.flac")[..<Self.rate])
    let output = EchoRecordings.cleaned(near, try EchoRecordings.samples("aec/\(name)/far.flac"))
    let loss = 20 * log10(Fixture.rms(near) / Fixture.rms(Array(output)))
    #expect(loss > floor, "\(loss) dB")
  }
}
