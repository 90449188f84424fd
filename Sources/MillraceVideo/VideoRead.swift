internal import MillraceAudio
public import MillraceCore
internal import MillraceFiles

/// `video.read`: plays a video file into the graph, pictures and audio.
///
/// - Output `out`: planar 4:2:0, BT.601 full range, in the size of the first picture after rotation; position counts pictures. Output `audio`:
///   s16 or f32 at the file's own rate and channels, in packets of `frame` milliseconds; positions without gaps.
/// - Time 0 of both outputs is when the earlier of the two starts. A picture's time is the file's; times that repeat, go back or jump by more than
///   ten minutes are replaced by one period after the previous one. Audio is timed by its samples; where the file's times show a gap, it is
///   filled with silence.
/// - Without `pace` (the default): as fast as the graph takes it, in order of time. With `pace`: at its time, decoded ahead.
/// - `interval` emits only the pictures at the slots of a grid; the others are decoded, but neither converted nor copied.
/// - Pictures of more than `maxPixels` are refused before they are decoded; in mid-stream such a picture fails the node.
/// - `loop` starts again when both have ended; shorter audio is padded with silence.
/// - Damaged parts are skipped; event `damaged`. Pictures that change size are scaled to the first size; event `resized`. A truncated file plays
///   what it has; event `truncated`, if that can be detected (`FileCompleteness`); with `truncated` set to `fail` the node then
///   fails. Audio that changes rate or channels, and read errors, fail the node.
/// - No latency; bulk lane. A call decodes one picture, on one thread by default, or converts one.
@safe
public struct VideoRead: ~Copyable, Node {
  private let values: ParameterValues
  private let claim: FileLock
  private var video: VideoFileReader
  private let width: Int
  private let height: Int
  private let paces: Bool
  private let loops: Bool
  /// The resolved audio format; nil if the output is not linked.
  private let sound: (rate: Int, frames: Int, frameBytes: Int)?
  /// Time of the graph's first call.
  private var start: Nanoseconds?
  /// When the very first picture is due.
  private let firstPicture: Nanoseconds
  /// Total length of the previous passes.
  private var offset: Nanoseconds = 0
  /// When the very first sample is due.
  private let soundStart: Nanoseconds
  private var soundPosition: Int64 = 0
  /// Silent samples before the file's own.
  private var silence: Int64 = 0
  private var pictureCount: Int64 = 0
  /// Pictures and samples emitted in this pass.
  private var emitted: Int64 = 0
  private var codedSize: (width: Int, height: Int)
  /// True if the latest decoded picture was emitted.
  private var isPictureEmitted = false
  private var damaged = CountedEvent()
  private var otherDamage = 0
  private var isOver = false
  private var hasReportedEnd = false
  /// The file is truncated, which fails the node once that was reported.
  private var mustFail = false

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    let claim = try FileLock(values.string("path"), for: .reading)
    let listens = setup.outputs[1].isLinked
    let video = try Self.open(values, sound: listens)
    guard let pictures = video.pictures, case .video(let width, let height, _, _) = setup.outputFormat(),
      pictures.width == width, pictures.height == height
    else { throw Self.changed(values) }
    var sound: (rate: Int, frames: Int, frameBytes: Int)?
    if listens, let shape = setup.outputs[1].shape, let frameBytes = shape.format.frameBytes,
      let rate = shape.format.rate
    {
      guard video.sound?.rate == rate, video.sound?.channels == shape.format.channels else {
        throw Self.changed(values)
      }
      sound = (rate, shape.packetBytes / frameBytes, frameBytes)
    }
    self.values = values
    self.claim = claim
    self.video = video
    self.sound = sound
    self.width = width
    self.height = height
    codedSize = pictures.codedSize
    paces = setup.pacing == .paced
    loops = values.bool("loop")
    soundStart = video.soundTime ?? 0
    firstPicture = video.pictureTime ?? 0
  }

  private static func changed(_ values: ParameterValues) -> NodeProblem {
    NodeProblem(
      "\"\(values.string("path"))\" changed after the graph was checked", parameter: "path",
      cure: "start the graph again")
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if mustFail { throw Truncation.fault(at: video.end) }
    guard !isOver else { return .ended }
    let begin = start ?? ports.now
    start = begin
    let ready = try prepareSound()
    reportDamage(&ports)
    let picture = video.pictureTime.map { $0 &+ offset }
    if isPictureEmitted {
      // Audio that is due does not wait while unwanted pictures are skipped.
      guard paces, ready > 0, soundTime <= picture ?? .max, begin &+ soundTime <= ports.now else {
        return try decodeNext(&ports)
      }
      try emitSound(ready, at: begin &+ soundTime, &ports)
      return .again
    }
    if video.sound?.isSought == true && silence == 0 {
      // The time of audio is unknown until it is found. With `pace`, pictures do not wait for that.
      guard paces, let picture, begin &+ picture <= ports.now else { return .again }
    }
    guard picture != nil || ready > 0 else { return try restart(&ports) }
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

  /// Decodes the next picture in its own call: other work on the worker, such as a sampler's slot, waits for a decode or a conversion, but not
  /// for both.
  private mutating func decodeNext(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    isPictureEmitted = try !video.advancePicture()
    reportDamage(&ports)
    return .again
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    reportDamage(&ports, isLast: true)
    return .ended
  }

  /// When the next sample is due.
  private var soundTime: Nanoseconds { soundStart &+ .samples(soundPosition, rate: sound?.rate ?? 1) }

  /// Samples available for one packet; fewer than a packet only at the end.
  private mutating func prepareSound() throws(NodeFault) -> Int {
    guard let sound, let track = video.sound else { return 0 }
    return silence > 0 ? Int(min(silence, Int64(sound.frames))) : try track.prepare(sound.frames)
  }

  private mutating func emitPicture(at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    guard let pictures = video.pictures else { return }
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
    emitted += 1
    isPictureEmitted = true
  }

  private mutating func emitSound(_ count: Int, at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault)
  {
    guard let sound, let track = video.sound else { return }
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
    emitted += Int64(count)
  }

  /// At the end of the file: ends or loops.
  private mutating func restart(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    reportDamage(&ports, isLast: true)
    reportEnd(&ports)
    if mustFail { return .again }
    // A pass that emitted nothing would loop forever.
    guard loops && emitted > 0 else {
      isOver = true
      return .ended
    }
    offset &+= video.end
    otherDamage += video.damageCount
    do throws(NodeProblem) { video = try Self.open(values, sound: sound != nil) } catch {
      throw NodeFault(.gone)
    }
    guard video.pictures?.width == width, video.pictures?.height == height, video.sound?.rate == sound?.rate
    else {
      throw NodeFault(.gone)
    }
    otherDamage -= video.damageCount
    video.beginSlots(at: firstPicture &- offset)
    emitted = 0
    if let sound, let begins = video.soundTime {
      let due = Double(offset &+ begins &- soundStart) * Double(sound.rate) / 1e9
      silence = max(0, Int64(due.rounded()) - soundPosition)
    }
    return .again
  }

  // MARK: Events

  private mutating func reportDamage(_ ports: inout Ports, isLast: Bool = false) {
    let count = otherDamage + video.damageCount
    guard damaged.isDue(count, at: ports.now, isLast: isLast) else { return }
    let seconds = Double(video.pictureTime ?? video.end) / 1e9
    ports.post(Event.damaged.rawValue) { event in
      event.field("at", seconds, decimals: 3)
      event.field("count", count)
    }
  }

  private func reportSize(_ ports: inout Ports) {
    let size = codedSize
    let seconds = Double(video.pictureTime ?? 0) / 1e9
    ports.post(Event.resized.rawValue) { event in
      event.field("width", size.width)
      event.field("height", size.height)
      event.field("at", seconds, decimals: 3)
    }
  }

  /// Compares the length played with the declared one, at the end of the first pass.
  private mutating func reportEnd(_ ports: inout Ports) {
    guard let pictures = video.pictures, !hasReportedEnd else { return }
    hasReportedEnd = true
    let seconds = Double(video.end) / 1e9
    let expected = video.declaredDuration.map { Double($0) / 1e9 }
    // The end of audio and the duration of the last picture are not exact; half a second is not a truncation.
    let slack = 0.5 + 2 * Double(pictures.rate.time(ofPictures: 1)) / 1e9
    let isShort = expected.map { seconds < $0 - slack } ?? false
    let reason: String
    switch video.tail(values.string("path")) {
    case .truncated(let found): reason = found
    case .unknown where isShort: reason = "it is shorter than its declared length"
    // A complete file need not declare the duration of its last picture.
    case .unknown, .complete: return
    }
    mustFail = values.truncation == .fail
    ports.post(Event.truncated.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      if isShort, let expected { event.field("expected", expected, decimals: 3) }
      event.field("reason", utf8: reason.utf8.span)
      event.field("cure", "copy it again from its source; what is there was played")
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    let path = values.string("path")
    switch fault.reason {
    case .system: return "cannot read \"\(path)\": \(SystemError.text(fault.code))"
    case .custom where Truncation.isFault(fault):
      return
        "\"\(path)\" is truncated after \(fault.detail / 1_000_000) ms, and \"truncated\" is \"fail\"; use a complete file"
    case .custom where fault.code == PictureLimit.fault:
      let (size, most) = (PictureLimit.size(fault), values.integer("maxPixels"))
      return "\"\(path)\" has \(PictureLimit.text(size, atMost: most)); \(PictureLimit.cure(size))"
    case .custom where fault.code == VideoFileReader.soundChanged:
      return
        "the audio of \"\(path)\" changes its rate or channels; convert it again, or do not link the port \"audio\""
    case .gone: return video.demuxer.refusal.map { "\($0)" } ?? "\"\(path)\" changed or was removed"
    case .library:
      return
        "cannot decode \"\(path)\": \(video.words ?? "its pixel format is not supported"); "
        + "check that it plays, or convert it again"
    default: return nil
    }
  }
}
