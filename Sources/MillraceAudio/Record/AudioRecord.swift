public import MillraceCore

/// `audio.record`: records the sides of a call into one file, aligned to the sample.
///
/// - In `in1` to `in8`: s16 or f32, one rate (8 to 192 kHz), mono or stereo each: the microphone, the far end, the bot. The file has
///   the inputs' channels side by side (`layout` channels), or all inputs added (mix), limited to full scale.
/// - **Alignment.** The first packet of an input is placed by its timestamp on the graph clock, rounded to a sample; all others by
///   sample position, never by time. What lies before position 0 (the run-in of a filter) is dropped. Gaps become silence, as does an
///   input that has no audio, not yet or no longer. A position more than an hour ahead is ignored and follows on directly; one that
///   goes back after a `discontinuity` is placed by its timestamp again.
/// - **Waiting.** A stretch is written when every input that has not ended has delivered it, or when the part that did arrive has
///   waited for `patience`; later audio is dropped and counted in event `late`.
/// - `recording` false pauses all inputs from that graph time on; true resumes. `stop` completes the file at once, `cancel` removes
///   it. `duration` completes it after that much audio.
/// - **Several files.** `path` may be set while the graph runs. At that graph time, the same sample of all inputs, the file is completed
///   and the next one begins: no sample is lost or in both. An empty path records nothing until the next one. If the audio before that
///   time does not arrive, the change waits for `patience`. A path that cannot be recorded to changes nothing, and event `error` says why;
///   neither can the path of the file that is being recorded: set an empty one first. A relative path is then relative to the program's
///   working directory.
/// - A node that starts with a path ends when its file was stopped, cancelled or has its duration. If a change of `path` waits when a file
///   has its duration, the node continues with that change, or ends if that path cannot be recorded to. A node that starts with an empty
///   path then waits for the next path, and ends with its inputs.
/// - A node that is restarted after a fault (`onError`) begins with the path that was set last, and replaces a file that it had begun. If
///   that path cannot be recorded to, event `error` says why, and the node waits for the next path.
/// - A graph that is stopped completes the file. A killed process leaves a file that plays up to the last second or so. The encoders
///   allocate, on the bulk lane; WAV does not. AAC, in ADTS and in fragmented MP4, begins with the encoder's 1,024 samples of silence, the
///   same in all channels.
/// - An existing file is replaced at the first audio, so a graph that fails to start leaves it intact; a missing directory is
///   refused, not created.
/// - A failed write (disk full) is a fault; what was written before stays readable. NaN becomes silence.
/// - No latency; runs on the bulk lane. Memory: `patience` of audio in floats, and half as much again.
public struct AudioRecord: ~Copyable, Node {
  enum Event: Int {
    case began, progress, completed, cancelled, late, error
  }

  /// Indices of the live parameters in the contract.
  private static let path = contract.parameterIndex("path")
  private static let recording = contract.parameterIndex("recording")
  private static let stop = contract.parameterIndex("stop")
  private static let cancel = contract.parameterIndex("cancel")

  /// Most milliseconds of audio written in one call.
  private static let pieceMilliseconds = 250.0

