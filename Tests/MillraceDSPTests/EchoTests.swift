import CMallocCount
import Glibc
import Testing

@testable import MillraceDSP

/// A far end with the envelope of speech, and its echo in a small room.
private struct Scene {
  let rate: Int
  var far: [Float]
  var near: [Float]

  /// Noise in syllables, lowered towards high frequencies, `delays` ms late from the second each belongs to on.
  init(
    rate: Int = 16_000, seconds: Double, delays: [(from: Double, milliseconds: Int)],
    background: Double = 1e-4
  ) {
    self.rate = rate
    let count = Int(seconds * Double(rate))
    var held: Float = 0
    far = noise(count, seed: 11, amplitude: 0.6).enumerated().map { index, sample in
      held += 0.5 * (sample - held)
      return held * Float(max(0, sin(2 * .pi * 3 * Double(index) / Double(rate))))
    }
    near = noise(count, seed: 12, amplitude: background)
    var random = Xoshiro256(seed: 5)
    let taps = (0..<40).map { _ in
      (Int(random.next() % UInt64(rate / 20)), Float(random.nextUnit()) * 0.1)
    }
    for (turn, delay) in delays.enumerated() {
      let first = Int(delay.from * Double(rate))
      let end = turn + 1 < delays.count ? Int(delays[turn + 1].from * Double(rate)) : count
      for (place, gain) in [(0, 0.5)] + taps {
        let late = delay.milliseconds * rate / 1_000 + place
        for index in max(first, late)..<max(end, late) { near[index] += gain * far[index - late] }
      }
    }
  }

  mutating func add(_ other: [Float], at second: Double) {
    let first = Int(second * Double(rate))
    for (index, sample) in other.enumerated() where first + index < near.count {
      near[first + index] += sample
    }
  }
}

/// Noise in syllables, as loud as a voice.
private func syllables(_ count: Int, seed: UInt64) -> [Float] {
  var held: Float = 0
  return noise(count, seed: seed, amplitude: 0.5).enumerated().map { index, sample in
    held += 0.3 * (sample - held)
    return held * Float(max(0, sin(2 * .pi * 2 * Double(index) / 16_000)))
  }
}

/// What a clock that runs `ppm` slow makes of a sound: it comes later and later.
private func stretched(_ samples: [Float], ppm: Double) -> [Float] {
  guard ppm != 0 else { return samples }
  return samples.indices.map { index in
    let place = Double(index) * (1 - ppm * 1e-6)
    let whole = Int(place.rounded(.down))
    var sum: Float = 0
    for tap in max(0, whole - 15)...min(samples.count - 1, whole + 16) {
      let away = (place - Double(tap)) * .pi
      let window = 0.5 + 0.5 * cos(away / 17)
      sum += samples[tap] * Float(away == 0 ? 1 : sin(away) / away * window)
    }
    return sum
  }
}

/// Runs whole blocks through a canceller.
private func cancel(
  _ near: [Float], _ far: [Float], _ canceller: inout EchoCanceller, _ controls: EchoControls = EchoControls()
) -> [Float] {
  let block = canceller.blockFrames
  var output: [Float] = []
  var cleaned = [Float](repeating: 0, count: block)
  for first in stride(from: 0, to: near.count - block + 1, by: block) {
    let place = first..<first + block
    var target = cleaned.mutableSpan
    canceller.process(
      near: near.span.extracting(place), far: far.span.extracting(place), controls: controls, into: &target)
    output += cleaned
  }
  return output + [Float](repeating: 0, count: near.count - output.count)
}

private func loss(_ near: [Float], _ output: [Float], _ rate: Int, from: Double, to: Double) -> Double {
  let place = Int(from * Double(rate))..<Int(to * Double(rate))
  return rms(near[place]) - rms(output[place])
}

@Suite("Echo canceller")
struct EchoTests {
  @Test(
    "an echo is attenuated by 40 dB in its first second and by 55 dB in its third, at every rate",
    arguments: EchoSettings.rates)
  func everyRate(rate: Int) {
    let scene = Scene(rate: rate, seconds: 3, delays: [(0, 50)])
    var canceller = EchoCanceller(EchoSettings(rate: rate))
    let output = cancel(scene.near, scene.far, &canceller)
    #expect(loss(scene.near, output, rate, from: 2, to: 3) > 55)
    #expect(loss(scene.near, output, rate, from: 0, to: 1) > 40)
  }

