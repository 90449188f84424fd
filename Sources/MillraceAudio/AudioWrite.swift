public import MillraceCore
internal import MillraceFiles

/// `audio.write`: writes a WAV file.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels. The file holds s16 or f32, as the input unless `sample` is set, and becomes
///   RF64 above 4 GiB.
/// - Frame n of the file is the sample at position n: samples before position 0 (the run-in of a filter or an encoder) are dropped,
///   and a gap of up to `gap` milliseconds becomes silence. A longer gap is not filled, and a repeated packet (a position already
///   written) is appended unchanged: no audio is lost, and event `gap` reports it.
/// - The header is updated after every second of audio or of clock time, so that a killed process leaves a playable file. Event
///   `written` at the end.
/// - An existing file is replaced at the first call, so a graph that fails to start leaves it intact. A file that another node or
///   process reads or writes is refused, as is a directory or a pipe.
/// - A failed write (disk full) is a fault; what was written before stays readable. A restarted node starts the file from scratch.
/// - No latency; runs on the bulk lane, since the disk may block.
@safe
public struct AudioWrite: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.write", "writes a WAV file",
    text: """
      The file can be played at any time, up to the last second. Audio is placed by sample position: gaps become silence, so \
      that recordings of one graph are aligned.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "audio to write")],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file to write; replaced if it exists"),
      ParameterContract("sample", SampleType.choice, text: "sample type of the file; default: as the input"),
      ParameterContract(
        "gap", .number(0...3_600_000), unit: "ms", default: 10_000,
        text: "longest gap filled with silence; after a longer one the audio continues directly"),
    ],
    events: [
      EventContract(
        "gap",
        text: """
          the audio was discontinuous: `position` of the packet, `samples` missing (negative: repeated), `filled`: whether \
          silence was inserted; at most one a second
          """),
      EventContract(
        "written",
        text: "the file is complete: `samples` per channel, `seconds`, `bytes` of audio, `gaps` found"),
    ],
    lane: .bulk, budget: 5_000,
    examples: [
      #"{ "type": "audio.write", "path": "call.wav" }"#,
      #"{ "type": "audio.write", "path": "call.wav", "sample": "f32" }"#,
    ],
    resolve: { resolution in
      do throws(NodeProblem) { try check(resolution.parameters.string("path")) } catch {
        resolution.refuse("path", error.text, cure: error.cure)
      }
    })

  private enum Event {
    static let gap = 0
    static let written = 1
  }

  /// Nanoseconds between two header updates when audio arrives slowly.
  private static let refreshInterval = Nanoseconds.milliseconds(1_000)

  private let path: String
  private let rate: Int
  private let sample: SampleType
  private let longestGap: Int64
  private var writer: WAVWriter
  /// Released when the file is complete, and at the first fault, so that a restarted node can lock the file.
  private var lock: FileLock?
  /// Position of the next frame of the file.
  private var expected: Int64 = 0
  private var hasBegun = false
  private var gaps = 0
  private var gapPace = EventThrottle()
  /// Frames and time of the last header update.
  private var refreshed: Int64 = 0
  private var refreshedAt: Nanoseconds?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup, calls: FileBytes.Calls())
  }

  /// Like the public initialiser; tests inject failing system calls.
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem) {
    let path = setup.parameters.string("path")
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes audio only")
    }
    let kept = setup.parameters.sample("sample") ?? sample
    try Self.check(path)
    let lock = try FileLock(path, for: .writing)
    let format = WAVFormat(sampleRate: rate, channels: channels, encoding: kept == .s16 ? .s16 : .f32)
    let writer = try Self.create(path, format, calls)
    self.path = path
    self.rate = rate
    self.sample = sample
    self.lock = consume lock
    self.writer = writer
    longestGap = Int64(setup.parameters.number("gap") * Double(rate) / 1_000)
  }

  private static func check(_ path: String) throws(NodeProblem) {
    try FileCheck.writing(path)
    guard FileCheck.isPipe(path) else { return }
    throw NodeProblem(
      "\"\(path)\" is a pipe, but the length in a WAV header is written last", parameter: "path",
      cure: "write to a file, or send the audio to process.pipe")
  }

  private static func create(
    _ path: String, _ format: WAVFormat, _ calls: FileBytes.Calls
  ) throws(NodeProblem) -> WAVWriter {
    do {
      let file = try Self.file(path, calls)
      // Old content is removed at the first call, so that a graph that fails to start destroys nothing.
      return try WAVWriter(
        file: file, format: format, largest: WAVHeaderLayout.largestRIFF, keepsContent: file.byteCount > 0)
    } catch {
      if case .file(let fault) = error { throw FileMessages.problem(fault.errorNumber, path, for: .writing) }
      throw NodeProblem(error.description, parameter: "path")
    }
  }

  private static func file(_ path: String, _ calls: FileBytes.Calls) throws(WAVProblem) -> FileBytes {
    do { return try FileBytes(creating: path, calls: calls, keepsContent: true) } catch { throw .file(error) }
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let packet = ports.next() {
      do { try write(packet, &ports) } catch { throw fault(error) }
    }
    do { try refreshIfDue(&ports) } catch { throw fault(error) }
    return .done
  }

  private mutating func write(_ packet: borrowing Packet, _ ports: inout Ports) throws(WAVProblem) {
    let channels = writer.format.channels
    let count = Int(packet.byteCount) / (channels * sample.byteCount)
    guard count > 0, packet.position + Int64(count) > 0 else { return }
    // Only the first packets can lie before position 0; the file has begun with the first that does not.
    let skipped = hasBegun ? 0 : Int(max(0, -packet.position))
    let position = packet.position + Int64(skipped)
    try place(position, ports: &ports)
    switch sample {
    case .s16:
      let samples = packet.samples(of: Int16.self)
      try writer.write(samples.extracting(skipped * channels..<count * channels))
    case .f32:
      let samples = packet.samples(of: Float.self)
      try writer.write(samples.extracting(skipped * channels..<count * channels))
    }
    hasBegun = true
    expected = packet.position + Int64(count)
  }

  /// Fills up to a position with silence, or reports why not.
  private mutating func place(_ position: Int64, ports: inout Ports) throws(WAVProblem) {
    let missing = position - expected
    guard missing != 0 else { return }
    let fills = missing > 0 && missing <= longestGap
    if fills { try writer.writeSilence(frames: missing) }
    gaps += 1
    guard gapPace.allows(at: ports.now) else { return }
    ports.post(Event.gap) { event in
      event.field("position", Int(position))
      event.field("samples", Int(missing))
      event.field("filled", fills)
    }
  }

  /// Updates the header after a second of audio or of clock time, and asks to be called for the next.
  private mutating func refreshIfDue(_ ports: inout Ports) throws(WAVProblem) {
    guard writer.frameCount != refreshed else { return }
    let last = refreshedAt ?? ports.now
    refreshedAt = last
    let due = last + Self.refreshInterval
    guard writer.frameCount - refreshed >= Int64(rate) || ports.now >= due else {
      ports.wake(at: due)
      return
    }
    try writer.refreshHeader()
    refreshed = writer.frameCount
    refreshedAt = ports.now
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    do { try writer.refreshHeader() } catch { throw fault(error) }
    // A listener of this event may use the file at once.
    lock = nil
    let (frames, format, gaps) = (writer.frameCount, writer.format, gaps)
    ports.post(Event.written) { event in
      event.field("samples", Int(frames))
      event.field("seconds", Double(frames) / Double(format.sampleRate), decimals: 3)
      event.field("bytes", Int(frames) * format.frameByteCount)
      event.field("gaps", gaps)
    }
    return .ended
  }

  /// The fault for a failed write; its detail is the number of frames that are readable.
  private mutating func fault(_ problem: WAVProblem) -> NodeFault {
    lock = nil
    // The header fits even on a full disk, since it is overwritten in place.
    do { try writer.refreshHeader() } catch {}
    guard case .file(let file) = problem else { return NodeFault(.library, detail: writer.frameCount) }
    return NodeFault(.system, code: file.errorNumber, detail: writer.frameCount)
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard fault.reason == .system else { return nil }
    let milliseconds = fault.detail * 1_000 / Int64(rate)
    return FileMessages.writeFailure(
      fault.code, "\"\(path)\"", kept: "the \(milliseconds) ms before it are readable")
  }
}
