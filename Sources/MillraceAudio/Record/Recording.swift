internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles

/// One file of `audio.record`: it writes the audio, and posts the events about it.
///
/// Blocks; bulk lane; one thread at a time. Opening allocates; writing does so only in the encoders of formats other than WAV.
@safe
final class Recording {
  /// What the files of one node have in common.
  struct Settings {
    /// Parameter `format`; nil: by the extension of each path.
    var format: RecordingFormat?
    var rate: Int
    var channels: Int
    /// Sample type of a WAV file.
    var sample: SampleType
    /// Of the whole file, in bit/s; nil: the format's default.
    var bitrate: Int?
    /// Frames of a `progress` event.
    var progressFrames: Int
    var calls: FileBytes.Calls
  }

  let path: String
  /// Frames written so far.
  private(set) var recorded: Int64 = 0
  private(set) var hasBegun = false

  private let rate: Int
  private let channels: Int
  private let pathBytes: [UInt8]
  private let file: RecordingFile
  /// Released when the file is complete, and at the first fault, so that a restarted node can lock the file.
  private var lock: FileLock?
  /// The file was completed, given up or removed: nothing more is written to it.
  private var isClosed = false
  private var meter: LevelMeter
  /// Complete windows of the meter.
  private var windows = 0
  /// Frames and time of the last flush.
  private var refreshed: Int64 = 0
  private var refreshedAt: Nanoseconds?

  /// Nanoseconds, and as much audio, between two flushes to the disk.
  private static let refreshInterval = Nanoseconds.milliseconds(1_000)

  /// Opens and locks a file. Its content stays until `begin`.
  init(_ path: String, _ settings: Settings) throws(NodeProblem) {
    guard let format = settings.format ?? RecordingFormat(path: path) else {
      throw RecordingCheck.unknownExtension(path)
    }
    try RecordingPath.check(path)
    let lock = try FileLock(path, for: .writing)
    file = try RecordingFile.open(
      path, format, rate: settings.rate, channels: settings.channels, sample: settings.sample,
      bitrate: settings.bitrate, calls: settings.calls)
    self.lock = consume lock
    self.path = path
    pathBytes = Array(path.utf8)
    rate = settings.rate
    channels = settings.channels
    meter = LevelMeter(windowFrames: settings.progressFrames, channels: settings.channels)
  }

  /// Opens the next file of a node that records one already, after the checks that the first one had before the graph was started.
  convenience init(
    _ path: String, _ settings: Settings, checking content: RecordingCheck.Content, besides other: Recording?
  ) throws(NodeProblem) {
    if path == other?.path { throw RecordingPath.alreadyRecorded(path) }
    if let format = settings.format ?? RecordingFormat(path: path),
      let problem = RecordingCheck.problems(format, content).first
    {
      throw problem
    }
    try self.init(path, settings)
  }

  deinit {
    guard hasBegun, !isClosed else { return }
    // The graph was stopped. If the disk refuses the rest, nobody is left to be told, and the file plays up to its last flush.
    do throws(NodeFault) { try file.finish() } catch {}
  }

  // MARK: Writing

  /// Truncates the file and writes its header.
  func begin() throws(NodeFault) {
    do throws(NodeFault) { try file.begin() } catch { throw releasing(error) }
    hasBegun = true
  }

  /// Posts `began`.
  func postBegan(_ ports: inout Ports) {
    let (path, rate, channels) = (pathBytes, rate, channels)
    ports.post(AudioRecord.Event.began.rawValue) { event in
      event.field("path", utf8: path.span)
      event.field("rate", rate)
      event.field("channels", channels)
    }
  }

  /// Appends interleaved frames, limited to full scale.
  func write(_ samples: Span<Float>, _ ports: inout Ports) throws(NodeFault) {
    do throws(NodeFault) { try file.write(samples) } catch { throw releasing(error) }
    recorded += Int64(samples.count / channels)
    let window = Double(meter.windowSamples / channels) / Double(rate)
    var windows = windows
    meter.measure(samples) { level in
      windows += 1
      let seconds = Double(windows) * window
      ports.post(AudioRecord.Event.progress.rawValue) { event in
        event.field("seconds", seconds, decimals: 3)
        event.field("peak", level.peakDecibels, decimals: 1)
        event.field("average", level.rmsDecibels, decimals: 1)
      }
    }
    self.windows = windows
  }

  /// Flushes the file after a second of audio or of clock time; returns when to check again.
  func refreshIfDue(at now: Nanoseconds) throws(NodeFault) -> Nanoseconds {
    guard recorded != refreshed else { return .max }
    let last = refreshedAt ?? now
    refreshedAt = last
    let due = last + Self.refreshInterval
    guard recorded - refreshed >= Int64(rate) || now >= due else { return due }
    do throws(NodeFault) { try file.refresh() } catch { throw releasing(error) }
    refreshed = recorded
    refreshedAt = now
    return .max
  }

  // MARK: Ending

  /// Completes the file and posts `completed`.
  func complete(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    if !hasBegun {
      try begin()
      postBegan(&ports)
    }
    do throws(NodeFault) { try file.finish() } catch { throw releasing(error) }
    isClosed = true
    // A listener of this event may use the file at once.
    lock = nil
    let (path, recorded, rate, bytes) = (pathBytes, recorded, rate, file.byteCount)
    ports.post(AudioRecord.Event.completed.rawValue) { event in
      event.field("seconds", Double(recorded) / Double(rate), decimals: 3)
      event.field("samples", Int(recorded))
      event.field("bytes", bytes)
      event.field("reason", reason)
      event.field("path", utf8: path.span)
    }
  }

  /// Removes the file and posts `cancelled`.
  func cancel(_ ports: inout Ports) {
    isClosed = true
    file.remove()
    lock = nil
    ports.post(AudioRecord.Event.cancelled.rawValue)
  }

  /// Releases the file at a fault.
  private func releasing(_ fault: NodeFault) -> NodeFault {
    isClosed = true
    lock = nil
    return fault
  }

  /// The message for a fault of this file.
  func explain(_ fault: NodeFault) -> String? {
    let place = "the \(fault.detail * 1_000 / Int64(rate)) ms before it are readable"
    switch fault.reason {
    case .system: return FileMessages.writeFailure(fault.code, "\"\(path)\"", kept: place)
    case .library:
      return "encoding \"\(path)\" failed: \(LibraryMessage.describe(fault.code)); \(place); record as WAV"
    default: return nil
    }
  }
}