  @Test("the delay is found within 8 ms of where the echo begins", arguments: [0, 120, 400])
  func delay(milliseconds: Int) throws {
    let scene = Scene(seconds: 2, delays: [(0, milliseconds)])
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    _ = cancel(scene.near, scene.far, &canceller)
    let found = try #require(canceller.state.delay)
    #expect(found / 16 <= milliseconds && found / 16 >= milliseconds - 18)
  }

  @Test("an echo that jumps from 60 to 140 ms is cancelled again")
  func jump() {
    let scene = Scene(seconds: 6, delays: [(0, 60), (4, 140)])
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let output = cancel(scene.near, scene.far, &canceller)
    #expect(loss(scene.near, output, 16_000, from: 3, to: 4) > 70)
    #expect(loss(scene.near, output, 16_000, from: 4.8, to: 5.8) > 10)
  }

  @Test(
    "without a far end the microphone passes unchanged, delayed by the latency", arguments: EchoSettings.rates
  )
  func nearAlone(rate: Int) {
    let near = noise(rate, seed: 3, amplitude: 0.3)
    var canceller = EchoCanceller(EchoSettings(rate: rate))
    let output = cancel(near, [Float](repeating: 0, count: rate), &canceller)
    let late = canceller.latencyFrames
    #expect(late <= rate / 100)
    let worst = (0..<rate - late - rate / 125).map { abs(output[$0 + late] - near[$0]) }.max() ?? 1
    #expect(worst < 2e-6)
  }

  @Test("with headphones the near end is preserved as without a canceller")
  func headphones() {
    let scene = Scene(seconds: 8, delays: [(0, 50)])
    // The far end plays, and the microphone picks up only speech and background.
    let voice = syllables(96_000, seed: 21)
    let near = noise(32_000, seed: 12, amplitude: 1e-4) + voice
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let output = cancel(near, scene.far, &canceller)
    #expect(!canceller.state.hasEcho)
    let late = canceller.latencyFrames
    let difference = (0..<63_000).map { output[64_000 + late + $0] - near[64_000 + $0] }
    #expect(rms(near[64_000..<127_000]) - rms(difference[...]) > 20)
  }

  @Test("an echo that begins during a call is cancelled within half a second")
  func headphonesUnplugged() {
    let scene = Scene(seconds: 8, delays: [(0, 50)])
    let quiet = noise(96_000, seed: 12, amplitude: 1e-4)
    let near = quiet + scene.near[96_000...]
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let before = cancel(Array(near[..<96_000]), Array(scene.far[..<96_000]), &canceller)
    #expect(before.allSatisfy { $0.isFinite })
    #expect(!canceller.state.hasEcho)
    let output = cancel(Array(near[96_000...]), Array(scene.far[96_000...]), &canceller)
    #expect(canceller.state.hasEcho)
    #expect(loss(Array(near[96_000...]), output, 16_000, from: 0.5, to: 1.5) > 20)
  }

  @Test("clock drift is measured to 3 ppm", arguments: [-50.0, 0, 50, 100])
  func drift(ppm: Double) {
    let scene = Scene(seconds: 8, delays: [(0, 60)])
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    _ = cancel(stretched(scene.near, ppm: ppm), scene.far, &canceller)
    #expect(abs(Double(canceller.state.driftPPM) - ppm) < 3)
  }

  @Test("near-end speech over a drifting echo is preserved as over any other")
  func driftingDoubleTalk() {
    let scene = Scene(seconds: 9, delays: [(0, 60)])
    let voice = syllables(64_000, seed: 21)
    func left(_ ppm: Double) -> Double {
      var near = stretched(scene.near, ppm: ppm)
      for index in 0..<64_000 { near[80_000 + index] += voice[index] }
      var canceller = EchoCanceller(EchoSettings(rate: 16_000))
      var controls = EchoControls()
      controls.suppresses = false
      let output = cancel(near, scene.far, &canceller, controls)
      let late = canceller.latencyFrames
      let difference = (0..<63_000).map { output[80_000 + late + $0] - voice[$0] }
      return rms(voice[0..<63_000]) - rms(difference[...])
    }
    #expect(left(50) > left(0) - 6)
  }

  @Test("near-end speech over the echo is preserved")
  func doubleTalk() {
    var scene = Scene(seconds: 5, delays: [(0, 50)])
    var held: Float = 0
    let voice = noise(32_000, seed: 21, amplitude: 0.5).enumerated().map { index, sample -> Float in
      held += 0.3 * (sample - held)
      return held * Float(max(0, sin(2 * .pi * 2 * Double(index) / 16_000)))
    }
    scene.add(voice, at: 3)
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let output = cancel(scene.near, scene.far, &canceller)
    let late = canceller.latencyFrames
    let difference = (0..<31_000).map { output[48_000 + late + $0] - voice[$0] }
    // Silence would score 0 dB; the microphone itself is no better.
    #expect(rms(voice[0..<31_000]) - rms(difference[...]) > 2.9)
  }

