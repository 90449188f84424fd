internal import CFFmpeg
internal import MillraceAudio
internal import MillraceCore

/// Reads a video file, pictures and audio on one timeline: time 0 is when the earlier of them starts.
///
/// Blocks; bulk lane; not thread-safe.
@safe
final class VideoFileReader {
  /// Fault code: the audio changed its rate or channels in mid-stream.
  static let soundChanged: Int32 = 2

  let demuxer: Demuxer
  let pictures: VideoPictures?
  let sound: VideoSound?
  /// The file time that corresponds to 0, for each track.
  private let origins: (pictures: Nanoseconds, sound: Nanoseconds)
  private var hasPicture: Bool

  /// Opens a file. Its audio is ignored unless requested.
  /// - Parameter interval: interval between wanted pictures; nil: all are wanted.
  init(
    _ place: Demuxer.Source, threads: Int, sound wanted: SampleType?, pictures wantsPictures: Bool = true,
    interval: Nanoseconds? = nil
  ) throws(NodeProblem) {
    demuxer = try Demuxer(place)
    // Audio may precede the first picture, and must not be skipped while looking for that.
    if wanted != nil, let (index, _) = unsafe try demuxer.best(AVMEDIA_TYPE_AUDIO) { demuxer.use(index) }
    pictures = wantsPictures ? try VideoPictures(demuxer, threads: threads, interval: interval) : nil
    if let wanted {
      sound = try VideoSound(demuxer, sample: wanted, beside: pictures?.decoder.index ?? -1)
    } else {
      sound = nil
    }
    origins = Self.origins(pictures?.time, sound?.start)
    hasPicture = pictures != nil
  }

  /// Start times of two streams: by the file's timestamps, unless these are implausible.
  private static func origins(
    _ pictures: Nanoseconds?, _ sound: Nanoseconds?
  ) -> (pictures: Nanoseconds, sound: Nanoseconds) {
    guard let pictures, let sound else { return (pictures ?? sound ?? 0, sound ?? pictures ?? 0) }
    let (distance, isBeyond) = pictures.subtractingReportingOverflow(sound)
    let isBelieved = !isBeyond && distance.magnitude <= VideoPictures.longestPicture.magnitude
    return isBelieved ? (min(pictures, sound), min(pictures, sound)) : (pictures, sound)
  }

  /// When the current picture is due; nil if there are no more.
  var pictureTime: Nanoseconds? { hasPicture ? pictures.map { $0.time &- origins.pictures } : nil }

  /// When the next sample is due.
  var soundTime: Nanoseconds? { sound.map { $0.time &- origins.sound } }

  /// Advances to the next picture; true if it is wanted, or there are no more.
  @discardableResult
  func advancePicture() throws(NodeFault) -> Bool {
    guard let pictures, hasPicture else { return true }
    let step = try pictures.step()
    hasPicture = step != .none
    return step != .unwanted
  }

  /// Continues the slot grid of a previous pass, which started before this one.
  func beginSlots(at start: Nanoseconds) { pictures?.beginSlots(at: start &+ origins.pictures) }

  /// End of everything read so far: the last picture, or the audio.
  var end: Nanoseconds {
    let last = pictures.map { $0.time &- origins.pictures &+ $0.length } ?? 0
    return max(last, soundTime ?? 0)
  }

  /// Packets dropped so far.
  var damageCount: Int { (pictures?.decoder.damageCount ?? 0) + (sound?.decoder.damageCount ?? 0) }

  /// The library's message for the last failure.
  var words: String? { pictures?.decoder.lastMessage ?? sound?.decoder.lastMessage ?? demuxer.words.text }

  /// Whether the file is complete, after all of it was read. Blocks: reads from the file.
  func tail(_ path: String) -> FileCompleteness {
    if demuxer.isCut { return .truncated("it ends inside a packet") }
    // A single-picture file. In videos, some pictures lack an end marker on purpose.
    let container = demuxer.containerName
    if pictures?.decoder.endsInPart == true && (container == "image2" || container.hasSuffix("_pipe")) {
      return .truncated("its picture has no end marker")
    }
    return FileCompleteness(path, container: container)
  }

  /// The declared duration; nil if there is none, or if it covers streams that are not read.
  var declaredDuration: Nanoseconds? {
    if let stated = pictures?.decoder.declaredDuration { return stated }
    return demuxer.declaredDuration(streams: (pictures == nil ? 0 : 1) + (sound == nil ? 0 : 1))
  }
}
