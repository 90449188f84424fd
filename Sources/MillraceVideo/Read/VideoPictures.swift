internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// Reads the pictures of a video one by one: all are decoded; wanted ones are rotated and converted to the graph's size and colours, which
/// for a large picture takes longer than decoding. Blocks; bulk lane.
@safe
final class VideoPictures {
  /// Size after rotation.
  let width: Int
  let height: Int
  let rate: FrameRate
  /// When the current picture is due, in the file's time; never decreases.
  private(set) var time: Nanoseconds
  /// Duration of the current picture: a period, or longer if the file says so.
  private(set) var length: Nanoseconds
  /// The current picture's size in the file, before rotation.
  private(set) var codedSize: (width: Int, height: Int)
  let decoder: StreamDecoder
  private let mostPixels: Int
  private let turn: PictureOrientation
  /// Made with the first wanted picture: a file that is only probed needs none.
  private lazy var scaler = PictureScaler(
    to: .i420, width: turn.isSideways ? height : width, height: turn.isSideways ? width : height)
  /// Which pictures are wanted; nil: all.
  private var slots: PictureSlots?
  /// With slots, the current picture; the decoder may be one ahead.
  private var kept: DecodedPicture?
  /// Due time of the next picture, if it is decoded already.
  private var ahead: Nanoseconds?
  private var hasEnded = false

  /// The result of a step.
  enum Step {
    /// The next picture is current.
    case there
    /// The next picture is current, but not wanted.
    case unwanted
    /// There is none.
    case none
  }

  /// Longest duration of a picture. A time further ahead is taken for an error in the file's timestamps: waiting for it could take
  /// years.
  static let longestPicture: Nanoseconds = .milliseconds(600_000)

  /// Opens the pictures of a video and decodes the first one. nil if there are none.
  /// - Parameter interval: interval between wanted pictures; nil: all are wanted.
  init?(_ demuxer: Demuxer, threads: Int, interval: Nanoseconds? = nil) throws(NodeProblem) {
    guard let (index, codec) = unsafe try demuxer.best(AVMEDIA_TYPE_VIDEO) else { return nil }
    decoder = unsafe try StreamDecoder(demuxer, index, codec, threads: threads)
    do throws(NodeFault) {
      guard try decoder.next() else {
        throw NodeFault(.badInput)
      }
    } catch {
      if error.reason == .custom && error.code == PictureLimit.fault {
        try demuxer.checkSize(PictureLimit.size(error))
      }
      throw demuxer.problem(
        "contains no picture that can be decoded" + (decoder.lastMessage.map { ": \($0)" } ?? ""),
        cure: "check that it plays, or convert it again")
    }
    let stream = unsafe demuxer.stream(index)
    let frame = unsafe decoder.frame
    let (w, h) = unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
    try demuxer.checkSize((w, h))
    mostPixels = demuxer.source.mostPixels
    codedSize = (w, h)
    turn = unsafe decoder.turn(stream)
    (width, height) = turn.isSideways ? (h, w) : (w, h)
    rate = unsafe Self.rate(stream)
    time = decoder.time ?? 0
    length = Self.length(decoder, rate)
    slots = interval.map { PictureSlots(interval: $0) }
    _ = slots?.needs(from: time, upTo: time &+ length)
    guard unsafe PictureScaler.takes(UnsafePointer(frame)) else {
      throw demuxer.problem("has pictures with an unsupported pixel format", cure: "convert it to H.264")
    }
  }

  /// Plausible frame rates: from one picture in a quarter of an hour to more than any camera takes.
  private static let rates = 0.001...10_000.0

  /// The frame rate declared by the file; 25 if it declares no plausible one.
  private static func rate(_ stream: UnsafeMutablePointer<AVStream>?) -> FrameRate {
    guard let stream = unsafe stream else { return FrameRate(25) }
    let candidates = unsafe [stream.pointee.avg_frame_rate, stream.pointee.r_frame_rate]
    for rate in candidates
    where rate.num > 0 && rate.den > 0 && rates.contains(Double(rate.num) / Double(rate.den)) {
      return FrameRate(Int(rate.num), over: Int(rate.den))
    }
    return FrameRate(25)
  }

  /// Advances to the next picture: decodes one, with slots the one after it.
  func step() throws(NodeFault) -> Step {
    let due: Nanoseconds?
    if let time = ahead { due = time } else { due = try decode() }
    ahead = nil
    guard let due else { return .none }
    time = due
    length = Self.length(decoder, rate)
    codedSize = unsafe (Int(decoder.frame.pointee.width), Int(decoder.frame.pointee.height))
    guard PictureLimit.allows(codedSize, atMost: mostPixels) else { throw PictureLimit.fault(codedSize) }
    guard slots != nil else { return .there }
    kept = DecodedPicture(decoder, time: due)
    ahead = try decode()
    // Emit the last picture: it shows a reader of timestamps that the slots before it are over.
    let isNeeded = slots?.needs(from: due, upTo: ahead ?? due &+ length) == true
    return isNeeded || ahead == nil ? .there : .unwanted
  }

  /// Continues a slot grid that started at `start`, in the file's time, with other pictures.
  func beginSlots(at start: Nanoseconds) { slots?.begin(at: start) }

  /// Advances to the next picture, wanted or not; false at the end.
  func next() throws(NodeFault) -> Bool { try step() != .none }

  /// Decodes a picture and returns when it is due; nil at the end.
  private func decode() throws(NodeFault) -> Nanoseconds? {
    guard !hasEnded, try decoder.next() else {
      hasEnded = true
      return nil
    }
    // Times that repeat or go back would delay the next picture; a period is the best guess.
    let step = (decoder.time ?? time) &- time
    return time &+ (step > 0 && step <= Self.longestPicture ? step : rate.time(ofPictures: 1))
  }

  private static func length(_ decoder: StreamDecoder, _ rate: FrameRate) -> Nanoseconds {
    min(max(rate.time(ofPictures: 1), decoder.duration ?? 0), longestPicture)
  }

  /// Bytes per picture.
  var byteCount: Int { PixelType.i420.byteCount(width: width, height: height) }

  /// Writes the current picture, without row padding.
  func write(into target: inout MutableSpan<UInt8>) throws(NodeFault) {
    guard unsafe scaler.scale(kept?.frame ?? UnsafePointer(decoder.frame)) else {
      throw NodeFault(.library, code: -1)
    }
    scaler.copy(into: &target, turned: turn)
  }
}
