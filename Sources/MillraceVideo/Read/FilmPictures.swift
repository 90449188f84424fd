internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// The pictures of a film, one after the other: decoded, and turned and brought to the one size and colour of the graph when they are
/// wanted. Blocks; bulk lane.
@safe
final class FilmPictures {
  /// Size after turning.
  let width: Int
  let height: Int
  let rate: FrameRate
  /// When the picture decoded last is due, in the file's time; only grows.
  private(set) var time: Nanoseconds
  /// How long the picture decoded last stands: for a period, or longer where the file says so.
  private(set) var length: Nanoseconds
  /// The size in the file of the picture decoded last, as it lies there.
  private(set) var codedSize: (width: Int, height: Int)
  let decoder: StreamDecoder
  private let turn: PictureTurn
  private let scaler: PictureScaler

  /// The largest pictures that are read: 8K and some.
  static let mostPixels = 1 << 26
  /// The longest that a picture stands. A time further ahead is taken for an error in the file's times: whoever waited for it would
  /// wait for years.
  static let longestPicture: Nanoseconds = .milliseconds(600_000)

  /// Opens the pictures of a film and decodes the first. nil when there are none.
  init?(_ demuxer: Demuxer, threads: Int) throws(NodeProblem) {
    guard let (index, codec) = unsafe try demuxer.best(AVMEDIA_TYPE_VIDEO) else { return nil }
    decoder = unsafe try StreamDecoder(demuxer, index, codec, threads: threads)
    do throws(NodeFault) {
      guard try decoder.next() else {
        throw NodeFault(.badInput)
      }
    } catch {
      throw demuxer.problem(
        "holds no picture that can be decoded" + (decoder.lastWords.map { ": \($0)" } ?? ""),
        cure: "check that it plays, or convert it again")
    }
    let stream = unsafe demuxer.stream(index)
    let frame = unsafe decoder.frame
    let (w, h) = unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
    guard w > 0 && h > 0 && w * h <= Self.mostPixels else {
      throw demuxer.problem("has pictures of \(w)x\(h)", cure: "scale it down first: at most 8192x8192")
    }
    codedSize = (w, h)
    turn = unsafe decoder.turn(stream)
    (width, height) = turn.isSideways ? (h, w) : (w, h)
    rate = unsafe Self.rate(stream)
    time = decoder.time ?? 0
    length = Self.length(decoder, rate)
    scaler = PictureScaler(to: .i420, width: w, height: h)
    guard unsafe scaler.scale(frame) else {
      throw demuxer.problem("has pictures of a kind that cannot be converted", cure: "convert it to H.264")
    }
  }

  /// Pictures a second, as the file says; 25 where it does not.
  private static func rate(_ stream: UnsafeMutablePointer<AVStream>?) -> FrameRate {
    guard let stream = unsafe stream else { return FrameRate(25) }
    let candidates = unsafe [stream.pointee.avg_frame_rate, stream.pointee.r_frame_rate]
    for rate in candidates where rate.num > 0 && rate.den > 0 {
      return FrameRate(Int(rate.num), over: Int(rate.den))
    }
    return FrameRate(25)
  }

  /// Decodes the next picture; false at the end.
  func next() throws(NodeFault) -> Bool {
    guard try decoder.next() else { return false }
    let frame = unsafe decoder.frame
    codedSize = unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
    let period = rate.time(ofPictures: 1)
    // Times that stand still or go back would hold the picture after them up; a period is the best guess.
    let step = (decoder.time ?? time) &- time
    time += step > 0 && step <= Self.longestPicture ? step : period
    length = Self.length(decoder, rate)
    return true
  }

  private static func length(_ decoder: StreamDecoder, _ rate: FrameRate) -> Nanoseconds {
    min(max(rate.time(ofPictures: 1), decoder.duration ?? 0), longestPicture)
  }

  /// Bytes of a picture.
  var byteCount: Int { PixelType.i420.byteCount(width: width, height: height) }

  /// Writes the picture decoded last, without gaps.
  func write(into target: inout MutableSpan<UInt8>) throws(NodeFault) {
    guard unsafe scaler.scale(decoder.frame) else { throw NodeFault(.library, code: -1) }
    scaler.copy(into: &target, turned: turn)
  }
}
