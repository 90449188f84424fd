internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// One file of `video.record`: it encodes pictures and audio, writes them, and posts the events about them.
///
/// Blocks; bulk lane; one thread at a time. Allocates.
@safe
final class VideoRecording {
  /// What the files of one node have in common.
  struct Settings {
    /// Parameter `format`; nil: by the extension of each path.
    var format: VideoFileFormat?
    /// Parameter `video`; nil: the format's first codec.
    var coding: PictureCoding?
    /// Of the pictures, in bit/s; nil: constant quality.
    var bitrate: Int?
    var keyInterval: Nanoseconds
    var threads: Int
    /// In bit/s; nil: a default for speech.
    var soundBitrate: Int?
    var patience: Nanoseconds
    /// Length at which a file is complete; nil: no limit.
    var duration: Nanoseconds?
    /// Length of a `progress` event.
    var progress: Nanoseconds
    var inputs: [NodeSetup.Port]
    var calls: FileBytes.Calls
  }

  let path: String
  let encoder: MediaEncoder
  /// True after a fault: nothing more is written.
  private(set) var hasFailed = false

  private let format: VideoFileFormat
  private let calls: FileBytes.Calls
  private let pathBytes: [UInt8]
  /// Nil before `open`.
  private var opened: VideoFileWriter?
  /// Released when the file is complete, and with the first fault, so that a recreated node can write it.
  private var lock: FileLock?
  private let duration: Nanoseconds?
  private let progress: Nanoseconds
  private var told: Nanoseconds = 0
  private var hasPostedBegan = false
  /// Recorded length and time of the last flush.
  private var refreshed: Nanoseconds = 0
  private var refreshedAt: Nanoseconds?

  /// Interval at which data is flushed to the disk.
  private static let refreshInterval = Nanoseconds.milliseconds(1_000)

  /// Checks the path, and opens the encoders. Nothing is written before `open`.
  init(
    _ path: String, _ settings: Settings, from beginning: MediaEncoder.Beginning? = nil
  ) throws(NodeProblem) {
    guard let format = settings.format ?? VideoFileFormat(path: path) else {
      throw VideoRecordCheck.unknownExtension(path)
    }
    let coding = settings.coding ?? format.codings[0]
    // A path that was set while the graph ran has not been checked with it.
    let problems = VideoRecordCheck.problems(
      format, coding, pictures: settings.inputs.first?.shape?.format,
      sound: settings.inputs.dropFirst().first?.shape?.format)
    if let problem = problems.first { throw problem }
    try RecordingPath.check(path, medium: "pictures")
    encoder = try MediaEncoder(
      MediaEncoder.Settings(
        pictures: PictureEncoder.Settings(
          coding: coding, bitrate: settings.bitrate, keyInterval: settings.keyInterval,
          threads: settings.threads, hasChoice: format.codings.count > 1),
        sound: format.sound, soundBitrate: settings.soundBitrate, patience: settings.patience,
        cure: format == .mp4 ? "record as mkv" : "record as mp4"),
      settings.inputs, from: beginning)
    self.path = path
    self.format = format
    calls = settings.calls
    pathBytes = Array(path.utf8)
    duration = settings.duration
    progress = settings.progress
  }

  /// Locks the file and opens it. Its content stays until `begin`, or the first packet.
  func open() throws(NodeProblem) {
    guard opened == nil else { return }
    let lock = try FileLock(path, for: .writing)
    opened = try VideoFileWriter(path, format, encoder, calls: calls)
    self.lock = consume lock
  }

  /// Opens the file of a node that is running, and writes its header, if that has not been done yet.
  func start() throws(NodeProblem) {
    try open()
    do throws(NodeFault) { try begin() } catch {
      throw NodeProblem(explain(error) ?? "\"\(path)\" cannot be begun", parameter: "path")
    }
  }

  /// The open file.
  private var file: VideoFileWriter {
    guard let opened else { preconditionFailure("the file is not open") }
    return opened
  }

  // MARK: Recording

  /// Truncates the file and writes its header.
  private func begin() throws(NodeFault) {
    do throws(NodeFault) { try file.begin() } catch { throw failing(error) }
  }

  /// Encodes what waits at the inputs and writes what may leave.
  func take(_ ports: inout Ports) throws(NodeFault) {
    do throws(NodeFault) {
      try encoder.take(&ports)
      limit()
      try write(isLast: false, &ports)
    } catch {
      throw failing(error)
    }
    postProgress(&ports)
  }

  /// Encodes what waits of the tracks that have ended in the file before. Nothing is written until that is complete.
  func take(_ ports: inout Ports, after other: VideoRecording) throws(NodeFault) {
    do throws(NodeFault) { try encoder.take(&ports, after: other.encoder) } catch { throw failing(error) }
    limit()
  }

  /// Ends the recording at its duration.
  private func limit() { if let end = longest { encoder.end(at: end) } }

