public import MillraceCore
internal import MillraceFiles

/// `audio.read`: plays an audio file into the graph.
///
/// - Out `out`: s16 or f32 at the file's own rate and channels, in packets of `frame` milliseconds; the last one may be shorter.
///   Position 0 is the first sample emitted, after `start`.
/// - WAV (8 to 32 bit PCM, 32 and 64 bit float, RF64) is read directly and without heap allocations; FLAC, MP3, Ogg, MP4 and other
///   formats are decoded by FFmpeg's libraries, with encoder delay and padding removed where the file states them.
/// - Unpaced (the default): as fast as the graph takes it. Paced: the packet that begins at position p is due p / rate after the
///   first, computed from p and never accumulated.
/// - `loop` continues from `start` without a gap; positions continue as well.
/// - With `reply` the file is a reply of the bot: its packets carry the generation, and an interruption ends the file, or with `loop`
///   restarts it as the next reply.
/// - A damaged stretch is skipped, and replaced by silence where the file's timestamps give its length; event `damaged`. A file that
///   is shorter than it states, or breaks off inside a packet or before its last page (Ogg), plays what it has; event `truncated`,
///   and a fault after the last sample if parameter `truncated` is `fail`. A WAV file that is longer than it states, as a killed
///   recorder leaves it, plays to its end; an MP3 file without two consecutive frames is refused. Whole packets missing at the end go
///   unnoticed in formats that state neither length nor end: MP3 without an encoder header, AAC in ADTS. A change of rate or channels
///   inside the file, and a failing disk, are faults.
/// - No latency; runs on the bulk lane, since the disk may block.
@safe
public struct AudioRead: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.read", "plays an audio file: WAV, FLAC, MP3, Ogg, MP4",
    text: """
      The output has the rate and channels of the file. The beginning of the file is read when the graph is checked. Encoder \
      delay and padding are removed where the file states them, so that a decoded file has its original length.
      """,
    outputs: [PortContract("out", AudioLimits.pcm, text: "the audio of the file")],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file to play"),
      ParameterContract(
        "pace", .bool, default: false, text: "true: in real time; false: as fast as the graph takes it"),
      ParameterContract("loop", .bool, default: false, text: "true: restart at the end, without a gap"),
      ParameterContract(
        "start", .number(0...86_400_000), unit: "ms", default: 0, text: "where in the file to start"),
      ParameterContract(
        "length", .number(0...86_400_000), unit: "ms", text: "how much to play; default: to the end"),
      .frame,
      ParameterContract("sample", SampleType.choice, default: "s16", text: "sample type of the output"),
      ParameterContract(
        "reply", .bool, default: false,
        text: "true: the audio is a reply of the bot, which an interruption ends (with `loop`: restarts)"),
      .truncated,
    ],
    events: [
      EventContract(
        "damaged",
        text:
          "parts of the file could not be decoded and were skipped: `position` near the last, `count` so far; at most once a second, and at the end"
      ),
      EventContract(
        "truncated",
        text: "the file is truncated: `samples` it had, and `expected` if it states its length"),
    ],
    lane: .bulk, budget: 5_000, drive: .itself,
    examples: [
      #"{ "type": "audio.read", "path": "speech.wav", "pace": true }"#,
      #"{ "type": "audio.read", "path": "music.flac", "start": 30000, "length": 10000, "sample": "f32" }"#,
    ],
    resolve: resolve)

  private enum Event {
    static let damaged = 0
    static let truncated = 1
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.pacing = values.bool("pace") ? .paced : .waits
    let info: AudioInfo
    do throws(NodeProblem) { info = try AudioFile.info(values.string("path")) } catch {
      return resolution.refuse("path", error.text, cure: error.cure)
    }
    resolution.outputs["out"] = .pcm(
      rate: info.rate, channels: info.channels, sample: values.sample("sample") ?? .s16,
      frames: AudioLimits.frames(milliseconds: values.number("frame"), rate: info.rate))
    let start = samples(values, "start", info.rate)
    if let length = info.length, start > 0, start >= length {
      resolution.refuse(
        "start",
        "\"\(values.string("path"))\" lasts \(milliseconds(length, info.rate)) and ends before the start",
        cure: "set an earlier start")
    }
  }

  private static func samples(_ values: ParameterValues, _ name: String, _ rate: Int) -> Int64 {
    Int64((values.number(name) * Double(rate) / 1_000).rounded())
  }

  private let path: String
  private let source: AudioSource
  private let lock: FileLock
  private let frames: Int
  private let loops: Bool
  private let isReply: Bool
  /// An interruption has arrived that must be handled before anything else is emitted.
  private var wasInterrupted = false
  /// First sample of the file to play, and how many from there; nil: to the end.
  private let start: Int64
  private let length: Int64?
  /// Samples emitted since the first pass and since the present pass began.
  private var position: Int64 = 0
  private var passed: Int64 = 0
  private var isOver = false
  /// Where the file ended in the first complete pass.
  private var firstEnd: Int64?
  private var isEndReported = false
  private let truncation: Truncation
  /// The file ended early, which becomes a fault once its last packet is out.
  private var mustFail = false
  private var reportedDamage = 0
  private var damagePace = EventThrottle()
  private var pacer: Pacer

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    let path = values.string("path")
    guard let shape = setup.outputs[0].shape, case .pcm(let rate, let channels, let sample) = shape.format
    else {
      throw NodeProblem("\"\(setup.name)\" produces audio only")
    }
    let lock = try FileLock(path, for: .reading)
    let source = try AudioFile.open(path, sample: sample)
    guard source.info.rate == rate && source.info.channels == channels else {
      throw NodeProblem(
        "\"\(path)\" was changed after the graph was checked", parameter: "path",
        cure: "restart the graph")
    }
    let start = Self.samples(values, "start", rate)
    do throws(NodeFault) { if start > 0 { try source.seek(to: start) } } catch {
      throw NodeProblem(Self.message(error, path, source, rate: rate), parameter: "start")
    }
    self.path = path
    self.source = source
    self.lock = lock
    self.start = start
    frames = shape.packetBytes / source.frameBytes
    loops = values.bool("loop")
    isReply = values.bool("reply")
    truncation = values.truncation
    length = values.has("length") ? Self.samples(values, "length", rate) : nil
    pacer = Pacer(rate: rate, paces: setup.pacing == .paced)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if wasInterrupted { try beginNextReply() }
    guard !isOver && !mustFail else { return try end(&ports) }
    if pacer.mustWait(for: position, &ports) { return .done }
    var packet = try ports.makePacket(
      bytes: frames * source.frameBytes, of: isReply ? ports.currentReply : .none)
    let count = try fill(&packet)
    reportDamage(&ports)
    reportEnd(&ports)
    guard count > 0 else { return try end(&ports) }
    packet.setByteCount(count * source.frameBytes)
    packet.timestamp = pacer.time(of: position, now: ports.now)
    packet.position = position
    packet.duration = count
    ports.emit(packet)
    position += Int64(count)
    if isOver || mustFail { return mustFail ? .again : .ended }
    return pacer.mustWait(for: position, &ports) ? .done : .again
  }

  private mutating func end(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    reportDamage(&ports)
    if mustFail { throw Truncation.fault(at: firstEnd ?? start + passed) }
    return .ended
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard isReply, !isOver else { return }
    wasInterrupted = true
    ports.wake(at: ports.now)
  }

  /// Skips the rest of the file, which belongs to the cancelled reply.
  private mutating func beginNextReply() throws(NodeFault) {
    wasInterrupted = false
    guard loops else { return isOver = true }
    try source.seek(to: start)
    passed = 0
  }

  /// Reads the next samples into a packet, restarting at the end if looping, and returns how many.
  private mutating func fill(_ packet: inout Packet) throws(NodeFault) -> Int {
    var bytes = packet.mutableSamples(of: UInt8.self)
    var done = 0
    while done < frames && !isOver {
      let wanted = Int(min(Int64(frames - done), length.map { $0 - passed } ?? .max))
      let count = try read(wanted, into: &bytes, at: done)
      done += count
      passed += Int64(count)
      guard count < wanted || wanted == 0 || passed == length else { continue }
      if count < wanted { firstEnd = firstEnd ?? start + passed }
      // An empty pass would be followed by another one, forever.
      isOver = !loops || passed == 0
      if isOver { break }
      try source.seek(to: start)
      passed = 0
    }
    return done
  }

  private mutating func read(_ count: Int, into bytes: inout MutableSpan<UInt8>, at offset: Int)
    throws(NodeFault) -> Int
  {
    guard count > 0 else { return 0 }
    let size = source.frameBytes
    let source = source
    var fault: NodeFault?
    let given = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
      let target = unsafe UnsafeMutableRawBufferPointer(
        rebasing: UnsafeMutableRawBufferPointer(buffer)[offset * size..<(offset + count) * size])
      do throws(NodeFault) { return unsafe try source.read(into: target) } catch {
        fault = error
        return 0
      }
    }
    if let fault { throw fault }
    return given
  }

  private mutating func reportDamage(_ ports: inout Ports) {
    let count = source.damageCount
    guard count > reportedDamage, damagePace.allows(at: ports.now, isLast: isOver) else { return }
    reportedDamage = count
    let position = position
    ports.post(Event.damaged) { event in
      event.field("position", Int(position))
      event.field("count", count)
    }
  }

  /// Compares the length of the file with what it states, once its end is reached.
  private mutating func reportEnd(_ ports: inout Ports) {
    guard let given = firstEnd, !isEndReported else { return }
    isEndReported = true
    let isShort = source.info.length.map { given < $0 - source.info.tolerance } ?? false
    guard isShort || source.isTruncated else { return }
    mustFail = truncation == .fail
    let expected = isShort ? source.info.length : nil
    ports.post(Event.truncated) { event in
      event.field("samples", Int(given))
      if let expected { event.field("expected", Int(expected)) }
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    Self.message(fault, path, source, rate: pacer.rate)
  }

  /// The message for a failed read; `rate` is the file's.
  static func message(_ fault: NodeFault, _ path: String, _ source: AudioSource, rate: Int) -> String {
    let place = "after \(fault.detail * 1_000 / Int64(rate)) ms"
    switch fault.reason {
    case .custom where Truncation.isFault(fault):
      return
        "\"\(path)\" is truncated: it has \(milliseconds(fault.detail, rate))\(stated(source, fault.detail, rate)), and \"truncated\" is "
        + "\"fail\"; use a complete file"
    case .system: return "reading \"\(path)\" failed \(place): \(SystemError.text(fault.code))"
    case .custom where fault.code == MediaSource.changed:
      return "\"\(path)\" changes its rate or channels \(place); split it there, or convert it first: "
        + "ffmpeg -i \"\(path)\" sound.wav"
    case .gone: return source.lastMessage ?? "\"\(path)\" no longer exists"
    default:
      let message = source.lastMessage ?? LibraryMessage.describe(fault.code)
      return "decoding \"\(path)\" failed: \(message); check that it plays, or re-encode it"
    }
  }

  private static func milliseconds(_ samples: Int64, _ rate: Int) -> String {
    "\(samples / Int64(rate) * 1_000 + samples % Int64(rate) * 1_000 / Int64(rate)) ms"
  }

  /// ` of 62 ms`, if the file states a length above `given` samples.
  private static func stated(_ source: AudioSource, _ given: Int64, _ rate: Int) -> String {
    guard let length = source.info.length, length > given else { return "" }
    return " of \(milliseconds(length, rate))"
  }
}
