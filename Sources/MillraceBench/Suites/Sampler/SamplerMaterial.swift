import Glibc
import MillraceVideo

/// What the sampler is measured on, in one size: films picture by picture as it meets them, every 500 ms, and photographs, each for itself.
///
/// They are the clips and photographs below `MILLRACE_CORPUS/video`, photographs whole and in parts. Where none is large enough,
/// or there are none, pictures are made up.
struct SamplerMaterial {
  /// Pictures one after the other.
  var films: [[RawPicture]] = []
  /// Pictures without a picture before them.
  var photographs: [RawPicture] = []
  /// No recording: figures of these pictures are no figures of those.
  var isMadeUp = false

  var count: Int { films.reduce(photographs.count) { $0 + $1.count } }

  private static let interval: Int64 = 500_000_000
  /// Pictures of a film that is made up, and photographs: a few, since the best JPEG of each is searched for.
  private static let madeUp = (film: 5, photographs: 3)

  /// Everything that is at least of a size, in that size.
  /// - Parameter corpus: the folder of the recordings; nil: there is none.
  init(width: Int, height: Int, corpus: String? = Self.corpus) throws {
    if let corpus { try read(below: "\(corpus)/video", width: width, height: height) }
    guard count == 0 else { return }
    isMadeUp = true
    films = [MadePictures.film(width: width, height: height, count: Self.madeUp.film)]
    photographs = MadePictures.photographs(width: width, height: height, count: Self.madeUp.photographs)
  }

  private static var corpus: String? { unsafe getenv("MILLRACE_CORPUS").map { unsafe String(cString: $0) } }

  private mutating func read(below folder: String, width: Int, height: Int) throws {
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
  }
}
