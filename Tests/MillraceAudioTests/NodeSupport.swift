import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting

/// Writes 16-bit samples as a WAV file.
func writeWAV(_ samples: [Int16], rate: Int, channels: Int = 1, to path: String) throws {
  var writer = try WAVWriter(
    path: path, format: WAVFormat(sampleRate: rate, channels: channels, encoding: .s16))
  try writer.write(samples.span)
  try writer.finish()
}

/// Reads a WAV file as 16-bit samples.
func readWAV(_ path: String) throws -> [Int16] {
  var reader = try WAVReader(path: path)
  let count = Int(reader.frameCount) * reader.format.channels
  var samples = [Int16](repeating: 0, count: count)
  var span = samples.mutableSpan
  _ = try reader.read(at: 0, into: &span)
  return samples
}

/// PCM of 20 ms packets.
func shape(_ rate: Int = 16_000, channels: Int = 1, _ sample: SampleType = .s16, frames: Int? = nil)
  -> OutputShape
{
  .pcm(rate: rate, channels: channels, sample: sample, frames: frames ?? rate / 50)
}

extension NodeBench {
  /// Pushes a stream in packets of the given lengths, repeated, with consecutive positions.
  func push(_ samples: [Int16], channels: Int = 1, lengths: [Int], from start: Int64 = 0) {
    let rate = resolution.inputs["in"]!.format.rate!
    var first = 0
    var turn = 0
    while first < samples.count {
      let frames = min(lengths[turn % lengths.count], (samples.count - first) / channels)
      let part = Array(samples[first..<first + frames * channels])
      let position = start + Int64(first / channels)
      push(
        CapturedPacket(
          bytes: part.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] },
          timestamp: .samples(position, rate: rate), position: position, duration: frames))
      first += frames * channels
      turn += 1
    }
  }
}

/// The error of a graph with this node, or nil.
func refusal<N: Node & ~Copyable>(
  _ type: N.Type, _ parameters: [String: ParameterValue], inputs: [String: OutputShape] = [:]
) -> String? {
  do throws(BenchProblem) {
    _ = try NodeBench(type, parameters, inputs: inputs)
    return nil
  } catch {
    return error.description
  }
}
