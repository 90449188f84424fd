import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// A sweep from 200 Hz to 3 kHz and beyond, a function of time only: the same signal at any rate.
func chirp(rate: Int, frames: Int, channels: Int = 1) -> [Int16] {
  var samples: [Int16] = []
  samples.reserveCapacity(frames * channels)
  for index in 0..<frames {
    let time = Double(index) / Double(rate)
    let phase = 2 * Double.pi * (200 * time + 0.5 * 3500 * time * time)
    let fade = min(1, time * 50)
    for channel in 0..<channels { samples.append(Int16(9000 * fade * sin(phase) / Double(channel + 1))) }
  }
  return samples
}

/// A signal that a speech encoder treats as voice: a sawtooth with varying pitch and loudness.
func voice(frames: Int) -> [Int16] {
  (0..<frames).map { index in
    let time = Double(index) / 16_000
    let pitch = 120 + 60 * time
    let loudness = 0.65 + 0.35 * sin(2 * .pi * 3 * time)
    return Int16(8000 * ((time * pitch).truncatingRemainder(dividingBy: 1) - 0.5) * loudness)
  }
}

/// The shift of `heard` against `sent` with the best match, within `reach` samples either way.
func lag(_ sent: [Int16], _ heard: [Int16], reach: Int, from start: Int, count: Int) -> Int {
  let left = sent.map(Double.init)
  let right = heard.map(Double.init)
  var best = (shift: 0, value: -Double.infinity)
  for shift in -reach...reach {
    var (product, energy) = (0.0, 1.0)
    for index in start..<min(start + count, left.count, right.count) {
      let place = index + shift
      guard right.indices.contains(place) else { continue }
      product += left[index] * right[place]
      energy += right[place] * right[place]
    }
    let value = product / energy.squareRoot()
    if value > best.value { best = (shift, value) }
  }
  return best.shift
}

/// Signal-to-noise ratio in dB; every difference counts as noise.
func signalToNoise(_ sent: ArraySlice<Int16>, _ heard: ArraySlice<Int16>) -> Double {
  var (signal, noise) = (0.0, 1e-9)
  for (sent, heard) in zip(sent, heard) {
    signal += Double(sent) * Double(sent)
    noise += pow(Double(sent) - Double(heard), 2)
  }
  return 10 * log10(signal / noise)
}

/// Encodes 16-bit samples with `opus.encode`, in packets of `cut` samples.
func encode(
  _ samples: [Int16], rate: Int, channels: Int = 1, cut: Int, _ parameters: [String: ParameterValue] = [:]
) throws -> [CapturedPacket] {
  let bench = try NodeBench(
    OpusEncode.self, parameters,
    inputs: ["in": .pcm(rate: rate, channels: channels, sample: .s16, frames: cut)])
  bench.push(samples)
  try bench.finish()
  let packets = bench.packets()
  #expect(bench.close() == [])
  return packets
}

/// The shape of an Opus link that accepts any packet.
func opusShape(rate: Int, channels: Int = 1, milliseconds: Double = 20) -> OutputShape {
  OutputShape(
    .opus(rate: rate, channels: channels), packetDuration: Nanoseconds(milliseconds * 1e6), packetBytes: 4000)
}

/// A bench around `opus.decode`.
func decoderBench(
  rate: Int, channels: Int = 1, milliseconds: Double = 20, _ parameters: [String: ParameterValue] = [:]
) throws -> NodeBench {
  try NodeBench(
    OpusDecode.self, parameters,
    inputs: ["in": opusShape(rate: rate, channels: channels, milliseconds: milliseconds)])
}

/// Decodes packets with `opus.decode`.
func decode(
  _ packets: [CapturedPacket], rate: Int, channels: Int = 1, _ parameters: [String: ParameterValue] = [:]
) throws -> [Int16] {
  let bench = try decoderBench(rate: rate, channels: channels, parameters)
  for packet in packets { bench.push(packet) }
  try bench.finish()
  let samples = bench.int16()
  #expect(bench.close() == [])
  return samples
}

/// The error that refuses a graph; "made" if it is accepted.
func refusal<N: Node & ~Copyable>(
  _ type: N.Type, _ parameters: [String: ParameterValue], inputs: [String: OutputShape] = [:]
) -> String {
  do {
    _ = try NodeBench(type, parameters, inputs: inputs)
    return "made"
  } catch { return "\(error)" }
}

/// Runs a program to its end; returns its standard output, all of its output, and its exit status.
func runProgram(
  _ name: String, _ arguments: [String]
) throws -> (output: [UInt8], text: String, status: Int32) {
  let folder = TemporaryFolder()
  let path = try #require(TestProgram.path(of: name))
  let (output, errors) = (folder.file("output"), folder.file("errors"))
  let status = try TestProgram(path, arguments, output: .file(output), errors: .file(errors)).wait()
  return (contents(output), String(decoding: contents(output) + contents(errors), as: UTF8.self), status)
}

/// Checks that continuous damage was reported correctly: at once, then at most once a second, the rest at the end. Returns the ranges and the
/// bytes reported.
func expectGathered(_ damage: [BenchEvent], from first: Double, seconds: Double) -> (count: Int, bytes: Int) {
  #expect(damage.first?.time == first && damage.first?.number("count") == 1, "the first at once")
  #expect(Double(damage.count) > seconds - 1 && Double(damage.count) < seconds + 3)
  // The last report comes with the end, at any time.
  let times = damage.dropLast().map(\.time)
  #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 1 })
  let bytes = damage.reduce(0) { $0 + ($1.number("bytes") ?? 0) }
  return (Int(damage.last?.number("count") ?? 0), Int(bytes))
}
