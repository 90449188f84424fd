internal import CFFmpeg
internal import MillraceAudio
internal import MillraceCore

/// A film from its first picture and sample to its last, both by one time: 0 is when the earlier of them begins.
///
/// Blocks; bulk lane; one thread at a time.
@safe
final class FilmReader {
  /// Code of the fault when the sound changes its rate or channels on the way.
  static let soundChanged: Int32 = 2

  let demuxer: Demuxer
  let pictures: FilmPictures?
  let sound: FilmSound?
  /// The file's time that is 0, for either.
  private let origins: (pictures: Nanoseconds, sound: Nanoseconds)
  private var hasPicture: Bool

  /// Opens a film. Its sound is left alone unless it is wanted.
  /// - Parameter interval: time from one picture that is wanted to the next; nil: all are.
  init(
    _ place: Demuxer.Place, threads: Int, sound wanted: SampleType?, pictures wantsPictures: Bool = true,
    interval: Nanoseconds? = nil
  ) throws(NodeProblem) {
    demuxer = try Demuxer(place)
    // Sound may lie before the first picture, and must not be passed over while that is looked for.
    if wanted != nil, let (index, _) = unsafe try demuxer.best(AVMEDIA_TYPE_AUDIO) { demuxer.use(index) }
    pictures = wantsPictures ? try FilmPictures(demuxer, threads: threads, interval: interval) : nil
    if let wanted {
      sound = try FilmSound(demuxer, sample: wanted, beside: pictures?.decoder.index ?? -1)
    } else {
      sound = nil
    }
    origins = Self.origins(pictures?.time, sound?.start)
    hasPicture = pictures != nil
  }

  /// Where two streams begin: together by the file's times, unless these cannot be.
  private static func origins(
    _ pictures: Nanoseconds?, _ sound: Nanoseconds?
  ) -> (pictures: Nanoseconds, sound: Nanoseconds) {
    guard let pictures, let sound else { return (pictures ?? sound ?? 0, sound ?? pictures ?? 0) }
    let (distance, isBeyond) = pictures.subtractingReportingOverflow(sound)
    let isBelieved = !isBeyond && distance.magnitude <= FilmPictures.longestPicture.magnitude
    return isBelieved ? (min(pictures, sound), min(pictures, sound)) : (pictures, sound)
  }

  /// When the present picture is due; nil when there is none any more.
  var pictureTime: Nanoseconds? { hasPicture ? pictures.map { $0.time &- origins.pictures } : nil }

  /// When the next sample is due.
  var soundTime: Nanoseconds? { sound.map { $0.time &- origins.sound } }

  /// Goes on to the next picture; true when it is wanted, or there is none any more.
  @discardableResult
  func advancePicture() throws(NodeFault) -> Bool {
    guard let pictures, hasPicture else { return true }
    let step = try pictures.step()
    hasPicture = step != .none
    return step != .unwanted
  }

  /// Has the slots of pictures go on from where the first one was, which lies before this film.
  func beginSlots(at start: Nanoseconds) { pictures?.beginSlots(at: start &+ origins.pictures) }

  /// When everything given so far is over: the last picture, or the sound.
  var end: Nanoseconds {
    let last = pictures.map { $0.time &- origins.pictures &+ $0.length } ?? 0
    return max(last, soundTime ?? 0)
  }

  /// Packets given up so far.
  var damageCount: Int { (pictures?.decoder.damageCount ?? 0) + (sound?.decoder.damageCount ?? 0) }

  /// The library's words at the last failure.
  var words: String? { pictures?.decoder.lastMessage ?? sound?.decoder.lastMessage ?? demuxer.words.text }

  /// How the film's file ends, now that all of it was read. Blocks: looks into the file.
  func tail(_ path: String) -> FilmTail {
    if demuxer.isCut { return .cut("it ends inside a packet") }
    // A file that is one picture. Of films some have no ends in their pictures on purpose.
    let container = demuxer.containerName
    if pictures?.decoder.endsInPart == true && (container == "image2" || container.hasSuffix("_pipe")) {
      return .cut("its picture has no end")
    }
    return FilmTail(path, container: container)
  }

  /// How long the film says it is; nil when it does not, or speaks of streams that are not read too.
  var announced: Nanoseconds? {
    if let stated = pictures?.decoder.announced { return stated }
    return demuxer.announced(streams: (pictures == nil ? 0 : 1) + (sound == nil ? 0 : 1))
  }
}
