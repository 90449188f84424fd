import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

/// An MP3 stream and the ranges of its frames.
struct MP3Pieces {
  var bytes: [UInt8]
  /// All frames, including the encoder's info frame.
  let frames: [Range<Int>]
  /// True if the first frame is an encoder's info frame, without audio.
  let hasInfo: Bool

  /// Finds the layer III frames of an undamaged stream.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var frames: [Range<Int>] = []
    var at = Self.tagBytes(bytes)
    while at + 4 <= bytes.count, bytes[at] == 0xFF, bytes[at + 1] & 0xE0 == 0xE0 {
      let size = Self.frameBytes(bytes[at..<at + 4])
      guard size > 0, at + size <= bytes.count else { break }
      frames.append(at..<at + size)
      at += size
    }
    self.frames = frames
    let first = frames.first.map { String(decoding: bytes[$0], as: Unicode.ASCII.self) } ?? ""
    hasInfo = first.contains("Xing") || first.contains("Info")
  }

  private static func tagBytes(_ bytes: [UInt8]) -> Int {
    guard bytes.starts(with: "ID3".utf8) else { return 0 }
    return 10 + bytes[6..<10].reduce(0) { $0 << 7 | Int($1) }
  }

  /// Size of a layer III frame by its header (ISO/IEC 11172-3 section 2.4.2.3).
  private static func frameBytes(_ header: ArraySlice<UInt8>) -> Int {
    let header = Array(header)
    let isFirst = header[1] >> 3 & 3 == 3
    let rates = isFirst ? [44_100, 48_000, 32_000] : [22_050, 24_000, 16_000]
    let bits =
      isFirst
      ? [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
      : [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
    let (rate, bit) = (Int(header[2] >> 2 & 3), Int(header[2] >> 4))
    guard rate < 3, bit < 15 else { return 0 }
    return (isFirst ? 144 : 72) * bits[bit] * 1_000 / rates[rate] + Int(header[2] >> 1 & 1)
  }

  /// Only the frames with audio, as most services send them.
  var bare: [UInt8] { Array(bytes[frames[hasInfo ? 1 : 0].lowerBound...]) }

  /// Encodes samples; the encoder's padding is kept.
  static func made(_ samples: [Int16], rate: Int, channels: Int = 1, bitRate: Int = 96_000) throws
    -> MP3Pieces
  {
    let folder = TemporaryFolder()
    let path = folder.file("made.mp3")
    MediaFile.write(
      samples, codec: "libmp3lame", rate: rate, channels: channels, bitRate: bitRate, to: path)
    return MP3Pieces(Array(try Data(contentsOf: URL(fileURLWithPath: path))))
  }

  static let canMake = MediaFile.canEncode("libmp3lame")
}

/// The shape of a link that carries pieces of MP3.
let mp3Shape = OutputShape(.mp3, packetDuration: nil, packetBytes: 1 << 20)

extension NodeBench {
  /// Pushes bytes in pieces of a length; the last one may be marked.
  func push(_ bytes: [UInt8], cut: Int, flags: PacketFlags = [], ends: Bool = false) {
    for start in stride(from: 0, to: bytes.count, by: cut) {
      let end = min(start + cut, bytes.count)
      var marks: PacketFlags = start == 0 ? flags : []
      if ends && end == bytes.count { marks.insert(.endOfUtterance) }
      push(bytes: Array(bytes[start..<end]), flags: marks)
    }
  }
}
