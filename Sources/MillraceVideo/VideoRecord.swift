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
/// - **Several files.** `path` may be set while the graph runs. What is due before that graph time is recorded to the current file, what is due
///   from then on to the next, which starts with a key frame: no picture or sample is lost or in both. If a track has been received beyond that
///   time already, the change applies where it ends. The file is completed when both tracks have reached the change, or when one that has not
///   delivers nothing for `patience`. An empty path records nothing until the next one. A path that cannot be recorded to changes nothing,
///   and event `error` says why; neither can the path of the file that is being recorded: set an empty one first. A relative path is then
///   relative to the program's working directory.
/// - A node that starts with a path ends when its file was stopped, cancelled or has its duration. One that starts with an empty path
///   then waits for the next path, and ends with its inputs.
/// - If the process is killed, the file is playable up to the last second or two. An existing file is replaced by the first picture or audio, not by
///   a graph that never starts, and by a `path` that was set at once; a missing folder is an error and is not created.
/// - A failed write (disk full) posts event `refused` and fails the node; what was written before stays readable.
/// - No latency. Bulk lane, where it also encodes: 10 ms for a picture of 1280x720. Allocates.
@safe
public struct VideoRecord: ~Copyable, Node {
  private static let path = contract.parameterIndex("path")
  private static let stop = contract.parameterIndex("stop")
  private static let cancel = contract.parameterIndex("cancel")

  private let settings: VideoRecording.Settings
  /// True if the node ends with its file; false if it waits for the next path.
  private let endsWithFile: Bool
  /// The file being recorded; nil: nothing is.
  private var current: VideoRecording?
  /// The file of the first waiting change. It receives what lies behind the end of the current one, and is written when that is complete.
  private var next: VideoRecording?
  private var changes = RecordingChanges()
  /// The end of what was received while nothing was recorded.
  private var passed: Nanoseconds?
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
    if path == initial {
      current = path.isEmpty ? nil : try VideoRecording(path, settings)
    } else {
      // Of a node restarted after a fault, set while the graph ran: as then, a path that cannot be recorded to is no reason to end.
      changes.add(path, at: nil, base: nil, deadline: 0)
    }
    self.settings = settings
    endsWithFile = !initial.isEmpty
  }

  /// The encoder of the file being recorded.
  var encoder: MediaEncoder? { current?.encoder }

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
      let reached = [current?.encoder.reached, next?.encoder.reached, passed].compactMap { $0 }.max()
      changes.add(
        path, at: ports.now, base: reached ?? ports.now, deadline: ports.now + settings.patience)
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
    current?.release()
    next?.release()
    if fault.reason == .system {
      ports.post(Event.refused.rawValue) { $0.field("seconds", Double(fault.detail) / 1e3, decimals: 3) }
    }
    return fault
  }

  /// Takes what has arrived and writes what is due. `done`: nothing is left to do at present.
  private mutating func record(isLast: Bool, _ ports: inout Ports) throws(NodeFault) -> Outcome {
    if stops {
      stops = false
      try stop(&ports)
      return isOver ? .ended : .again
    }
    open(&ports)
    try take(&ports)
    if next == nil, let current, current.hasReachedDuration(before: changes.next) {
      try endFile("duration", &ports)
      return isOver ? .ended : .again
    }
    if try change(isLast: isLast, &ports) { return .again }
    guard let current else { return .done }
    var wish = min(
      try current.refreshIfDue(at: ports.now), current.encoder.nextExpiry(after: ports.now) ?? .max)
    if let deadline = changes.deadline { wish = min(wish, max(deadline, current.encoder.stalled)) }
    if wish != .max { ports.wake(at: wish) }
    return .done
  }

  // MARK: Files

  /// Opens the file of the first waiting change. A path that cannot be recorded to changes nothing.
  private mutating func open(_ ports: inout Ports) {
    while next == nil, let path = changes.path, let time = changes.next {
      guard !path.isEmpty else {
        // Nothing to end.
        guard current == nil else { return }
        _ = changes.take()
        continue
      }
      let isNext = current != nil
      let opened = open(
        path, MediaEncoder.Beginning(time: time, follows: isNext, countsEarlier: isNext), &ports)
      guard isNext, opened != nil else {
        _ = changes.take()
        current = current ?? opened
        if !isNext { opened?.postBegan(&ports) }
        continue
      }
      next = opened
    }
  }

  /// Begins a file; nil if that fails, which event `error` reports.
  private func open(
    _ path: String, _ beginning: MediaEncoder.Beginning, _ ports: inout Ports
  ) -> VideoRecording? {
    do throws(NodeProblem) {
      return try VideoRecording(path, settings, from: beginning, besides: current)
    } catch {
      ports.post(error, as: Event.error.rawValue, naming: "path", path)
      return nil
    }
  }

  /// Encodes what waits: up to the next change for the current file, and behind it for the next.
  private mutating func take(_ ports: inout Ports) throws(NodeFault) {
    guard let current else { return discard(&ports) }
    if let time = changes.next { current.encoder.end(at: time) }
    try current.take(&ports)
    drops.post(current.encoder, &ports)
    // A second change ends the next file, which has to be the current one by then.
    if let next, changes.count == 1 { try next.take(&ports, after: current) }
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

  /// Ends the current file at the first waiting change, if that has been reached or was waited for. False if not.
  private mutating func change(isLast: Bool, _ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let current, changes.next != nil else { return false }
    let isStalled = changes.isOverdue(at: ports.now) && current.encoder.stalled <= ports.now
    guard isLast || isStalled || current.encoder.isComplete else { return false }
    let duration = current.hasReachedDuration(before: changes.next)
    _ = changes.take()
    try end(current, duration ? "duration" : next == nil ? "stopped" : "replaced", &ports)
    if let next {
      self.next = nil
      next.encoder.takeOver(from: current.encoder)
      self.current = next
      next.postBegan(&ports)
    } else {
      self.current = nil
      passed = current.encoder.received
      resume(after: current, &ports)
    }
    return true
  }

  /// Begins the next file, if its path was set while the one before it was waiting for its end.
  private mutating func resume(after ended: VideoRecording, _ ports: inout Ports) {
    guard let path = changes.path, !path.isEmpty, let time = changes.next else { return }
    _ = changes.take()
    let beginning = MediaEncoder.Beginning(time: time, follows: true, countsEarlier: false)
    guard let opened = open(path, beginning, &ports) else { return }
    opened.encoder.takeOver(from: ended.encoder)
    current = opened
    opened.postBegan(&ports)
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

  /// Completes the file that was set last, as far as it was received.
  private mutating func stop(_ ports: inout Ports) throws(NodeFault) {
    if next != nil { _ = try change(isLast: true, &ports) }
    changes.removeAll()
    try endFile("stopped", &ports)
  }

  /// Completes the file and ends the node.
  private mutating func complete(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    isOver = true
    if let current { try end(current, reason, &ports) }
  }

  /// Removes the file that was set last.
  private mutating func cancel(_ ports: inout Ports) throws(NodeFault) {
    if next != nil {
      do throws(NodeFault) { _ = try change(isLast: true, &ports) } catch { throw releasing(error, &ports) }
    }
    changes.removeAll()
    current?.cancel(&ports)
    passed = current?.encoder.received ?? passed
    current = nil
    isOver = endsWithFile
    ports.wake(at: ports.now)
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    if let next, next.hasFailed { return next.explain(fault) }
    return current?.explain(fault)
  }
}
