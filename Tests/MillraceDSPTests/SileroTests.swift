import Glibc
import MillraceFiles
import MillraceTesting
import Testing

@testable import MillraceDSP

/// The weights file where `make models` puts it, or nil.
private func standardFile() -> [UInt8]? {
  guard let file = fopen(UserDirectories.models + "/silero-vad-6.2.3.weights", "r") else { return nil }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 3_000_000)
  let count = fread(&bytes, 1, bytes.count, file)
  return Array(bytes[..<count])
}

private let hasWeights = standardFile() != nil
private let missing: Comment = "the voice detector's weights are missing: run make models"

private func network(_ rate: Int) throws -> SileroNetwork {
  let file = try #require(standardFile())
  return SileroNetwork(try SileroWeights(file: file.span, rate: rate))
}

/// The probability of every whole step.
private func probabilities(_ network: inout SileroNetwork, _ samples: [Float]) -> [Float] {
  let step = network.stepSamples
  return stride(from: 0, through: samples.count - step, by: step).map {
    network.probability(samples.span.extracting($0..<$0 + step))
  }
}

@Suite("The Silero network", .enabled(if: hasWeights, missing))
struct SileroNetworkTests {
  @Test("it matches ONNX Runtime within 1e-4", arguments: [16_000, 8_000])
  func golden(rate: Int) throws {
    var network = try network(rate)
    let voice = Fixture.voice16(rate: rate, frames: 2 * rate).map { Float($0) / 32_768 }
    let expected = try #require(madeUpVoiceProbabilities[rate])
    let heard = probabilities(&network, voice)
    #expect(heard.count == expected.count)
    for (index, pair) in zip(heard, expected).enumerated() {
      #expect(abs(pair.0 - pair.1) <= 1e-4, "step \(index)")
    }
  }

  @Test("after a reset it behaves like a new one", arguments: [16_000, 8_000])
  func reset(rate: Int) throws {
    var network = try network(rate)
    let voice = Fixture.voice16(rate: rate, frames: rate).map { Float($0) / 32_768 }
    let first = probabilities(&network, voice)
    let goingOn = probabilities(&network, voice)
    network.reset()
    #expect(probabilities(&network, voice) == first)
    #expect(goingOn != first)
  }

  @Test("silence, a constant and a steady tone are not speech", arguments: [16_000, 8_000])
  func nothing(rate: Int) throws {
    for level: Float in [0, 1, -0.5] {
      var network = try network(rate)
      let heard = probabilities(&network, [Float](repeating: level, count: 3 * rate))
      #expect(heard.allSatisfy { $0 < 0.3 }, "\(level)")
    }
    var network = try network(rate)
    let heard = probabilities(&network, tone(1_000, rate: rate, count: 3 * rate))
    #expect(heard.allSatisfy { $0 < 0.5 })
  }

  @Test("a NaN, an infinity and full-scale noise affect nothing that follows")
  func bad() throws {
    var network = try network(16_000)
    let voice = Fixture.voice16(rate: 16_000, frames: 32_000).map { Float($0) / 32_768 }
    let clean = probabilities(&network, voice)
    for spoil: Float in [.nan, .infinity, -.infinity, 3e38] {
      var spoiled = [Float](repeating: 0, count: 512 * 4)
      spoiled[700] = spoil
      #expect(probabilities(&network, spoiled).allSatisfy { $0.isFinite && $0 >= 0 && $0 <= 1 })
    }
    #expect(probabilities(&network, noise(16_000 * 2, amplitude: 1)).allSatisfy { $0.isFinite })
    _ = probabilities(&network, [Float](repeating: 0, count: 16_000 * 4))
    let after = probabilities(&network, voice)
    // The LSTM has memory, so the two are similar, not equal.
    let difference = zip(clean, after).reduce(0) { $0 + abs($1.0 - $1.1) } / Float(clean.count)
    #expect(difference < 0.1)
  }

  @Test("two networks share only their weights")
  func sharing() throws {
    let file = try #require(standardFile())
    let weights = try SileroWeights(file: file.span, rate: 16_000)
    #expect(weights.source == "silero-vad 6.2.3" && weights.rate == 16_000)
    var one = SileroNetwork(weights)
    var other = SileroNetwork(weights)
    let voice = Fixture.voice16(rate: 16_000, frames: 16_000).map { Float($0) / 32_768 }
    let alone = probabilities(&one, voice)
    one.reset()
    for index in alone.indices {
      let step = voice.span.extracting(index * 512..<(index + 1) * 512)
      #expect(one.probability(step) == alone[index])
      _ = other.probability(noise(512, seed: UInt64(index)).span)
    }
  }