  private let settings: Recording.Settings
  private let content: RecordingCheck.Content
  private let rate: Int
  private let pieceFrames: Int
  private let patience: Nanoseconds
  /// Frames after which a recording is complete; nil: no limit.
  private let duration: Int64?
  /// True if the node ends with its file; false if it waits for the next path.
  private let endsWithFile: Bool
  private var timeline: RecordingTimeline
  /// The file being written; nil: nothing is recorded.
  private var current: Recording?
  /// The last file ended at its duration, and the node is kept running only by a change of `path` that waits.
  private var livesForChange = false
  /// The path of a recreated node that cannot be recorded to, until it is reported.
  private var refused: (path: String, problem: NodeProblem)?
  private var changes = RecordingChanges()
  private var switches: RecordingSwitches
  private var isOver = false
  private var stops = false
  private var latePace = EventThrottle()
  private var late: [Int]

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup, calls: FileBytes.Calls())
  }

  /// Like the public initialiser; tests inject failing system calls.
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem) {
    let values = setup.parameters
    let shapes = setup.inputs.compactMap(\.shape)
    guard let rate = shapes.first?.format.rate else {
      throw NodeProblem("\"\(setup.name)\" takes audio only")
    }
    let layout = RecordingLayout(
      setup.inputs.map { $0.shape?.format }, mixes: values.string("layout") == "mix")
    let settings = Recording.Settings(
      format: values.has("format") ? RecordingFormat(rawValue: values.string("format")) : nil,
      rate: rate, channels: layout.channels,
      sample: values.sample("sample") ?? shapes[0].format.sample ?? .s16,
      bitrate: values.has("bitrate") ? values.integer("bitrate") : nil,
      progressFrames: AudioLimits.frames(milliseconds: values.number("progress"), rate: rate), calls: calls)
    let content = RecordingCheck.Content(shapes.map(\.format), values)
    let (path, initial) = (values.string("path"), setup.initial.string("path"))
    var first: Recording?
    var refused: (path: String, problem: NodeProblem)?
    if !path.isEmpty && path == initial {
      first = try Recording(path, settings)
    } else if !path.isEmpty {
      // Set while the graph ran: as then, a path that cannot be recorded to is no reason to end.
      do throws(NodeProblem) {
        first = try Recording(path, settings, checking: content, besides: nil)
      } catch { refused = (path, error) }
    }
    // Nothing below may throw.
    self.settings = settings
    self.rate = rate
    self.content = content
    self.refused = refused
    endsWithFile = !initial.isEmpty
    current = first
    pieceFrames = AudioLimits.frames(milliseconds: Self.pieceMilliseconds, rate: rate)
    duration = values.has("duration") ? Self.frames(values.number("duration"), rate) : nil
    patience = Nanoseconds((values.number("patience") * 1e6).rounded())
    timeline = RecordingTimeline(
      layout, rate: rate, patience: patience, longest: shapes.compactMap(\.frames).max() ?? 1)
    switches = RecordingSwitches(isOn: values.bool("recording"))
    late = Array(repeating: 0, count: setup.inputs.count)
  }

  private static func frames(_ milliseconds: Double, _ rate: Int) -> Int64 {
    Int64((milliseconds * Double(rate) / 1_000).rounded())
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    return try record(isLast: false, &ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    let outcome = try record(isLast: true, &ports)
    guard outcome == .done else { return outcome }
    try complete("ended", &ports)
    return .ended
  }

  /// Takes what has arrived and writes what is due. `done`: nothing is left to do at present.
  private mutating func record(isLast: Bool, _ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let (path, problem) = refused.take() {
      ports.post(problem, as: Event.error.rawValue, naming: "path", path)
    }
    if stops {
      stops = false
      try endFile("stopped", &ports)
      return isOver ? .ended : .again
    }
    timeline.take(&ports)
    let isForced = isLast || changes.isOverdue(at: ports.now)
    let limit = timeline.limit(isLast: isForced, &ports)
    let wrote = try write(upTo: limit, &ports)
    postLate(&ports, always: false)
    if isOver { return .ended }
    if wrote { return .again }
    if let place = changes.next, isForced || place <= timeline.base ?? place, let path = changes.take() {
      try record(to: path, &ports)
      return .again
    }
    let flush = try current?.refreshIfDue(at: ports.now) ?? .max
    let due = min(flush, timeline.nextExpiry() ?? .max, changes.deadline ?? .max)
    if due != .max { ports.wake(at: due) }
    return .done
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard !isOver, case .set(let parameter, let value) = message else { return }
    let position = timeline.position(of: ports.now)
    switch (parameter, value) {
    case (Self.path, .string(let path)):
      changes.add(path, at: position, base: timeline.base, deadline: ports.now + patience)
      ports.wake(at: ports.now)
    case (Self.recording, .bool(let isOn)): switches.set(isOn, at: position, base: timeline.base)
    case (Self.stop, .bool(true)):
      stops = true
      ports.wake(at: ports.now)
    case (Self.cancel, .bool(true)): cancel(&ports)
    default: break
    }
  }

  // MARK: Files

  /// Completes the current file and begins the next. A path that cannot be recorded to changes nothing.
  private mutating func record(to path: String, _ ports: inout Ports) throws(NodeFault) {
    guard !path.isEmpty else {
      try current?.complete("stopped", &ports)
      current = nil
      livesForChange = false
      return
    }
    // Until the next file has begun, the current one can continue.
    guard let next = open(path, &ports) else {
      if livesForChange && changes.next == nil { try complete("duration", &ports) }
      return
    }
    try current?.complete("replaced", &ports)
    current = next
    livesForChange = false
    next.postBegan(&ports)
  }

  /// Begins a file; nil if that fails, which event `error` reports.
  private func open(_ path: String, _ ports: inout Ports) -> Recording? {
    do throws(NodeProblem) {
      let recording = try Recording(path, settings, checking: content, besides: current)
      do throws(NodeFault) { try recording.begin() } catch {
        throw NodeProblem(recording.explain(error) ?? "\"\(path)\" cannot be begun")
      }
      return recording
    } catch {
      ports.post(error, as: Event.error.rawValue, naming: "path", path)
      return nil
    }
  }

  /// Ends the current file, and the node with it if it was started for that file.
  private mutating func endFile(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    guard !endsWithFile else { return try complete(reason, &ports) }
    changes.removeAll()
    try current?.complete(reason, &ports)
    current = nil
  }

  // MARK: Writing

  /// Writes one piece of what may leave the timeline, up to the next change of path; false if there is none.
  private mutating func write(upTo limit: Int64?, _ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let base = timeline.base, let limit = limit.map({ min($0, changes.next ?? .max) }), limit > base
    else { return false }
    let isOn = switches.isOn(at: base)
    var count = min(pieceFrames, timeline.contiguous, Int(clamping: limit - base))
    if let next = switches.next { count = min(count, Int(clamping: next - base)) }
    if isOn, let current {
      if let duration { count = min(count, Int(clamping: duration - current.recorded)) }
      try write(count, to: current, &ports)
    }
    timeline.drop(count)
    if let current, let duration, current.recorded >= duration { try endAtDuration(current, &ports) }
    return true
  }

  /// Ends a file at its duration. A change of path that waits is a reason to continue.
  private mutating func endAtDuration(_ file: Recording, _ ports: inout Ports) throws(NodeFault) {
    guard changes.next != nil else { return try endFile("duration", &ports) }
    try file.complete("duration", &ports)
    current = nil
    livesForChange = endsWithFile
  }

  private func write(_ count: Int, to file: Recording, _ ports: inout Ports) throws(NodeFault) {
    guard count > 0 else { return }
    if !file.hasBegun {
      try file.begin()
      file.postBegan(&ports)
    }
    let samples = unsafe timeline.frames(count)
    for index in samples.indices { unsafe samples[index] = max(-1, min(1, samples[index])) }
    try unsafe file.write(Span(_unsafeElements: samples), &ports)
  }

  /// Reports dropped audio, at most once a second.
  private mutating func postLate(_ ports: inout Ports, always: Bool) {
    var isLate = false
    for index in late.indices {
      late[index] += timeline.takeLate(index)
      if late[index] > 0 { isLate = true }
    }
    guard isLate, latePace.allows(at: ports.now, isLast: always) else { return }
    for index in late.indices where late[index] > 0 {
      let samples = late[index]
      late[index] = 0
      ports.post(Event.late.rawValue) { event in
        event.field("input", index + 1)
        event.field("samples", samples)
      }
    }
  }

  // MARK: Ending

  /// Completes the file and ends the node.
  private mutating func complete(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    isOver = true
    postLate(&ports, always: true)
    try current?.complete(reason, &ports)
  }

  private mutating func cancel(_ ports: inout Ports) {
    changes.removeAll()
    current?.cancel(&ports)
    current = nil
    isOver = endsWithFile
    ports.wake(at: ports.now)
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { current?.explain(fault) }
}
