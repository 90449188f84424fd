public import MillraceCore
internal import MillraceFiles

/// `audio.write`: writes a WAV file.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels. The file holds s16 or f32, as the input unless `sample` says
///   otherwise, and becomes RF64 above 4 GiB.
/// - Frame n of the file is the sample at position n: what lies before position 0 (the run-in of a filter or an encoder) is
///   left out, a gap of up to `gap` milliseconds is silence. A longer gap is not filled and a packet that comes again
///   (a position already written) is appended as it is: no sound is lost, and event `gap` says so.
/// - The header is brought up to date every second of sound and of clock, so that a killed process leaves a file that
///   plays. Event `written` at the end.
/// - An existing file is replaced by the first call, not by a graph that never starts; one that another node or process reads or
///   writes is refused, as is a folder or a pipe.
/// - A write the system refuses (disk full) is a fault; what was written before stays readable. A node that is restarted
///   begins the file anew.
/// - Latency none; runs on the bulk lane, since a disk may take its time.
@safe
public struct AudioWrite: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.write", "writes a WAV file",
    text: """
      The file can be read at every moment, up to the last second. Sound is placed by sample position: gaps become \
      silence, so that recordings of one graph align.
      """,
    inputs: [PortContract("in", SoundBounds.pcm, text: "sound to keep")],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file to write; replaced if it exists"),
      ParameterContract("sample", SampleType.choice, text: "sample type of the file; absent: as the input"),
      ParameterContract(
        "gap", .number(0...3_600_000), unit: "ms", default: 10_000,
        text: "longest gap that becomes silence; after a longer one the sound goes on directly"),
    ],
    events: [
      EventContract(
        "gap",
        text: """
          sound did not follow on: `position` of the packet, `samples` missing (negative: that many came again), \
          `filled` with silence or not; at most one a second
          """),
      EventContract(
        "written",
        text: "the file is complete: `samples` per channel, `seconds`, `bytes` of sound, `gaps` met"),
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

  /// Nanoseconds between two updates of the header when sound comes slowly.
  private static let refreshInterval = Nanoseconds.milliseconds(1_000)

  private let path: String
  private let rate: Int
  private let sample: SampleType
  private let longestGap: Int64
  private var writer: WAVWriter
  /// Given back when the file is complete, and with the first fault, so that a node made anew can write it.
  private var claim: FileClaim?
  /// Position of the next frame of the file.
  private var expected: Int64 = 0
  private var hasBegun = false
  private var gaps = 0
  private var gapPace = EventPace()
  /// Frames and time of the header's last update.
  private var refreshed: Int64 = 0
  private var refreshedAt: Nanoseconds?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup, calls: FileBytes.Calls())
  }

  /// As the other; tests put refusing system calls in.
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem) {
    let path = setup.parameters.string("path")
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes sound only")
    }
    let kept = setup.parameters.sample("sample") ?? sample
    try Self.check(path)
    let claim = try FileClaim(path, for: .writing)
    let format = WAVFormat(sampleRate: rate, channels: channels, encoding: kept == .s16 ? .s16 : .f32)
    let writer = try Self.create(path, format, calls)
    self.path = path
    self.rate = rate
    self.sample = sample
    self.claim = consume claim
    self.writer = writer
    longestGap = Int64(setup.parameters.number("gap") * Double(rate) / 1_000)
  }

  private static func check(_ path: String) throws(NodeProblem) {
    try FileCheck.writing(path)
    guard FileCheck.isPipe(path) else { return }
    throw NodeProblem(
      "\"\(path)\" is a pipe; the length in a WAV file's header is written last", parameter: "path",
      cure: "write to a file, or send the sound to process.pipe")
  }

  private static func create(
    _ path: String, _ format: WAVFormat, _ calls: FileBytes.Calls
  ) throws(NodeProblem) -> WAVWriter {
    do {
      let file = try Self.file(path, calls)
      // What an older file holds goes with the first call, so that a graph that does not start destroys nothing.
      return try WAVWriter(
        file: file, format: format, largest: WAVHeaderLayout.largestRIFF, keepsContent: file.byteCount > 0)
    } catch {
      if case .file(let fault) = error { throw FileWords.problem(fault.errorNumber, path, for: .writing) }
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
    // Only the first packets can lie before position 0: the file has begun when one does not.
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

  /// Fills the way to a position with silence, or notes why not.
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

  /// Brings the header up to date after a second of sound or of clock, and asks to be called for the next.
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
    // Whoever hears that the file is complete may use it.
    claim = nil
    let (frames, format, gaps) = (writer.frameCount, writer.format, gaps)
    ports.post(Event.written) { event in
      event.field("samples", Int(frames))
      event.field("seconds", Double(frames) / Double(format.sampleRate), decimals: 3)
      event.field("bytes", Int(frames) * format.frameByteCount)
      event.field("gaps", gaps)
    }
    return .ended
  }

  /// The system's refusal as a fault; its detail is the number of frames that are safe.
  private mutating func fault(_ problem: WAVProblem) -> NodeFault {
    claim = nil
    // The header fits even on a full disk, since it is written over itself.
    do { try writer.refreshHeader() } catch {}
    guard case .file(let file) = problem else { return NodeFault(.library, detail: writer.frameCount) }
    return NodeFault(.system, code: file.errorNumber, detail: writer.frameCount)
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard fault.reason == .system else { return nil }
    let milliseconds = fault.detail * 1_000 / Int64(rate)
    return FileWords.writeFailure(
      fault.code, "\"\(path)\"", kept: "the \(milliseconds) ms before can be read")
  }
}
