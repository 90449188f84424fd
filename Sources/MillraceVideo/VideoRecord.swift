internal import MillraceAudio
public import MillraceCore
internal import MillraceFiles

/// `video.record`: records pictures, and audio if linked, to a file.
///
/// - Input `in`: raw pictures of any pixel type and size. Input `audio`: s16 or f32, mono or stereo, at a rate the file's audio codec supports.
/// - **Times.** A picture is shown at its packet's time, whatever was dropped before it; a picture not later than the previous one is
///   dropped (`late`). Audio starts at its first packet's time and continues by position; gaps become silence. If positions and times disagree
///   by more than 20 ms for 200 ms, or by 250 ms at once, audio is moved to its packets' times (`moved`).
/// - **Waiting.** Each track waits for the other, until that has delivered nothing for `patience`; then silence replaces missing audio, and
///   audio that arrives later is cut (`late`). If pictures start later than that, the recording starts with a black one. Each may end
///   before the other: the last picture is repeated every second until the audio ends.
/// - **Sizes.** 4:2:0 needs even sides: an odd one is padded by repeating the last column or row. Colours are BT.601, video range, and
///   tagged as such.
/// - `stop` completes the file at once, `cancel` removes it. `duration` completes it at that length.
/// - If the process is killed, the file is playable up to the last second or two. An existing file is replaced by the first picture or audio, not by
///   a graph that never starts; a missing folder is an error and is not created.
/// - A failed write (disk full) posts event `refused` and fails the node; what was written before stays readable.
/// - No latency. Bulk lane, where it also encodes: 10 ms for a picture of 1280x720. Allocates.
@safe
public struct VideoRecord: ~Copyable, Node {
  private static let stop = contract.parameterIndex("stop")
  private static let cancel = contract.parameterIndex("cancel")
  /// Interval at which data is flushed to the disk.
  private static let refreshInterval = Nanoseconds.milliseconds(1_000)

