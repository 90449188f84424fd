import Glibc
import MillraceVideo

/// The input for measuring the sampler, in one size: videos, a picture every 500 ms as the sampler gets them, and single photographs.
///
/// They come from `MILLRACE_CORPUS/video`, photographs whole and in parts. If none is large enough, or there are none, the pictures are
/// synthetic.
struct SamplerMaterial {
  /// Consecutive pictures of each video.
  var videos: [[RawPicture]] = []
  /// Single pictures.
  var photographs: [RawPicture] = []
  /// The pictures are synthetic: figures are not comparable with those of recordings.
  var isSynthetic = false

  var count: Int { videos.reduce(photographs.count) { $0 + $1.count } }

  private static let interval: Int64 = 500_000_000
  /// Synthetic pictures: few, since the best JPEG of each is searched for.
  private static let syntheticCounts = (video: 5, photographs: 3)

  /// Everything that has at least a size, scaled to that size.
  /// - Parameter corpus: the folder of the recordings; nil: none.
  init(width: Int, height: Int, corpus: String? = Self.corpus) throws {
    if let corpus { try read(below: "\(corpus)/video", width: width, height: height) }
    guard count == 0 else { return }
    isSynthetic = true
    videos = [SyntheticPictures.video(width: width, height: height, count: Self.syntheticCounts.video)]
    photographs = SyntheticPictures.photographs(
      width: width, height: height, count: Self.syntheticCounts.photographs)
  }

  private static var corpus: String? { unsafe getenv("MILLRACE_CORPUS").map { unsafe String(cString: $0) } }

  private mutating func read(below folder: String, width: Int, height: Int) throws {
    for path in files(in: folder, endingIn: ".mp4") {
      let video = try RawPicture.read(path, every: Self.interval).filter { $0.width >= width }
      if !video.isEmpty { videos.append(video.compactMap { $0.scaled(width: width, height: height) }) }
    }
    for path in files(in: folder, endingIn: ".jpg") {
      for picture in try RawPicture.read(path, every: Self.interval) where picture.width >= width {
        if let whole = picture.scaled(width: width, height: height) { photographs.append(whole) }
        guard picture.width > width else { continue }
        for top in stride(from: 0, through: picture.height - height, by: height) {
          for left in stride(from: 0, through: picture.width - width, by: width) {
            if let part = picture.part(left: left, top: top, width: width, height: height) {
              photographs.append(part)
            }
          }
        }
      }
    }
  }
}
