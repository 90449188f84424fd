internal import MillraceAudio
public import MillraceCore
internal import MillraceFiles

/// `video.record`: records pictures, and audio if linked, to a file.
///
/// - Input `in`: raw pictures of any pixel type and size. Input `audio`: s16 or f32, mono or stereo, at a rate the file's audio codec
///   supports.
/// - **Times.** A picture is shown at its packet's time, whatever was dropped before it; a picture not later than the previous one is
///   dropped (`late`). Audio starts at its first packet's time and continues by position; gaps become silence. If positions and times
///   disagree by more than 20 ms for 200 ms, or by 250 ms at once, audio is moved to its packets' times (`moved`).
/// - **Waiting.** Each track waits for the other, until that has delivered nothing for `patience`; then silence replaces missing audio, and
///   audio that arrives later is cut (`late`). If pictures start later than that, the recording starts with a black one. Each may end
///   before the other: the last picture is repeated every second until the audio ends.
/// - **Sizes.** 4:2:0 needs even sides: an odd one is padded by repeating the last column or row. Colours are BT.601, video range, and
///   tagged as such.
/// - `stop` completes the file at once, `cancel` removes it. `duration` completes it at that length.
/// - **Several files.** `path` may be set while the graph runs. What is due before that graph time is recorded to the current file, what is
///   due from then on to the next, which starts with a key frame: no picture or sample is lost or in both. If a track has been received
///   beyond that time already, the change applies where it ends. The file is completed when both tracks have reached the change, or when
///   one that has not delivers nothing for `patience`. Meanwhile the other track continues in the files that follow, across up to four
///   changes. An empty path records nothing until the next one. A path that cannot be recorded to changes nothing, and event `error` says
///   why. One of them is the path of the file that is being recorded: set an empty one first. A relative path is then relative to the
///   program's working directory.
/// - A node that starts with a path ends when its file was stopped, cancelled or has its duration. If a change of `path` waits when a file
///   has its duration, the node continues with that change, or ends if that path cannot be recorded to. A node that starts with an empty
///   path then waits for the next path, and ends with its inputs.
/// - A node that is restarted after a fault (`onError`) begins with the path that was set last, and replaces a file that it had begun. If
///   that path cannot be recorded to, event `error` says why, and the node waits for the next path.
/// - If the process is killed, the file is playable up to the last second or two. A file named at the start is replaced by the first
///   picture or audio, so a graph that fails to start leaves it intact. A file named by `path` while the graph runs is replaced
///   immediately, and behind an empty path once the file before that is complete. A missing folder is an error and is not created.
/// - A failed write (disk full) posts event `refused` and fails the node; what was written before stays readable.
/// - No latency. Bulk lane, where it also encodes: 10 ms for a picture of 1280x720. Allocates.
@safe
public struct VideoRecord: ~Copyable, Node {
  private static let path = contract.parameterIndex("path")
  private static let stop = contract.parameterIndex("stop")
  private static let cancel = contract.parameterIndex("cancel")

  /// A change of path that waits for the media before it.
  private struct Change {
    var time: Nanoseconds
    /// When it waits no longer for a track that delivers nothing.
    var deadline: Nanoseconds
    /// The file that begins there; nil: nothing is recorded from there on.
    var file: VideoRecording?
  }

  /// Most changes whose encoders are open at once, for their memory. Others wait until these have applied.
  private static let mostChanges = 4