  private let path: String
  let encoder: MediaEncoder
  private let file: VideoFileWriter
  /// Released when the file is complete, and with the first fault, so that a recreated node can write it.
  private var claim: FileLock?
  private let duration: Nanoseconds?
  private let progress: Nanoseconds
  private var told: Nanoseconds = 0
  private var isOver = false
  private var stops = false
  /// Recorded length and time of the last flush.
  private var refreshed: Nanoseconds = 0
  private var refreshedAt: Nanoseconds?
  private var drops = DropEvents(late: Event.late.rawValue, moved: Event.moved.rawValue)

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup, calls: FileBytes.Calls())
  }

  /// As above; tests inject failing system calls.
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem) {
    let values = setup.parameters
    let path = values.string("path")
    guard let format = VideoFileFormat(values) else {
      throw NodeProblem("\"\(path)\" has no known video extension", parameter: "path", cure: "use .mp4")
    }
    try RecordingPath.check(path, medium: "pictures")
    let encoder = try MediaEncoder(
      MediaEncoder.Settings(
        pictures: PictureEncoder.Settings(
          coding: Self.coding(values, format),
          bitrate: values.has("bitrate") ? values.integer("bitrate") : nil,
          keyInterval: values.nanoseconds("keyInterval"), threads: values.integer("threads"),
          hasChoice: format.codings.count > 1),
        sound: format.sound, soundBitrate: values.has("soundBitrate") ? values.integer("soundBitrate") : nil,
        patience: values.nanoseconds("patience"),
        cure: format == .mp4 ? "record as mkv" : "record as mp4"),
      setup.inputs)
    let claim = try FileLock(path, for: .writing)
    let file = try VideoFileWriter(path, format, encoder, calls: calls)
    self.path = path
    self.encoder = encoder
    self.file = file
    self.claim = consume claim
    duration = values.has("duration") ? values.nanoseconds("duration") : nil
    progress = values.nanoseconds("progress")
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    do throws(NodeFault) { return try record(&ports) } catch { throw releasing(error, &ports) }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    do throws(NodeFault) {
      try takeAndWrite(&ports)
      try complete("ended", &ports)
      return .ended
    } catch { throw releasing(error, &ports) }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard !isOver, case .set(let parameter, .bool(true)) = message else { return }
    switch parameter {
    case Self.stop:
      stops = true
      ports.wake(at: ports.now)
    case Self.cancel: cancel(&ports)
    default: break
    }
  }

  /// Releases the file on a fault, and reports what is safe.
  private mutating func releasing(_ fault: NodeFault, _ ports: inout Ports) -> NodeFault {
    claim = nil
    if fault.reason == .system {
      ports.post(Event.refused.rawValue) { $0.field("seconds", Double(fault.detail) / 1e3, decimals: 3) }
    }
    guard fault.reason == .library else { return fault }
    // Keep what was encoded before. If the disk refuses that too, it keeps what it has.
    if file.hasBegun { do throws(NodeFault) { try file.refresh() } catch {} }
    return NodeFault(.library, code: fault.code, detail: file.safe / 1_000_000)
  }

  private mutating func record(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if !stops { try takeAndWrite(&ports) }
    if stops || encoder.isComplete && encoder.end != nil {
      try complete(stops ? "stopped" : "duration", &ports)
      return .ended
    }
    let wish = min(try refreshIfDue(&ports), encoder.nextExpiry(after: ports.now) ?? .max)
    if wish != .max { ports.wake(at: wish) }
    return .done
  }

  private mutating func takeAndWrite(_ ports: inout Ports) throws(NodeFault) {
    try encoder.take(&ports)
    if let duration, encoder.end == nil, let begin = encoder.begin { encoder.end = begin + duration }
    try write(&ports, isLast: false)
    drops.post(encoder, &ports)
    postProgress(&ports)
  }

  private mutating func write(_ ports: inout Ports, isLast: Bool) throws(NodeFault) {
    let (encoder, file) = (encoder, file)
    let put: (EncodedPacket) throws(NodeFault) -> Void = { packet throws(NodeFault) in
      try file.begin()
      try file.write(packet, origin: encoder.origin ?? packet.time)
    }
    let hadBegun = file.hasBegun
    if isLast { try encoder.finish(put) } else { try encoder.release(at: ports.now, put) }
    if isLast { try file.begin() }
    if !hadBegun && file.hasBegun { tellBegin(&ports) }
  }

  /// Flushes the file after a second of video or of clock; returns when to check again.
  private mutating func refreshIfDue(_ ports: inout Ports) throws(NodeFault) -> Nanoseconds {
    let length = length
    guard file.hasBegun, length != refreshed else { return .max }
    let due = (refreshedAt ?? ports.now) + Self.refreshInterval
    if refreshedAt == nil { refreshedAt = ports.now }
    guard length - refreshed >= Self.refreshInterval || ports.now >= due else { return due }
    try file.refresh()
    refreshed = length
    refreshedAt = ports.now
    return .max
  }

  /// Recorded length.
  private var length: Nanoseconds {
    guard let begin = encoder.begin, let front = encoder.front else { return 0 }
    return min(front - begin, duration ?? .max)
  }

  // MARK: Ending

  private mutating func complete(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    try write(&ports, isLast: true)
    try file.finish(at: encoder.front ?? 0)
    // Release the file first: a listener of `completed` may use it.
    claim = nil
    isOver = true
    drops.post(encoder, &ports, always: true)
    let (seconds, pictures, bytes) = (Double(length) / 1e9, encoder.pictureCount, file.byteCount)
    ports.post(Event.completed.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", pictures)
      event.field("bytes", bytes)
      event.field("reason", reason)
    }
  }

  private mutating func cancel(_ ports: inout Ports) {
    file.remove()
    claim = nil
    isOver = true
    ports.post(Event.cancelled.rawValue)
    ports.wake(at: ports.now)
  }

  // MARK: Events

  private func tellBegin(_ ports: inout Ports) {
    let path = Array(path.utf8)
    let (width, height) = (encoder.pictures.width, encoder.pictures.height)
    let rate = encoder.soundFormat?.rate
    ports.post(Event.began.rawValue) { event in
      event.field("path", utf8: path.span)
      event.field("width", width)
      event.field("height", height)
      if let rate { event.field("rate", rate) }
    }
  }

  private mutating func postProgress(_ ports: inout Ports) {
    let length = length
    guard length >= told + progress else { return }
    told = length / progress * progress
    let (seconds, pictures, bytes) = (Double(told) / 1e9, encoder.pictureCount, file.byteCount)
    ports.post(Event.progress.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", pictures)
      event.field("bytes", bytes)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
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
}
