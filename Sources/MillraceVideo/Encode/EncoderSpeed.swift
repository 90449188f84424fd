/// How much computing an encoder of live pictures spends on quality.
enum EncoderSpeed: String, CaseIterable, Sendable {
  /// The least computing, for many streams on one processor.
  case fastest
  /// As for recordings: 7 ms for 1280x720 in H.264.
  case fast
  /// More computing, for a slow network.
  case balanced

  /// The preset of x264 (`x264 --fullhelp`).
  var preset: String {
    switch self {
    case .fastest: "ultrafast"
    case .fast: "superfast"
    case .balanced: "veryfast"
    }
  }

  /// `cpu-used` of libvpx with the deadline `realtime` (vpx/vp8cx.h, VP8E_SET_CPUUSED).
  var cpuUsed: String {
    switch self {
    case .fastest: "12"
    case .fast: "8"
    case .balanced: "5"
    }
  }
}

/// The size of encoded pictures: that of the source, scaled down into a frame, with even sides.
struct EncodedSize: Equatable, Sendable {
  let width: Int
  let height: Int

  /// Fits a source into a frame with its aspect ratio. It is never enlarged, except to the least size, 2x2.
  init(of sourceWidth: Int, _ sourceHeight: Int, within mostWidth: Int, _ mostHeight: Int) {
    let scale = min(
      1, Double(mostWidth) / Double(sourceWidth), Double(mostHeight) / Double(sourceHeight))
    width = Self.even(Double(sourceWidth) * scale, mostWidth)
    height = Self.even(Double(sourceHeight) * scale, mostHeight)
  }

  /// The nearest even length from 2 to `most`: 4:2:0 of H.264 has one chroma sample for two pixels.
  private static func even(_ length: Double, _ most: Int) -> Int {
    max(2, min(most / 2 * 2, Int((length / 2).rounded()) * 2))
  }
}
