import CFFmpeg
import Glibc
import MillraceCore
import MillraceTesting
import TestSystem

@testable import MillraceVideo

/// Flashes in pictures and clicks in audio at the same times, and detection of them in a video.
enum FlashAndClick {
  static let rate = 48_000
  static let dark: UInt8 = 30
  static let bright: UInt8 = 220

  /// Audio with a burst of 5 ms at each time, in ms, from `start` on.
  static func sound(_ times: [Int], start: Int = 0, milliseconds: Int, rate: Int = rate) -> [Int16] {
    (0..<milliseconds * rate / 1_000).map { frame in
      let time = start + frame * 1_000 / rate
      let isLoud = times.contains { (0..<5).contains(time - $0) }
      return isLoud ? Int16(20_000 * sin(2 * .pi * 1_000 * Double(frame) / Double(rate))) : 0
    }
  }

  /// A picture for a time in ms: bright for 40 ms from each of the times on.
  static func picture(_ time: Int, _ times: [Int], width: Int = 64, height: Int = 48) -> [UInt8] {
    let isBright = times.contains { (0..<40).contains(time - $0) }
    return TestPicture.flat(width, height, y: isBright ? bright : dark)
  }
}

/// A video as `video.read` emits it.
struct PlayedFilm {
  var width = 0
  var height = 0
  var rate = 0
  var channels = 0
  /// Times of the pictures in ms, and the luma of their first pixel.
  var times: [Double] = []
  var lumas: [UInt8] = []
  /// The last picture.
  var picture: [UInt8] = []
  /// When the first sample is due, in ms.
  var soundStart = 0.0
  var samples: [Int16] = []
  var events: [String] = []

  init(_ path: String, sound: Bool = true) throws {
    let bench = try NodeBench(
      VideoRead.self, ["path": .string(path)],
      outputs: sound ? ["out", "audio", "events"] : ["out", "events"])
    if case .video(let width, let height, _, _) = bench.shape().format {
      (self.width, self.height) = (width, height)
    }
    if sound {
      rate = bench.shape("audio").format.rate ?? 0
      channels = bench.shape("audio").format.channels ?? 0
    }
    var isFirst = true
    bench.hold()
    while !bench.hasEnded {
      try bench.run(calls: 50)
      while let packet = bench.take() {
        let bytes = packet.samples(of: UInt8.self)
        times.append(Double(packet.timestamp) / 1e6)
        lumas.append(bytes[0])
        picture = (0..<bytes.count).map { bytes[$0] }
      }
      if sound {
        for packet in bench.packets("audio") {
          if isFirst { soundStart = Double(packet.timestamp) / 1e6 }
          isFirst = false
          samples += packet.int16
        }
      }
    }
    events = bench.events().map(\.name)
  }

  /// When pictures turn bright, in ms.
  var flashes: [Double] {
    times.indices.filter { lumas[$0] > 128 && ($0 == 0 || lumas[$0 - 1] <= 128) }.map { times[$0] }
  }

  /// When audio becomes loud after 100 ms of silence, in ms.
  var clicks: [Double] {
    var found: [Double] = []
    var quiet = Int.max / 2
    for frame in 0..<samples.count / max(1, channels) {
      quiet += 1
      guard abs(Int(samples[frame * channels])) > 6_000 else { continue }
      if quiet > rate / 10 { found.append(soundStart + Double(frame) * 1_000 / Double(rate)) }
      quiet = 0
    }
    return found
  }

  /// The delay of each click after its flash, in ms.
  var offsets: [Double] { zip(flashes, clicks).map { $1 - $0 } }
}

/// The shape of a bench's picture input.
func pictureInput(_ width: Int = 64, _ height: Int = 48, pixel: PixelType = .i420, rate: Int = 25)
  -> OutputShape
{
  .video(width: width, height: height, pixel: pixel, rate: FrameRate(rate))
}

/// The shape of a bench's audio input.
func soundInput(
  _ rate: Int = FlashAndClick.rate, channels: Int = 1, sample: SampleType = .s16, frames: Int = 960
) -> OutputShape {
  .pcm(rate: rate, channels: channels, sample: sample, frames: frames)
}

/// The video packets of a file.
struct VideoPackets {
  /// Times of the key frames in ms, from the first packet on.
  var keys: [Int] = []
  /// Offset of each packet in the file.
  var places: [Int] = []

  init(_ path: String) throws {
    let demuxer = try Demuxer(Demuxer.Source(file: path))
    guard let (index, _) = try demuxer.best(AVMEDIA_TYPE_VIDEO) else { return }
    demuxer.use(index)
    var first: Double?
    while let packet = try demuxer.next(index) {
      let base = demuxer.stream(index)!.pointee.time_base
      let time = Double(packet.pointee.pts) * Double(base.num) * 1_000 / Double(base.den)
      if first == nil { first = time }
      places.append(Int(packet.pointee.pos))
      if packet.pointee.flags & AV_PKT_FLAG_KEY != 0 { keys.append(Int((time - first!).rounded())) }
      var used: UnsafeMutablePointer<AVPacket>? = packet
      av_packet_free(&used)
    }
  }
}

/// An H.264 video in FLV in which all but the key frames are damaged.
struct DamagedFilm {
  let bytes: [UInt8]
  /// Packets that are damaged.
  private(set) var count = 0

  /// Damages a video by setting the lengths of its NAL units out of bounds (Adobe Flash Video File Format Specification 10.1, E.4.3; ISO/IEC
  /// 14496-15, 5.3.4.2).
  init(_ whole: [UInt8]) {
    var bytes = whole
    var place = 13
    while place + 20 < bytes.count {
      let size = Int(bytes[place + 1]) << 16 | Int(bytes[place + 2]) << 8 | Int(bytes[place + 3])
      if bytes[place] == 9 && bytes[place + 11] == 0x27 && bytes[place + 12] == 1 {
        bytes.replaceSubrange(place + 16..<place + 20, with: [0x7F, 0xFF, 0xFF, 0xFF])
        count += 1
      }
      place += 11 + size + 4
    }
    self.bytes = bytes
  }
}
