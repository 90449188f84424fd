public import MillraceCore
internal import MillraceDSP
internal import MillraceFiles

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
/// - A killed process leaves a file that plays up to the last second or so. The encoders allocate, on the bulk lane; WAV does not.
///   AAC, in ADTS and in fragmented MP4, begins with the encoder's 1,024 samples of silence, the same in all channels.
/// - An existing file is replaced at the first audio, so a graph that fails to start leaves it intact; a missing directory is
///   refused, not created.
/// - A failed write (disk full) is a fault; what was written before stays readable. NaN becomes silence.
/// - No latency; runs on the bulk lane. Memory: `patience` of audio in floats, and half as much again.
public struct AudioRecord: ~Copyable, Node {
  enum Event: Int {
    case began, progress, completed, cancelled, late
  }

  /// Indices of the live parameters in the contract.
  private static let recording = contract.parameterIndex("recording")
  private static let stop = contract.parameterIndex("stop")
  private static let cancel = contract.parameterIndex("cancel")

  /// Nanoseconds, and as much audio, between two flushes to the disk.
  private static let refreshInterval = Nanoseconds.milliseconds(1_000)
  /// Most milliseconds of audio written in one call.
  private static let pieceMilliseconds = 250.0

  private let path: String
  private let pathBytes: [UInt8]
  private let rate: Int
  private let channels: Int
  private let pieceFrames: Int
  /// Frames after which the recording is complete; nil: no limit.
  private let duration: Int64?
  private var timeline: RecordingTimeline
  private let file: RecordingFile
  /// Released when the file is complete, and at the first fault, so that a restarted node can lock the file.
  private var lock: FileLock?

