import Foundation
import MillraceTesting
import Testing

/// 16-bit sound in memory, with a reader and a writer of WAV files that share no code with the nodes under test.
struct Sound {
  var rate: Int
  var channels = 1
  /// Interleaved.
  var samples: [Int16]

  var frames: Int { samples.count / channels }

  /// A sine with a noise floor: never silent, never the same twice in a row.
  static func made(rate: Int, frames: Int, channels: Int = 1) -> Sound {
    let sine = Fixture.sine(440, rate: rate, frames: frames, channels: channels, amplitude: 0.3)
    let noise = Fixture.noise(seed: 7, count: frames * channels, amplitude: 0.05)
    return Sound(
      rate: rate, channels: channels, samples: zip(sine, noise).map { Int16((($0 + $1) * 32767).rounded()) })
  }

  /// The bytes of a WAV file.
  var wav: [UInt8] {
    func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
    let size = samples.count * 2
    return Array("RIFF".utf8) + little(36 + size, 4) + Array("WAVEfmt ".utf8) + little(16, 4) + little(1, 2)
      + little(channels, 2) + little(rate, 4) + little(rate * channels * 2, 4) + little(channels * 2, 2)
      + little(16, 2) + Array("data".utf8) + little(size, 4) + samples.flatMap { little(Int($0), 2) }
  }

  /// Reads a WAV file of 16-bit samples, or of 32-bit floats, which become such.
  init(wav bytes: [UInt8]) throws {
    func number(_ offset: Int, _ count: Int) throws -> Int {
      try #require(offset + count <= bytes.count, "the file ends inside a field at \(offset)")
      return (0..<count).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    }
    try #require(bytes.starts(with: "RIFF".utf8) && bytes.dropFirst(8).starts(with: "WAVE".utf8))
    var offset = 12
    var (rate, channels, bits): (Int?, Int, Int) = (nil, 1, 16)
    while true {
      let size = try number(offset + 4, 4)
      let kind = String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
      if kind == "fmt " {
        channels = try number(offset + 10, 2)
        rate = try number(offset + 12, 4)
        bits = try number(offset + 22, 2)
        try #require(bits == 16 || bits == 32)
      } else if kind == "data" {
        try #require(offset + 8 + size <= bytes.count, "the data is shorter than the header says")
        samples = stride(from: offset + 8, to: offset + 8 + size, by: bits / 8).map { place in
          if bits == 16 { return Int16(bitPattern: UInt16(bytes[place]) | UInt16(bytes[place + 1]) << 8) }
          let pattern = (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[place + $1]) << UInt32(8 * $1) }
          return Int16((max(-1, min(1, Float(bitPattern: pattern))) * 32_767).rounded())
        }
        self.rate = try #require(rate)
        self.channels = channels
        return
      }
      offset += 8 + size + size % 2
    }
  }

  init(rate: Int, channels: Int = 1, samples: [Int16]) {
    self.rate = rate
    self.channels = channels
    self.samples = samples
  }

  /// Reads a WAV file, as `init(wav:)`.
  init(path: String) throws { try self.init(wav: Array(Data(contentsOf: URL(fileURLWithPath: path)))) }

  /// The first channel at another rate, by straight lines between the samples: coarse, but without any delay.
  func drawn(at other: Int, count: Int) -> [Float] {
    (0..<count).map { index in
      let place = Double(index) * Double(rate) / Double(other)
      let first = Int(place)
      func sample(_ frame: Int) -> Double { frame < frames ? Double(samples[frame * channels]) / 32768 : 0 }
      return Float(sample(first) + (place - Double(first)) * (sample(first + 1) - sample(first)))
    }
  }
}

/// By how many samples `heard` lies behind `sent`: where their correlation over two seconds in the middle is highest, within
/// `reach` to both sides.
func lag(of heard: [Float], behind sent: [Float], rate: Int, reach: Int = 40) -> Int {
  let middle = min(sent.count, heard.count) / 2
  let half = min(rate, middle - reach)
  func likeness(_ shift: Int) -> Float {
    var sum: Float = 0
    for index in middle - half..<middle + half { sum += sent[index] * heard[index + shift] }
    return sum
  }
  let scores = (-reach...reach).map(likeness)
  return scores.indices.max { scores[$0] < scores[$1] }! - reach
}

/// Signal to noise of `heard` against `sent`, in dB.
func signalToNoise(_ sent: [Float], _ heard: [Float]) -> Double {
  var (signal, noise) = (0.0, 0.0)
  for (one, other) in zip(sent, heard) {
    signal += Double(one) * Double(one)
    noise += Double(one - other) * Double(one - other)
  }
  return 10 * log10(signal / max(noise, 1e-12))
}
