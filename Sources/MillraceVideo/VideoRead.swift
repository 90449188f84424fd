internal import MillraceAudio
public import MillraceCore
internal import MillraceFiles

/// `video.read`: plays a film into the graph, pictures and sound.
///
/// - Out `out`: planar 4:2:0, BT.601 of full range, in the size of the first picture after turning; position counts pictures.
///   Out `audio`: s16 or f32 at the file's own rate and channels, in packets of `frame` milliseconds; positions without holes.
/// - Time 0 of both is when the earlier of the two begins. A picture's time is the file's; times that stand still, go back or
///   leap by more than ten minutes are put a period after the one before. Sound goes by its samples; where the file's times say that some are missing, there is silence.
/// - Not paced (the default): as fast as the graph takes, in the order of the times. Paced: at its time, decoded before.
/// - `interval` gives only the pictures that stand at a slot of a grid; the others are decoded, and neither converted nor copied.
/// - Pictures of more than `maxPixels` are refused before they are decoded; on the way, such a picture is a fault.
/// - `loop` begins again when both have ended; sound that is shorter is filled up with silence.
/// - Damaged parts are left out; event `damaged`. Pictures that change their size are scaled to the first's; event `resized`.
///   A film that ends too early gives what it has; event `truncated`, where that can be known (`FilmTail`), and with
///   `truncated` set to `fail` a fault after that. Sound that changes rate or channels, and a disk that fails, are faults.
/// - Latency none; runs on the bulk lane. A call decodes a picture, on one thread unless told otherwise, or converts one.
@safe
public struct VideoRead: ~Copyable, Node {
  private let values: ParameterValues
  private let claim: FileLock
  private var film: FilmReader
  private let width: Int
  private let height: Int
  private let paces: Bool
  private let loops: Bool
  /// Sound as it was resolved; nil when nobody listens.
  private let sound: (rate: Int, frames: Int, frameBytes: Int)?
  /// When the graph's first call was.
  private var start: Nanoseconds?
  /// When the first picture of all is due.
  private let firstPicture: Nanoseconds
  /// What the passes before this one lasted.
  private var offset: Nanoseconds = 0
  /// When the first sample of all is due.
  private let soundStart: Nanoseconds
  private var soundPosition: Int64 = 0
  /// Silent samples due before the film's own.
  private var silence: Int64 = 0
  private var pictureCount: Int64 = 0
  /// Pictures and samples of this pass.
  private var given: Int64 = 0
  private var codedSize: (width: Int, height: Int)
  /// The picture decoded last is given.
  private var isPictureGiven = false
  private var damaged = CountedEvent()
  private var otherDamage = 0
  private var isOver = false
  private var hasToldEnd = false
  /// The film ended too early, which is to be a fault once that was told.
  private var mustFail = false

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    let claim = try FileLock(values.string("path"), for: .reading)
    let listens = setup.outputs[1].isLinked
    let film = try Self.open(values, sound: listens)
    guard let pictures = film.pictures, case .video(let width, let height, _, _) = setup.outputFormat(),
      pictures.width == width, pictures.height == height
    else { throw Self.changed(values) }
    var sound: (rate: Int, frames: Int, frameBytes: Int)?
    if listens, let shape = setup.outputs[1].shape, let frameBytes = shape.format.frameBytes,
      let rate = shape.format.rate
    {
      guard film.sound?.rate == rate, film.sound?.channels == shape.format.channels else {
        throw Self.changed(values)
      }
      sound = (rate, shape.packetBytes / frameBytes, frameBytes)
    }
    self.values = values
    self.claim = claim
    self.film = film
    self.sound = sound
    self.width = width
    self.height = height
    codedSize = pictures.codedSize
    paces = setup.pacing == .paced
    loops = values.bool("loop")
    soundStart = film.soundTime ?? 0
    firstPicture = film.pictureTime ?? 0
  }

  private static func changed(_ values: ParameterValues) -> NodeProblem {
    NodeProblem(
      "\"\(values.string("path"))\" has changed since the graph was checked", parameter: "path",
      cure: "start the graph again")
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if mustFail { throw Truncation.fault(at: film.end) }
    guard !isOver else { return .ended }
    let begin = start ?? ports.now
    start = begin
    let ready = try prepareSound()
    reportDamage(&ports)
    let picture = film.pictureTime.map { $0 &+ offset }
    if isPictureGiven {
      // Sound that is due while pictures are passed over does not wait for the next that is wanted.
      guard paces, ready > 0, soundTime <= picture ?? .max, begin &+ soundTime <= ports.now else {
        return try decodeNext(&ports)
      }
      try emitSound(ready, at: begin &+ soundTime, &ports)
      return .again
    }
    if film.sound?.isSought == true && silence == 0 {
      // Nothing is known of it before it is found. By the clock, pictures do not wait for that.
      guard paces, let picture, begin &+ picture <= ports.now else { return .again }
    }
    guard picture != nil || ready > 0 else { return try beginAgain(&ports) }
    let isSound = ready > 0 && soundTime <= picture ?? .max
    let time = isSound ? soundTime : picture ?? 0
    if paces && begin &+ time > ports.now {
      ports.wake(at: begin &+ time)
      return .done
    }
    if isSound {
      try emitSound(ready, at: begin &+ time, &ports)
    } else {
      try emitPicture(at: begin &+ time, &ports)
    }
    return .again
  }

  /// Decodes the next picture, in a call of its own: what waits for the worker, such as the slot of a sampler, waits for a decoder or
  /// for a conversion, not for both.
  private mutating func decodeNext(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    isPictureGiven = try !film.advancePicture()
    reportDamage(&ports)
    return .again
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    reportDamage(&ports, isLast: true)
    return .ended
  }

  /// When the next sample is due.
  private var soundTime: Nanoseconds { soundStart &+ .samples(soundPosition, rate: sound?.rate ?? 1) }

  /// Samples that can be given in one packet now; fewer than a packet has only at the end.
  private mutating func prepareSound() throws(NodeFault) -> Int {
    guard let sound, let track = film.sound else { return 0 }
    return silence > 0 ? Int(min(silence, Int64(sound.frames))) : try track.prepare(sound.frames)
  }

  private mutating func emitPicture(at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    guard let pictures = film.pictures else { return }
    if pictures.codedSize != codedSize {
      codedSize = pictures.codedSize
      reportSize(&ports)
    }
    var packet = try ports.makePacket(bytes: pictures.byteCount, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    try pictures.write(into: &target)
    packet.timestamp = time
    packet.position = pictureCount
    packet.duration = 1
    packet.flags.insert(.key)
    ports.emit(packet)
    pictureCount += 1
    given += 1
    isPictureGiven = true
  }

  private mutating func emitSound(_ count: Int, at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault)
  {
    guard let sound, let track = film.sound else { return }
    var packet = try ports.makePacket(1, bytes: count * sound.frameBytes, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    if silence > 0 {
      for index in target.indices { target[index] = 0 }
      silence -= Int64(count)
    } else {
      track.write(into: &target)
    }
    packet.timestamp = time
    packet.position = soundPosition
    packet.duration = count
    ports.emit(packet, to: 1)
    soundPosition += Int64(count)
    given += Int64(count)
  }

  /// At the end of the film: the end, or its beginning.
  private mutating func beginAgain(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    reportDamage(&ports, isLast: true)
    reportEnd(&ports)
    if mustFail { return .again }
    // A pass that gave nothing would be followed by another one, for ever.
    guard loops && given > 0 else {
      isOver = true
      return .ended
    }
    offset &+= film.end
    otherDamage += film.damageCount
    do throws(NodeProblem) { film = try Self.open(values, sound: sound != nil) } catch {
      throw NodeFault(.gone)
    }
    guard film.pictures?.width == width, film.pictures?.height == height, film.sound?.rate == sound?.rate
    else {
      throw NodeFault(.gone)
    }
    otherDamage -= film.damageCount
    film.beginSlots(at: firstPicture &- offset)
    given = 0
    if let sound, let begins = film.soundTime {
      let due = Double(offset &+ begins &- soundStart) * Double(sound.rate) / 1e9
      silence = max(0, Int64(due.rounded()) - soundPosition)
    }
    return .again
  }

  // MARK: Events

  private mutating func reportDamage(_ ports: inout Ports, isLast: Bool = false) {
    let count = otherDamage + film.damageCount
    guard damaged.isDue(count, at: ports.now, isLast: isLast) else { return }
    let seconds = Double(film.pictureTime ?? film.end) / 1e9
    ports.post(Event.damaged.rawValue) { event in
      event.field("at", seconds, decimals: 3)
      event.field("count", count)
    }
  }

  private func reportSize(_ ports: inout Ports) {
    let size = codedSize
    let seconds = Double(film.pictureTime ?? 0) / 1e9
    ports.post(Event.resized.rawValue) { event in
      event.field("width", size.width)
      event.field("height", size.height)
      event.field("at", seconds, decimals: 3)
    }
  }

  /// Compares what the film had with what it says; at the end of the first pass.
  private mutating func reportEnd(_ ports: inout Ports) {
    guard let pictures = film.pictures, !hasToldEnd else { return }
    hasToldEnd = true
    let seconds = Double(film.end) / 1e9
    let expected = film.announced.map { Double($0) / 1e9 }
    // Where sound ends and what a picture stands for is not stated to the sample; half a second is no cut.
    let slack = 0.5 + 2 * Double(pictures.rate.time(ofPictures: 1)) / 1e9
    let isShort = expected.map { seconds < $0 - slack } ?? false
    let reason: String
    switch film.tail(values.string("path")) {
    case .cut(let found): reason = found
    case .unknown where isShort: reason = "it is shorter than it says"
    // Nothing need say how long the last picture of a file stands that is whole.
    case .unknown, .whole: return
    }
    mustFail = values.truncation == .fail
    ports.post(Event.truncated.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      if isShort, let expected { event.field("expected", expected, decimals: 3) }
      event.field("reason", utf8: reason.utf8.span)
      event.field("cure", "copy it again from where it came; what is there was played")
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    let path = values.string("path")
    switch fault.reason {
    case .system: return "reading \"\(path)\" failed: \(SystemError.text(fault.code))"
    case .custom where Truncation.isFault(fault):
      return
        "\"\(path)\" is cut off after \(fault.detail / 1_000_000) ms, and \"truncated\" is \"fail\"; use a complete file"
    case .custom where fault.code == PictureBound.fault:
      let (size, most) = (PictureBound.size(fault), values.integer("maxPixels"))
      return "\"\(path)\" has \(PictureBound.text(size, atMost: most)); \(PictureBound.cure(size))"
    case .custom where fault.code == FilmReader.soundChanged:
      return
        "the sound of \"\(path)\" changes its rate or channels; convert it again, or leave the port \"audio\" unlinked"
    case .gone: return film.demuxer.refusal.map { "\($0)" } ?? "\"\(path)\" has changed or is gone"
    case .library:
      return
        "decoding \"\(path)\" failed: \(film.words ?? "its pictures are of a kind that cannot be converted"); "
        + "check that it plays, or convert it again"
    default: return nil
    }
  }
}
