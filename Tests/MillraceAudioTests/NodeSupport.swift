import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting

/// A folder of its own under the system's temporary folder, removed with all in it.
final class TemporaryFolder {
  let path: String

  init() {
    var name = Array("/tmp/millrace-audio-XXXXXX".utf8CString)
    path = name.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  /// Path of a file in it.
  func file(_ name: String) -> String { path + "/" + name }

  deinit {
    guard let folder = opendir(path) else { return }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { remove(file(name)) }
    }
    closedir(folder)
    rmdir(path)
  }
}

/// All bytes of a file.
func contents(_ path: String) -> [UInt8] {
  guard let file = fopen(path, "r") else { return [] }
  defer { fclose(file) }
  var bytes: [UInt8] = []
  var part = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = fread(&part, 1, part.count, file)
    if count == 0 { return bytes }
    bytes += part[..<count]
  }
}

/// Replaces a file.
func put(_ bytes: [UInt8], at path: String) {
  let file = fopen(path, "w")!
  fwrite(bytes, 1, bytes.count, file)
  fclose(file)
}

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
  /// Pushes a stream in packets of the given lengths, over and over, position by position.
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

/// The refusal of a graph with this node, or nil.
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
