public import MillraceCore
internal import MillraceFiles

/// `audio.read`: plays a sound file into the graph.
///
/// - Out `out`: s16 or f32 at the file's own rate and channels, in packets of `frame` milliseconds; the last is as short as it
///   is. Position 0 is the first sample given, after `start`.
/// - WAV (8 to 32 bit PCM, 32 and 64 bit float, RF64) is read directly and without heap; FLAC, MP3, Ogg, MP4 and whatever
///   else FFmpeg's libraries know are decoded by them, encoder delay and padding cut off where the file states them.
/// - Not paced (the default): as fast as the graph takes. Paced: the packet that begins at position p is due p / rate after
///   the first, computed from p and never added up.
/// - `loop` goes on from `start` without a seam, positions going on as well.
/// - With `reply` the file is what the bot says: its packets carry the generation, and an interruption ends the file, or with
///   `loop` begins it again as the next reply.
/// - A damaged stretch is left out, as silence where the file's times tell its length; event `damaged`. A file shorter
///   than it says, or that breaks off inside a packet or before its last page (Ogg), gives what it has; event `truncated`, and a fault
///   behind the last sample where parameter `truncated` is `fail`. A WAV file longer than it says, as a killed recorder leaves it, gives
///   all it has; an MP3 file of which no frames follow each other is refused.
///   No container tells of whole packets missing at the end when it states neither length nor end: MP3 without a header of
///   its encoder, AAC in ADTS. Rate or channels that change on the way, and a disk that fails,
///   are faults.
/// - Latency none; runs on the bulk lane, since a disk may take its time.
@safe
public struct AudioRead: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.read", "plays a sound file: WAV, FLAC, MP3, Ogg, MP4",
    text: """
      The sound has the rate and the channels of the file. The file's beginning is read when the graph is checked. \
      Encoder delay and padding are cut off where the file states them, so that a decoded file has its original length.
      """,
    outputs: [PortContract("out", SoundBounds.pcm, text: "the sound of the file")],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file to play"),
      ParameterContract(
        "pace", .bool, default: false, text: "true: in time with the clock; false: as fast as taken"),
      ParameterContract("loop", .bool, default: false, text: "true: begin again at the end, without a seam"),
      ParameterContract(
        "start", .number(0...86_400_000), unit: "ms", default: 0, text: "where in the file to begin"),
      ParameterContract(
        "length", .number(0...86_400_000), unit: "ms", text: "how much to play; absent: to the end"),
      .frame,
      ParameterContract("sample", SampleType.choice, default: "s16", text: "sample type to make"),
      ParameterContract(
        "reply", .bool, default: false,
        text: "true: the sound is the bot's reply, which an interruption ends (with `loop`: begins again)"),
      .truncated,
    ],
    events: [
      EventContract(
        "damaged",
        text:
          "stretches of the file could not be decoded and were left out: `position` near the last, `count` so far; at most once a second, and at the end"
      ),
      EventContract(
        "truncated",
        text: "the file is cut off: `samples` it had, and `expected` where it states its length"),
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
    let facts: AudioFacts
    do throws(NodeProblem) { facts = try AudioFile.facts(values.string("path")) } catch {
      return resolution.refuse("path", error.text, cure: error.cure)
    }
    resolution.outputs["out"] = .pcm(
      rate: facts.rate, channels: facts.channels, sample: values.sample("sample") ?? .s16,
      frames: SoundBounds.frames(milliseconds: values.number("frame"), rate: facts.rate))
    let start = samples(values, "start", facts.rate)
    if let length = facts.length, start > 0, start >= length {
      resolution.refuse(
        "start",
        "\"\(values.string("path"))\" lasts \(milliseconds(length, facts.rate)), less than the start",
        cure: "begin earlier")
    }
  }

  private static func samples(_ values: ParameterValues, _ name: String, _ rate: Int) -> Int64 {
    Int64((values.number(name) * Double(rate) / 1_000).rounded())
  }

  private let path: String
  private let source: AudioSource
  private let claim: FileClaim
  private let frames: Int
  private let loops: Bool
  private let isReply: Bool
  /// An interruption has come that the source has to answer before it gives any more.
  private var wasInterrupted = false
  /// First sample of the file that is played, and how many from there; nil: to the end.
  private let start: Int64
  private let length: Int64?
  /// Samples given since the file began for the first and for the last time.
  private var position: Int64 = 0
  private var passed: Int64 = 0
  private var isOver = false
  /// Where the file ended the first time it was read to its end.
  private var firstEnd: Int64?
  private var isEndTold = false
  private let truncation: Truncation
  /// The file ended too early, which is to be a fault once its last packet is out.
  private var mustFail = false
  private var reportedDamage = 0
  private var damagePace = EventPace()
  private var pacer: Pacer

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    let path = values.string("path")
    guard let shape = setup.outputs[0].shape, case .pcm(let rate, let channels, let sample) = shape.format
    else {
      throw NodeProblem("\"\(setup.name)\" makes sound only")
    }
    let claim = try FileClaim(path, for: .reading)
    let source = try AudioFile.open(path, sample: sample)
    guard source.facts.rate == rate && source.facts.channels == channels else {
      throw NodeProblem(
        "\"\(path)\" has changed since the graph was checked", parameter: "path",
        cure: "start the graph again")
    }
    let start = Self.samples(values, "start", rate)
    do throws(NodeFault) { if start > 0 { try source.seek(to: start) } } catch {
      throw NodeProblem(Self.words(error, path, source, rate: rate), parameter: "start")
    }
    self.path = path
    self.source = source
    self.claim = claim
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

  /// What was left of the file belongs to the reply that is void.
  private mutating func beginNextReply() throws(NodeFault) {
    wasInterrupted = false
    guard loops else { return isOver = true }
    try source.seek(to: start)
    passed = 0
  }

  /// Reads the next samples into a packet, beginning again at the end where that is wanted, and answers how many.
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
      // A pass that gave nothing would be followed by another one, for ever.
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

  /// Compares what the file had with what it says, once its end has come.
  private mutating func reportEnd(_ ports: inout Ports) {
    guard let given = firstEnd, !isEndTold else { return }
    isEndTold = true
    let isShort = source.facts.length.map { given < $0 - source.facts.tolerance } ?? false
    guard isShort || source.isCut else { return }
    mustFail = truncation == .fail
    let expected = isShort ? source.facts.length : nil
    ports.post(Event.truncated) { event in
      event.field("samples", Int(given))
      if let expected { event.field("expected", Int(expected)) }
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    Self.words(fault, path, source, rate: pacer.rate)
  }

  /// Why reading a file failed; `rate` is the file's.
  static func words(_ fault: NodeFault, _ path: String, _ source: AudioSource, rate: Int) -> String {
    let place = "after \(fault.detail * 1_000 / Int64(rate)) ms"
    switch fault.reason {
    case .custom where Truncation.isFault(fault):
      return
        "\"\(path)\" is cut off: it has \(milliseconds(fault.detail, rate))\(stated(source, fault.detail, rate)), and \"truncated\" is "
        + "\"fail\"; use a complete file"
    case .system: return "reading \"\(path)\" failed \(place): \(SystemError.text(fault.code))"
    case .custom where fault.code == MediaSource.changed:
      return "\"\(path)\" changes its rate or channels \(place); cut it there, or convert it first: "
        + "ffmpeg -i \"\(path)\" sound.wav"
    case .gone: return source.lastWords ?? "\"\(path)\" is gone"
    default:
      let words = source.lastWords ?? LibraryWords.describe(fault.code)
      return "decoding \"\(path)\" failed: \(words); check that it plays, or convert it again"
    }
  }

  private static func milliseconds(_ samples: Int64, _ rate: Int) -> String {
    "\(samples / Int64(rate) * 1_000 + samples % Int64(rate) * 1_000 / Int64(rate)) ms"
  }

  /// ` of 62 ms`, where the file states its length and it is more than the `given` samples.
  private static func stated(_ source: AudioSource, _ given: Int64, _ rate: Int) -> String {
    guard let length = source.facts.length, length > given else { return "" }
    return " of \(milliseconds(length, rate))"
  }
}