  /// Where the duration ends the file; nil if there is none, or before anything arrived.
  private var longest: Nanoseconds? {
    guard let duration, let begin = encoder.begin else { return nil }
    return begin + duration
  }

  /// True if everything up to the duration was received, and no change at `next` comes first.
  func hasReachedDuration(before next: Nanoseconds?) -> Bool {
    guard let longest, encoder.isComplete, encoder.hasReachedEnd else { return false }
    return longest < next ?? .max
  }

  private func write(isLast: Bool, _ ports: inout Ports) throws(NodeFault) {
    let (encoder, file) = (encoder, file)
    let put: (EncodedPacket) throws(NodeFault) -> Void = { packet throws(NodeFault) in
      try file.begin()
      try file.write(packet, origin: encoder.origin ?? packet.time)
    }
    if isLast { try encoder.finish(put) } else { try encoder.release(at: ports.now, put) }
    if isLast { try file.begin() }
    if file.hasBegun { postBegan(&ports) }
  }

  /// Flushes the file after a second of video or of clock; returns when to check again.
  func refreshIfDue(at now: Nanoseconds) throws(NodeFault) -> Nanoseconds {
    let length = length
    guard file.hasBegun, length != refreshed else { return .max }
    let due = (refreshedAt ?? now) + Self.refreshInterval
    if refreshedAt == nil { refreshedAt = now }
    guard length - refreshed >= Self.refreshInterval || now >= due else { return due }
    do throws(NodeFault) { try file.refresh() } catch { throw failing(error) }
    refreshed = length
    refreshedAt = now
    return .max
  }

  /// Recorded length.
  private var length: Nanoseconds {
    guard let begin = encoder.begin, let front = encoder.front else { return 0 }
    return max(0, min(front, encoder.end ?? .max) - begin)
  }

  // MARK: Ending

  /// Writes what the encoders hold back, and the end of the file.
  func flush(_ ports: inout Ports) throws(NodeFault) {
    do throws(NodeFault) {
      try write(isLast: true, &ports)
      try file.finish(at: encoder.front ?? 0)
    } catch {
      throw failing(error)
    }
  }

  /// Releases the complete file, and posts `completed`.
  func postCompleted(_ reason: StaticString, _ ports: inout Ports) {
    // A listener of this event may use the file at once.
    lock = nil
    let (path, seconds, bytes) = (pathBytes, Double(length) / 1e9, file.byteCount)
    let (pictures, samples) = (encoder.pictureCount, encoder.sound == nil ? nil : Int(encoder.soundFrames))
    ports.post(VideoRecord.Event.completed.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", pictures)
      if let samples { event.field("samples", samples) }
      event.field("bytes", bytes)
      event.field("reason", reason)
      event.field("path", utf8: path.span)
    }
  }

  /// Removes the file and posts `cancelled`.
  func cancel(_ ports: inout Ports) {
    file.remove()
    lock = nil
    ports.post(VideoRecord.Event.cancelled.rawValue)
  }

  /// Releases the file.
  func release() { lock = nil }

  /// Releases the file at a fault, and adds what is safe.
  private func failing(_ fault: NodeFault) -> NodeFault {
    hasFailed = true
    lock = nil
    guard fault.reason == .library else { return fault }
    // Keep what was encoded before. If the disk refuses that too, it keeps what it has.
    if let opened, opened.hasBegun { do throws(NodeFault) { try opened.refresh() } catch {} }
    return NodeFault(.library, code: fault.code, detail: (opened?.safe ?? 0) / 1_000_000)
  }

  /// The message for a fault of this file.
  func explain(_ fault: NodeFault) -> String? {
    let place = "the \(fault.detail) ms before can be played"
    switch fault.reason {
    case .system: return FileMessages.writeFailure(fault.code, "\"\(path)\"", kept: place)
    case .library:
      return
        "cannot encode \"\(path)\": \(encoder.words ?? LibraryMessage.describe(fault.code)); \(place); "
        + "scale the pictures (video.scale), or set another \"format\""
    default: return nil
    }
  }

  // MARK: Events

  /// Posts `began`, once.
  func postBegan(_ ports: inout Ports) {
    guard !hasPostedBegan else { return }
    hasPostedBegan = true
    let path = pathBytes
    let (width, height) = (encoder.pictures.width, encoder.pictures.height)
    let rate = encoder.soundFormat?.rate
    ports.post(VideoRecord.Event.began.rawValue) { event in
      event.field("path", utf8: path.span)
      event.field("width", width)
      event.field("height", height)
      if let rate { event.field("rate", rate) }
    }
  }

  private func postProgress(_ ports: inout Ports) {
    let length = length
    guard length >= told + progress else { return }
    told = length / progress * progress
    let (seconds, pictures, bytes) = (Double(told) / 1e9, encoder.pictureCount, file.byteCount)
    ports.post(VideoRecord.Event.progress.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", pictures)
      event.field("bytes", bytes)
    }
  }
}