  private var switches: RecordingSwitches
  private var meter: LevelMeter
  /// Complete windows of the meter.
  private var windows = 0
  /// Frames written to the file.
  private var recorded: Int64 = 0
  private var hasBegun = false
  private var isOver = false
  private var stops = false
  /// Frames and time of the last flush.
  private var refreshed: Int64 = 0
  private var refreshedAt: Nanoseconds?
  private var latePace = EventThrottle()
  private var late: [Int]

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup, calls: FileBytes.Calls())
  }

  /// Like the public initialiser; tests inject failing system calls.
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem) {
    let values = setup.parameters
    let shapes = setup.inputs.compactMap(\.shape)
    guard let rate = shapes.first?.format.rate, let format = RecordingFormat(values) else {
      throw NodeProblem("\"\(setup.name)\" takes audio only")
    }
    let layout = RecordingLayout(
      setup.inputs.map { $0.shape?.format }, mixes: values.string("layout") == "mix")
    let path = values.string("path")
    try RecordingPath.check(path)
    let lock = try FileLock(path, for: .writing)
    let file = try RecordingFile.open(
      path, format, rate: rate, channels: layout.channels,
      sample: values.sample("sample") ?? shapes[0].format.sample ?? .s16,
      bitrate: values.has("bitrate") ? values.integer("bitrate") : nil, calls: calls)
    self.path = path
    self.file = file
    self.lock = consume lock
    pathBytes = Array(path.utf8)
    self.rate = rate
    channels = layout.channels
    pieceFrames = AudioLimits.frames(milliseconds: Self.pieceMilliseconds, rate: rate)
    duration = values.has("duration") ? Self.frames(values.number("duration"), rate) : nil
    timeline = RecordingTimeline(
      layout, rate: rate, patience: Nanoseconds((values.number("patience") * 1e6).rounded()),
      longest: shapes.compactMap(\.frames).max() ?? 1)
    switches = RecordingSwitches(isOn: values.bool("recording"))
    meter = LevelMeter(
      windowFrames: AudioLimits.frames(milliseconds: values.number("progress"), rate: rate),
      channels: channels)
    late = Array(repeating: 0, count: setup.inputs.count)
  }

  private static func frames(_ milliseconds: Double, _ rate: Int) -> Int64 {
    Int64((milliseconds * Double(rate) / 1_000).rounded())
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    do { return try record(isLast: false, &ports) } catch { throw unlocking(error) }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !isOver else { return .ended }
    do {
      let outcome = try record(isLast: true, &ports)
      guard outcome == .done else { return outcome }
      try complete("ended", &ports)
      return .ended
    } catch { throw unlocking(error) }
  }

  /// Unlocks the file and returns the fault.
  private mutating func unlocking(_ fault: NodeFault) -> NodeFault {
    lock = nil
    return fault
  }

  /// Takes what has arrived and writes what is due. `done`: nothing is left to do at present.
  private mutating func record(isLast: Bool, _ ports: inout Ports) throws(NodeFault) -> Outcome {
    if stops {
      try complete("stopped", &ports)
      return .ended
    }
    timeline.take(&ports)
    let limit = timeline.limit(isLast: isLast, &ports)
    let wrote = try write(upTo: limit, &ports)
    postLate(&ports, always: false)
    if isOver { return .ended }
    if wrote { return .again }
    let wish = min(try refreshIfDue(&ports), timeline.nextExpiry() ?? .max)
    if wish != .max { ports.wake(at: wish) }
    return .done
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard !isOver, case .set(let parameter, .bool(let value)) = message else { return }
    switch parameter {
    case Self.recording: switches.set(value, at: timeline.position(of: ports.now), base: timeline.base)
    case Self.stop where value:
      stops = true
      ports.wake(at: ports.now)
    case Self.cancel where value: cancel(&ports)
    default: break
    }
  }

  // MARK: Writing

  /// Writes one piece of what may leave the timeline; false if there is none.
  private mutating func write(upTo limit: Int64?, _ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let base = timeline.base, let limit, limit > base else { return false }
    let isOn = switches.isOn(at: base)
    var count = min(pieceFrames, timeline.contiguous, Int(clamping: limit - base))
    if let next = switches.next { count = min(count, Int(clamping: next - base)) }
    if isOn {
      if let duration { count = min(count, Int(clamping: duration - recorded)) }
      try write(count, &ports)
    }
    timeline.drop(count)
    if isOn, let duration, recorded >= duration { try complete("duration", &ports) }
    return true
  }

  private mutating func write(_ count: Int, _ ports: inout Ports) throws(NodeFault) {
    guard count > 0 else { return }
    try begin(&ports)
    let samples = unsafe timeline.frames(count)
    for index in samples.indices { unsafe samples[index] = max(-1, min(1, samples[index])) }
    try unsafe file.write(Span(_unsafeElements: samples))
    recorded += Int64(count)
    let window = Double(meter.windowSamples / channels) / Double(rate)
    var windows = windows
    unsafe meter.measure(Span(_unsafeElements: samples)) { level in
      windows += 1
      let seconds = Double(windows) * window
      ports.post(Event.progress.rawValue) { event in
        event.field("seconds", seconds, decimals: 3)
        event.field("peak", level.peakDecibels, decimals: 1)
        event.field("average", level.rmsDecibels, decimals: 1)
      }
    }
    self.windows = windows
  }

  private mutating func begin(_ ports: inout Ports) throws(NodeFault) {
    guard !hasBegun else { return }
    try file.begin()
    hasBegun = true
    let (rate, channels) = (rate, channels)
    let path = pathBytes.span
    ports.post(Event.began.rawValue) { event in
      event.field("path", utf8: path)
      event.field("rate", rate)
      event.field("channels", channels)
    }
  }

  /// Flushes the file after a second of audio or of clock time; returns when to check again.
  private mutating func refreshIfDue(_ ports: inout Ports) throws(NodeFault) -> Nanoseconds {
    guard recorded != refreshed else { return .max }
    let last = refreshedAt ?? ports.now
    refreshedAt = last
    let due = last + Self.refreshInterval
    guard recorded - refreshed >= Int64(rate) || ports.now >= due else { return due }
    try file.refresh()
    refreshed = recorded
    refreshedAt = ports.now
    return .max
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

  private mutating func complete(_ reason: StaticString, _ ports: inout Ports) throws(NodeFault) {
    try begin(&ports)
    try file.finish()
    // A listener of this event may use the file at once.
    lock = nil
    isOver = true
    postLate(&ports, always: true)
    let (recorded, rate) = (recorded, rate)
    ports.post(Event.completed.rawValue) { event in
      event.field("seconds", Double(recorded) / Double(rate), decimals: 3)
      event.field("samples", Int(recorded))
      event.field("reason", reason)
    }
  }

  private mutating func cancel(_ ports: inout Ports) {
    file.remove()
    lock = nil
    isOver = true
    ports.post(Event.cancelled.rawValue)
    ports.wake(at: ports.now)
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    let place = "the \(fault.detail * 1_000 / Int64(rate)) ms before it are readable"
    switch fault.reason {
    case .system: return FileMessages.writeFailure(fault.code, "\"\(path)\"", kept: place)
    case .library:
      return "encoding \"\(path)\" failed: \(LibraryMessage.describe(fault.code)); \(place); record as WAV"
    default: return nil
    }
  }
}