  @Test("continuous near-end speech is preserved better and better as the filter converges")
  func longDoubleTalk() {
    var scene = Scene(seconds: 15, delays: [(0, 50)])
    // Speech without a pause: the filter can learn the echo only while the talker speaks.
    let voice = (0..<176_000).map { index -> Float in
      let time = Double(index) / 16_000
      let phase = 2 * .pi * (150 * time + 2 * sin(2 * .pi * 3 * time))
      let glottis = (1...20).reduce(0.0) { $0 + sin(Double($1) * phase) / Double($1) }
      return Float(0.1 * glottis * (0.7 + 0.3 * sin(2 * .pi * 2 * time)))
    }
    scene.add(voice, at: 4)
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let output = cancel(scene.near, scene.far, &canceller)
    let span = 128_000..<160_000
    let difference = span.map { output[64_000 + canceller.latencyFrames + $0] - voice[$0] }
    #expect(rms(voice[span]) - rms(difference[...]) > 8)
  }

  @Test(
    "without suppression only the filter works; comfort noise is below the background by less than 20 dB"
  )
  func controls() {
    let scene = Scene(seconds: 3, delays: [(0, 50)], background: 2e-3)
    func run(_ suppresses: Bool, _ comfort: Bool) -> [Float] {
      var canceller = EchoCanceller(EchoSettings(rate: 16_000))
      var controls = EchoControls()
      controls.suppresses = suppresses
      controls.addsComfortNoise = comfort
      return cancel(scene.near, scene.far, &canceller, controls)
    }
    let (filtered, silent, comforted) = (run(false, false), run(true, false), run(true, true))
    let background = rms(noise(16_000, seed: 12, amplitude: 2e-3)[...])
    #expect(rms(filtered[32_000...]) > rms(silent[32_000...]) + 45)
    #expect(rms(comforted[32_000...]) > rms(silent[32_000...]) + 25)
    let under = background - rms(comforted[32_000...])
    #expect(under > 0 && under < 20, "\(under) dB")
  }

  @Test(
    "invalid input gives finite output within bounds",
    arguments: ["silence", "dc", "noise", "nan", "clipped", "huge"])
  func rubbish(kind: String) {
    let count = 16_000
    let loud = noise(count, seed: 8, amplitude: 1)
    let scene = Scene(seconds: 1, delays: [(0, 40)])
    let (near, far): ([Float], [Float]) =
      switch kind {
      case "dc": ([Float](repeating: 0.9, count: count), [Float](repeating: -0.9, count: count))
      case "noise": (loud, loud.reversed())
      case "nan":
        (
          scene.near.enumerated().map { $0 % 37 == 5 ? .nan : $1 },
          scene.far.enumerated().map { $0 % 41 == 3 ? .infinity : $1 }
        )
      case "clipped": (scene.near.map { max(-0.05, min(0.05, $0)) }, scene.far)
      case "huge": (loud.map { $0 * 1e30 }, loud.map { $0 * -1e30 })
      default: ([Float](repeating: 0, count: count), [Float](repeating: 0, count: count))
      }
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let output = cancel(near, far, &canceller)
    #expect(output.allSatisfy { $0.isFinite && abs($0) < 4 })
  }

  @Test("after a second of invalid input an echo is cancelled as before")
  func recovery() {
    let scene = Scene(seconds: 4, delays: [(0, 50)])
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let burst = noise(16_000, seed: 8, amplitude: 1)
    _ = cancel(burst, burst.reversed(), &canceller)
    let output = cancel(scene.near, scene.far, &canceller)
    #expect(output.allSatisfy { $0.isFinite })
    #expect(loss(scene.near, output, 16_000, from: 3, to: 4) > 70)
  }

  @Test("a block allocates nothing", arguments: [16_000, 48_000])
  func heap(rate: Int) {
    let scene = Scene(rate: rate, seconds: 0.4, delays: [(0, 20)])
    var canceller = EchoCanceller(EchoSettings(rate: rate))
    let block = canceller.blockFrames
    var output = [Float](repeating: 0, count: block)
    let requests = heapRequests {
      for first in stride(from: 0, to: scene.near.count - block + 1, by: block) {
        var target = output.mutableSpan
        canceller.process(
          near: scene.near.span.extracting(first..<first + block),
          far: scene.far.span.extracting(first..<first + block), into: &target)
      }
    }
    #expect(requests == 0)
  }
}