  private let settings: VideoRecording.Settings
  /// True if the node ends with its file; false if it waits for the next path.
  private let endsWithFile: Bool
  /// The file being recorded; nil: nothing is.
  private var current: VideoRecording?
  /// Where the current file ends, and what follows it. Each file receives what lies behind the end of the one before it, track by track,
  /// and is written when that is complete.
  private var changes: [Change] = []
  /// Paths that were set and are not among `changes` yet.
  private var requests = RecordingChanges()
  /// The path of a recreated node that cannot be recorded to, until it is reported.
  private var refused: (path: String, problem: NodeProblem)?
  /// The end of what was received while nothing was recorded.
  private var passed: Nanoseconds?
  /// The last file ended at its duration, and the node is kept running only by a change of `path` that waits.
  private var livesForChange = false
  private var isOver = false
  private var stops = false
  private var drops = DropEvents(late: Event.late.rawValue, moved: Event.moved.rawValue)

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup, calls: FileBytes.Calls())
  }

  /// As above; tests inject failing system calls.
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem) {
    let values = setup.parameters
    let settings = VideoRecording.Settings(
      format: values.has("format") ? VideoFileFormat(rawValue: values.string("format")) : nil,
      coding: values.has("video") ? PictureCoding(rawValue: values.string("video")) : nil,
      bitrate: values.has("bitrate") ? values.integer("bitrate") : nil,
      keyInterval: values.nanoseconds("keyInterval"), threads: values.integer("threads"),
      soundBitrate: values.has("soundBitrate") ? values.integer("soundBitrate") : nil,
      patience: values.nanoseconds("patience"),
      duration: values.has("duration") ? values.nanoseconds("duration") : nil,
      progress: values.nanoseconds("progress"), inputs: setup.inputs, calls: calls)
    let (path, initial) = (values.string("path"), setup.initial.string("path"))
    var first: VideoRecording?
    var refused: (path: String, problem: NodeProblem)?
    if !path.isEmpty {
      do throws(NodeProblem) {
        let file = try VideoRecording(path, settings)
        try file.open()
        first = file
      } catch {
        // One that was set while the graph ran is, as then, no reason to end.
        guard path != initial else { throw error }
        refused = (path, error)
      }
    }
    // Nothing below may throw.
    self.settings = settings
    self.refused = refused
    endsWithFile = !initial.isEmpty
    current = first
  }

  /// The encoder of the file being recorded.
  var encoder: MediaEncoder? { current?.encoder }

  /// The current file and those that follow it, in order.
  private var files: [VideoRecording] { ([current] + changes.map(\.file)).compactMap { $0 } }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    do throws(NodeFault) { return try record(isLast: false, &ports) } catch { throw releasing(error, &ports) }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    do throws(NodeFault) {
      let outcome = try record(isLast: true, &ports)
      guard outcome == .done else { return outcome }
      try complete("ended", &ports)
      return .ended
    } catch { throw releasing(error, &ports) }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard !isOver, case .set(let parameter, let value) = message else { return }
    switch (parameter, value) {
    case (Self.path, .string(let path)):
      let reached = files.compactMap(\.encoder.reached) + changes.map(\.time) + [passed ?? .min]
      requests.add(
        path, at: ports.now, base: reached.max() ?? .min, deadline: ports.now + settings.patience)
      ports.wake(at: ports.now)
    case (Self.stop, .bool(true)):
      stops = true
      ports.wake(at: ports.now)
    case (Self.cancel, .bool(true)): try cancel(&ports)
    default: break
    }
  }

  /// Releases the files at a fault, and reports what is safe.
  private mutating func releasing(_ fault: NodeFault, _ ports: inout Ports) -> NodeFault {
    for file in files { file.release() }
    if fault.reason == .system {
      ports.post(Event.refused.rawValue) { $0.field("seconds", Double(fault.detail) / 1e3, decimals: 3) }
    }
    return fault
  }

  /// Takes what has arrived and writes what is due. `done`: nothing is left to do at present.
  private mutating func record(isLast: Bool, _ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let (path, problem) = refused.take() {
      ports.post(problem, as: Event.error.rawValue, naming: "path", path)
    }
    if stops {
      stops = false
      try stop(&ports)
      return isOver ? .ended : .again
    }
    open(&ports)
    if livesForChange, current == nil, requests.next == nil {
      try complete("duration", &ports)
      return .ended
    }
    try take(&ports)
    if changes.isEmpty, let current, current.hasReachedDuration(before: nil) {
      try endFile("duration", &ports)
      return isOver ? .ended : .again
    }
    if try change(isLast: isLast, &ports) { return .again }
    guard let current else { return .done }
    var due = min(
      try current.refreshIfDue(at: ports.now), current.encoder.nextExpiry(after: ports.now) ?? .max)
    if let change = changes.first { due = min(due, max(change.deadline, current.encoder.stalled)) }
    if due != .max { ports.wake(at: due) }
    return .done
  }

  // MARK: Files

  /// Opens the files of the paths that were set. A path that cannot be recorded to changes nothing.
  private mutating func open(_ ports: inout Ports) {
    while changes.count < Self.mostChanges, let place = requests.next, let deadline = requests.deadline,
      let path = requests.take()
    {
      // What is recorded up to there; nil: nothing is.
      let last = changes.isEmpty ? current : changes[changes.count - 1].file
      let time = max(place, last?.encoder.reached ?? place, changes.last?.time ?? place)
      let file = path.isEmpty ? nil : open(path, at: time, behind: last, &ports)
      if path.isEmpty || current == nil && file != nil { livesForChange = false }
      if current == nil {
        current = file
        file?.postBegan(&ports)
      } else if file != nil || path.isEmpty && last != nil {
        last?.encoder.end(at: time)
        changes.append(Change(time: time, deadline: deadline, file: file))
      }
    }
  }

  /// Opens a file behind another one, or where nothing is recorded; nil if that fails, which event `error` reports.
  private func open(
    _ path: String, at time: Nanoseconds, behind last: VideoRecording?, _ ports: inout Ports
  ) -> VideoRecording? {
    do throws(NodeProblem) {
      if path == last?.path { throw RecordingPath.alreadyRecorded(path) }
      let file = try VideoRecording(
        path, settings, from: MediaEncoder.Beginning(time: time, follows: current != nil))
      // A file that is still recorded to may be set again behind another path, and behind an empty one even by another name. Its
      // encoders need not wait until it is free.
      let recorded = files
      let isFree = last != nil && !recorded.contains { $0.path == path }
      if isFree || recorded.isEmpty { try file.start() }
      return file
    } catch {
      ports.post(error, as: Event.error.rawValue, naming: "path", path)
      return nil
    }
  }

  /// Encodes what waits: of each track, up to the next change for the current file, and behind it for the files that follow.
  private mutating func take(_ ports: inout Ports) throws(NodeFault) {
    guard let current else { return discard(&ports) }
    try current.take(&ports)
    drops.post(current.encoder, &ports)
    var last = current
    for file in changes.compactMap(\.file) {
      try file.take(&ports, after: last)
      last = file
    }
  }

  /// Discards what arrives while nothing is recorded.
  private mutating func discard(_ ports: inout Ports) {
    while let packet = ports.next(0) { passed = max(passed ?? .min, packet.timestamp) }
    guard settings.inputs.count > 1,
      case .pcm(let rate, let channels, let sample)? = settings.inputs[1].shape?.format
    else { return }
    while let packet = ports.next(1) {
      let frames = Int64(Int(packet.byteCount) / (channels * sample.byteCount))
      passed = max(passed ?? .min, packet.timestamp &+ .samples(frames, rate: rate))
    }
  }

  /// Ends the current file at the first change, if that has been reached or was waited for. False if not.
  private mutating func change(isLast: Bool, _ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let current, let first = changes.first else { return false }
    let isStalled = max(first.deadline, current.encoder.stalled) <= ports.now
    guard isLast || isStalled || current.encoder.isComplete else { return false }
    let hasDuration = current.hasReachedDuration(before: first.time)
    try end(current, hasDuration ? "duration" : first.file == nil ? "stopped" : "replaced", &ports)
    self.current = nil
    let isFollowed = begin(after: current.encoder, &ports)
    livesForChange = !isFollowed && hasDuration && endsWithFile
    return true
  }

  /// Begins the first of the files that follow, or notes that nothing is recorded any more. False if none of them can be begun; an empty path
  /// among them is followed.
  private mutating func begin(after ended: MediaEncoder, _ ports: inout Ports) -> Bool {
    var last = ended
    var isFollowed = false
    while current == nil, !changes.isEmpty {
      guard let file = changes.removeFirst().file else {
        isFollowed = true
        continue
      }
      file.encoder.takeOver(from: last)
      last = file.encoder
      do throws(NodeProblem) {
        try file.start()
        current = file
        isFollowed = true
        file.postBegan(&ports)
      } catch {
        ports.post(error, as: Event.error.rawValue, naming: "path", file.path)
      }
    }
    if current == nil { passed = ended.received ?? passed }
    return isFollowed
  }

  /// Completes a file.
  private mutating func end(
    _ file: VideoRecording, _ reason: StaticString, _ ports: inout Ports
  ) throws(NodeFault) {
    try file.flush(&ports)
    // The encoders report late input until they are flushed, and nothing of a file follows its end.
    drops.post(file.encoder, &ports, always: true)
    file.postCompleted(reason, &ports)
  }

  /// Ends the current file, and the node with it if it was started for that file.
  private mutating func endFile(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    guard !endsWithFile else { return try complete(reason, &ports) }
    if let current { try end(current, reason, &ports) }
    passed = current?.encoder.received ?? passed
    current = nil
  }

  // MARK: Ending

  /// Completes the files before the one that was set last.
  private mutating func completeEarlier(_ ports: inout Ports) throws(NodeFault) {
    repeat { open(&ports) } while try change(isLast: true, &ports)
  }

  /// Completes the file that was set last, as far as it was received.
  private mutating func stop(_ ports: inout Ports) throws(NodeFault) {
    try completeEarlier(&ports)
    try endFile("stopped", &ports)
  }

  /// Completes the file and ends the node.
  private mutating func complete(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    isOver = true
    if let current { try end(current, reason, &ports) }
  }

  /// Removes the file that was set last.
  private mutating func cancel(_ ports: inout Ports) throws(NodeFault) {
    do throws(NodeFault) { try completeEarlier(&ports) } catch { throw releasing(error, &ports) }
    current?.cancel(&ports)
    passed = current?.encoder.received ?? passed
    current = nil
    isOver = endsWithFile
    ports.wake(at: ports.now)
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    if let failed = files.first(where: \.hasFailed) { return failed.explain(fault) }
    return current?.explain(fault)
  }
}
