import Glibc
import MillraceVideo

/// The clips and photographs below `MILLRACE_CORPUS/video`, in one size: films picture by picture as the sampler meets them, every
/// 500 ms, and photographs, each for itself, whole and in parts.
struct SamplerMaterial {
  /// Pictures one after the other.
  var films: [[RawPicture]] = []
  /// Pictures without a picture before them.
  var photographs: [RawPicture] = []

  var count: Int { films.reduce(photographs.count) { $0 + $1.count } }

  private static let interval: Int64 = 500_000_000

  /// Everything that is at least of a size, in that size; nil without recordings.
  init?(width: Int, height: Int) throws {
    guard let corpus = unsafe getenv("MILLRACE_CORPUS").map({ unsafe String(cString: $0) }) else {
      return nil
    }
    let folder = "\(corpus)/video"
    for path in files(in: folder, endingIn: ".mp4") {
      let film = try RawPicture.read(path, every: Self.interval).filter { $0.width >= width }
      if !film.isEmpty { films.append(film.compactMap { $0.scaled(width: width, height: height) }) }
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
    guard count > 0 else { return nil }
  }
}