  @Test("a step allocates nothing")
  func heap() throws {
    for rate in SileroWeights.rates {
      var network = try network(rate)
      let step = noise(network.stepSamples)
      var sum: Float = 0
      let requests = heapRequests { for _ in 0..<10 { sum += network.probability(step.span) } }
      #expect(requests == 0)
      #expect(sum >= 0)
    }
  }
}

@Suite("Weights files")
struct WeightsFileTests {
  /// A file of networks with the given numbers of floats, all of one value.
  private func file(_ networks: [(rate: Int, floats: Int)], value: Float = 0.01, layout: Int = 1) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
    var body = Array("synthetic 1".utf8) + [UInt8](repeating: 0, count: 5) + number(networks.count)
    for network in networks {
      body += number(network.rate) + number(network.floats)
      for _ in 0..<network.floats { body += number(Int(value.bitPattern)) }
    }
    let rest = number(body.count) + body
    return Array("MRSILERO".utf8) + number(layout) + number(Int(CRC32.checksum(rest.span))) + rest
  }

  private func refusal(_ bytes: [UInt8], rate: Int = 16_000) -> String? {
    do throws(VoiceModelProblem) {
      _ = try SileroWeights(file: bytes.span, rate: rate)
      return nil
    } catch { return error.description }
  }

  private let floats = [
    16_000: SileroShape(rate: 16_000).tensorFloats, 8_000: SileroShape(rate: 8_000).tensorFloats,
  ]

  @Test("the checksum is that of zip")
  func checksum() {
    #expect(CRC32.checksum(Array("123456789".utf8).span) == 0xCBF4_3926)
    #expect(CRC32.checksum([UInt8]().span) == 0)
  }

  @Test("a complete file is accepted, for either rate")
  func whole() throws {
    let bytes = file(SileroWeights.rates.map { ($0, floats[$0]!) })
    for rate in SileroWeights.rates {
      let weights = try SileroWeights(file: bytes.span, rate: rate)
      #expect(weights.rate == rate && weights.source == "synthetic 1")
    }
    // Data that a newer program may have appended is ignored.
    #expect(refusal(bytes + [1, 2, 3]) == nil)
  }

  @Test("a file of another kind, another layout, or without the rate is refused with a message")
  func refusals() {
    #expect(refusal([]) == "is not a voice detector weights file")
    #expect(refusal(Array("RIFF....WAVE".utf8)) == "is not a voice detector weights file")
    #expect(refusal(file([], layout: 2)) == "has layout version 2; this program reads version 1")
    let eight = file([(8_000, floats[8_000]!)])
    #expect(refusal(eight) == "holds no network for 16000 Hz")
    #expect(refusal(eight, rate: 8_000) == nil)
    #expect(
      refusal(file([(16_000, 10)]))
        == "holds a network of 10 values for 16000 Hz; this program needs \(floats[16_000]!)")
    #expect(refusal(Array("MRSILERO".utf8) + [1, 0, 0, 0]) == "is truncated: 12 bytes, less than its header")
  }

  @Test("a truncated file or one with a flipped bit is refused, wherever the damage is")
  func damage() {
    let whole = file([(16_000, floats[16_000]!)])
    for length in [40, 41, 1_000, whole.count - 1] {
      #expect(refusal(Array(whole[..<length])) == "is truncated: \(length) of \(whole.count) bytes")
    }
    for place in [12, 20, 36, 40, 50, whole.count / 2, whole.count - 1] {
      var hurt = whole
      hurt[place] ^= 0x10
      #expect(refusal(hurt) == "is damaged: its checksum does not match", "byte \(place)")
    }
  }

  @Test("a false length does not make the reader read outside the file")
  func lies() {
    var bytes = file([(16_000, floats[16_000]!)])
    for place in 16..<20 { bytes[place] = 0xFF }
    #expect(refusal(bytes)?.hasPrefix("is truncated") == true)
    // A network with a stated length beyond the file, under a valid checksum.
    var longer = file([(8_000, 4), (16_000, 0)])
    longer[44] = 0xFF
    let sum = CRC32.checksum(longer.span.extracting(16..<longer.count))
    for index in 0..<4 { longer[12 + index] = UInt8(truncatingIfNeeded: sum >> (8 * index)) }
    #expect(refusal(longer) == "holds no network for 16000 Hz")
  }
}
