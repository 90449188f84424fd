internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// The pictures of a film, one after the other: all are decoded; those that are wanted are turned and brought to the one size and colour
/// of the graph, which of a large picture takes longer than decoding it. Blocks; bulk lane.
@safe
final class FilmPictures {
  /// Size after turning.
  let width: Int
  let height: Int
  let rate: FrameRate
  /// When the present picture is due, in the file's time; only grows.
  private(set) var time: Nanoseconds
  /// How long the present picture stands: for a period, or longer where the file says so.
  private(set) var length: Nanoseconds
  /// The size in the file of the present picture, as it lies there.
  private(set) var codedSize: (width: Int, height: Int)
  let decoder: StreamDecoder
  private let mostPixels: Int
  private let turn: PictureTurn
  /// Made with the first picture that is wanted: a film that is only looked at needs none.
  private lazy var scaler = PictureScaler(
    to: .i420, width: turn.isSideways ? height : width, height: turn.isSideways ? width : height)
  /// Which pictures are wanted; nil: all.
  private var slots: PictureSlots?
  /// With slots, the present picture; the decoder may be one ahead.
  private var kept: DecodedPicture?
  /// The picture after the present one is decoded, and due then.
  private var ahead: Nanoseconds?
  private var hasEnded = false

  /// What became of a look at the next picture.
  enum Step {
    /// It is the present one.
    case there
    /// It is, and nobody wants it.
    case unwanted
    /// There is none.
    case none
  }

  /// The longest that a picture stands. A time further ahead is taken for an error in the file's times: whoever waited for it would
  /// wait for years.
  static let longestPicture: Nanoseconds = .milliseconds(600_000)

  /// Opens the pictures of a film and decodes the first. nil when there are none.
  /// - Parameter interval: time from one picture that is wanted to the next; nil: all are.
  init?(_ demuxer: Demuxer, threads: Int, interval: Nanoseconds? = nil) throws(NodeProblem) {
    guard let (index, codec) = unsafe try demuxer.best(AVMEDIA_TYPE_VIDEO) else { return nil }
    decoder = unsafe try StreamDecoder(demuxer, index, codec, threads: threads)
    do throws(NodeFault) {
      guard try decoder.next() else {
        throw NodeFault(.badInput)
      }
    } catch {
      if error.reason == .custom && error.code == PictureBound.fault {
        try demuxer.checkSize(PictureBound.size(error))
      }
      throw demuxer.problem(
        "holds no picture that can be decoded" + (decoder.lastMessage.map { ": \($0)" } ?? ""),
        cure: "check that it plays, or convert it again")
    }
    let stream = unsafe demuxer.stream(index)
    let frame = unsafe decoder.frame
    let (w, h) = unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
    try demuxer.checkSize((w, h))
    mostPixels = demuxer.place.mostPixels
    codedSize = (w, h)
    turn = unsafe decoder.turn(stream)
    (width, height) = turn.isSideways ? (h, w) : (w, h)
    rate = unsafe Self.rate(stream)
    time = decoder.time ?? 0
    length = Self.length(decoder, rate)
    slots = interval.map { PictureSlots(interval: $0) }
    _ = slots?.needs(from: time, upTo: time &+ length)
    guard unsafe PictureScaler.takes(UnsafePointer(frame)) else {
      throw demuxer.problem("has pictures of a kind that cannot be converted", cure: "convert it to H.264")
    }
  }

  /// Pictures a second that are believed: from one in a quarter of an hour to more than any camera takes.
  private static let rates = 0.001...10_000.0

  /// Pictures a second, as the file says; 25 where it says nothing that can be.
  private static func rate(_ stream: UnsafeMutablePointer<AVStream>?) -> FrameRate {
    guard let stream = unsafe stream else { return FrameRate(25) }
    let candidates = unsafe [stream.pointee.avg_frame_rate, stream.pointee.r_frame_rate]
    for rate in candidates
    where rate.num > 0 && rate.den > 0 && rates.contains(Double(rate.num) / Double(rate.den)) {
      return FrameRate(Int(rate.num), over: Int(rate.den))
    }
    return FrameRate(25)
  }

  /// Goes on to the next picture: decodes one, with slots the one after it.
  func step() throws(NodeFault) -> Step {
    let due: Nanoseconds?
    if let time = ahead { due = time } else { due = try decode() }
    ahead = nil
    guard let due else { return .none }
    time = due
    length = Self.length(decoder, rate)
    codedSize = unsafe (Int(decoder.frame.pointee.width), Int(decoder.frame.pointee.height))
    guard PictureBound.allows(codedSize, atMost: mostPixels) else { throw PictureBound.fault(codedSize) }
    guard slots != nil else { return .there }
    kept = DecodedPicture(decoder, time: due)
    ahead = try decode()
    // The last picture shows whoever goes by their times that the slots before it are over.
    let isNeeded = slots?.needs(from: due, upTo: ahead ?? due &+ length) == true
    return isNeeded || ahead == nil ? .there : .unwanted
  }

  /// Has the slots go on from where a first one was, in the file's time: the pictures go on from others.
  func beginSlots(at start: Nanoseconds) { slots?.begin(at: start) }

  /// Goes on to the next picture, wanted or not; false at the end.
  func next() throws(NodeFault) -> Bool { try step() != .none }

  /// Decodes a picture; when it is due, nil at the end.
  private func decode() throws(NodeFault) -> Nanoseconds? {
    guard !hasEnded, try decoder.next() else {
      hasEnded = true
      return nil
    }
    // Times that stand still or go back would hold the picture after them up; a period is the best guess.
    let step = (decoder.time ?? time) &- time
    return time &+ (step > 0 && step <= Self.longestPicture ? step : rate.time(ofPictures: 1))
  }

  private static func length(_ decoder: StreamDecoder, _ rate: FrameRate) -> Nanoseconds {
    min(max(rate.time(ofPictures: 1), decoder.duration ?? 0), longestPicture)
  }

  /// Bytes of a picture.
  var byteCount: Int { PixelType.i420.byteCount(width: width, height: height) }

  /// Writes the present picture, without gaps.
  func write(into target: inout MutableSpan<UInt8>) throws(NodeFault) {
    guard unsafe scaler.scale(kept?.frame ?? UnsafePointer(decoder.frame)) else {
      throw NodeFault(.library, code: -1)
    }
    scaler.copy(into: &target, turned: turn)
  }
}
