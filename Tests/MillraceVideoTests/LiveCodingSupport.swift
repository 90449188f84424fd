import Glibc
import MillraceCore
import MillraceTesting

@testable import MillraceVideo

/// The node `video.encode` in a bench, fed with one picture every 40 ms.
final class EncodeBench {
  let bench: NodeBench
  let width: Int
  let height: Int
  private(set) var time: Nanoseconds = 0

  init(
    _ parameters: [String: ParameterValue] = [:], width: Int = 64, height: Int = 48, pixel: PixelType = .i420,
    rate: Int = 25, wanted: [String: FormatConstraint] = [:]
  ) throws {
    bench = try NodeBench(
      VideoEncode.self, parameters,
      inputs: [
        "video": pictureInput(width, height, pixel: pixel, rate: rate),
        "control": OutputShape(.event, packetDuration: nil, packetBytes: 65_536),
      ], wanted: wanted)
    (self.width, self.height) = (width, height)
  }

  /// Encodes a picture at the next time, and returns the packets.
  @discardableResult
  func encode(_ bytes: [UInt8], step: Int64 = 40) throws -> [CapturedPacket] {
    try bench.advance(to: max(bench.now, time))
    bench.push(CapturedPacket(bytes: bytes, timestamp: time), to: "video")
    try bench.run()
    time += .milliseconds(step)
    return bench.packets()
  }

  /// Encodes some pictures of a scene.
  func encode(_ count: Int, noise: Int = 0) throws -> [CapturedPacket] {
    let scene = (0..<min(count, 8)).map { TestPicture.i420(width, height, noise: noise, seed: $0) }
    return try (0..<count).flatMap { try encode(scene[$0 % scene.count]) }
  }
}

/// The node `video.decode` in a bench.
struct DecodeBench {
  let bench: NodeBench

  init(_ codec: String, width: Int = 64, height: Int = 48, _ more: [String: ParameterValue] = [:]) throws {
    var parameters = more
    parameters["width"] = .integer(width)
    parameters["height"] = .integer(height)
    bench = try NodeBench(
      VideoDecode.self, parameters,
      inputs: [
        "in": OutputShape(codec == "vp8" ? .vp8 : .h264, packetDuration: nil, packetBytes: 1 << 20)
      ])
  }

  /// Decodes a packet at its time, and returns the pictures.
  @discardableResult
  func decode(_ packet: CapturedPacket) throws -> [CapturedPacket] {
    try bench.advance(to: max(bench.now, packet.timestamp))
    bench.push(packet)
    try bench.run()
    return bench.packets("video")
  }
}

/// Mean squared error of the first `count` bytes, which are the luma of a picture, in dB.
func lumaPSNR(_ one: [UInt8], _ other: [UInt8], count: Int) -> Double {
  var sum = 0
  for index in 0..<count {
    let difference = Int(one[index]) - Int(other[index])
    sum += difference * difference
  }
  return sum == 0 ? 99 : 10 * log10(65_025 * Double(count) / Double(sum))
}

/// The types of the NAL units of an H.264 access unit (ITU-T H.264, Annex B), and where each begins.
func nalUnits(_ bytes: [UInt8]) -> [(type: Int, start: Int)] {
  var units: [(Int, Int)] = []
  var place = 0
  while place + 3 < bytes.count {
    if bytes[place] == 0, bytes[place + 1] == 0, bytes[place + 2] == 1 {
      units.append((Int(bytes[place + 3] & 31), place + 3))
      place += 4
    } else {
      place += 1
    }
  }
  return units
}
