internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// Encodes pictures and audio of a graph to packets in order of time: the common part of recording and streaming.
///
/// Pictures keep their packets' times; audio is placed by `SoundTimeline`. Linked audio that does not arrive within the patience becomes
/// silence, and pictures that have not started by then start with a black one. While audio continues without pictures, the last picture is
/// repeated every second, so that a viewer who joins, or the file of a killed process, has one. Blocks; bulk lane; not thread-safe.
///
/// A recording can end at a time at which another begins: each gets the pictures and samples on its side of it.
@safe
final class MediaEncoder {
  /// A node's settings.
  struct Settings {
    var pictures: PictureEncoder.Settings
    var sound: RecordingFormat
    /// Audio bitrate in bit/s; nil: a default for speech.
    var soundBitrate: Int?
    var patience: Nanoseconds
    /// The cure if there is no audio encoder.
    var cure: String
  }

  /// Where a recording begins that does not begin with the first packet.
  struct Beginning {
    var time: Nanoseconds
    /// True if a recording ends there or earlier: of each track, this one receives nothing before it has taken over what that one did not
    /// record.
    var follows: Bool
  }

  let pictures: PictureEncoder
  let sound: AudioEncoder?
  let soundFormat: Format?
  /// Pictures encoded so far.
  private(set) var pictureCount = 0
  /// Since the last call: pictures that were late or incomplete, and late frames of audio.
  private var drops = (pictures: 0, frames: 0)
  /// Anything due at this time or later is not recorded; nil: no limit.
  private(set) var end: Nanoseconds?
  /// The end of what was received, recorded or not; nil before anything arrived.
  private(set) var received: Nanoseconds?
  /// True if a track has reached the end; false as well if all tracks ended before it.
  private(set) var hasReachedEnd = false

  private var tracks: TrackInterleaver
  private var places: SoundTimeline
  private let source: (pixel: PixelType, width: Int, height: Int)
  private let beginning: Beginning?
  /// True if what is due before the beginning and arrives afterwards is too late; false if it was not to be recorded.
  private var countsEarlier = false
  /// The tracks that receive, by their numbers.
  private var isOpen: [Bool]
  /// A picture that is due after the end.
  private var heldPicture: Packet?
  /// Audio that waits for the silence before it, or lies after the end, and how many of its frames were recorded.
  private var held: Packet?
  private var heldFrames = 0
  /// True if more silence has to be inserted than one call may insert.
  private var hasMoreSilence = false
  private var refusal = LibraryMessage()
  private let samples: UnsafeMutableBufferPointer<Float>
  private var firstPicture: Nanoseconds?

  /// How far one track may be ahead of the other; then its link is held back.
  private static let maximumLead = Nanoseconds.milliseconds(10_000)
  /// Interval at which the last picture is repeated.
  private static let longestPicture = Nanoseconds.milliseconds(1_000)
  /// Most silence inserted by one call.
  private static let silencePiece = Nanoseconds.milliseconds(5_000)

  /// Opens the encoders for a node's first two inputs: pictures, and audio if the second is linked.
  init(
    _ settings: Settings, _ inputs: [NodeSetup.Port], from beginning: Beginning? = nil
  ) throws(NodeProblem) {
    guard case .video(let width, let height, let pixel, let rate)? = inputs.first?.shape?.format else {
      throw NodeProblem("the input must be video")
    }
    pictures = try PictureEncoder(settings.pictures, width: width, height: height, rate: rate)
    source = (pixel, width, height)
    let shape = inputs.dropFirst().first?.shape
    soundFormat = shape?.format
    let kind = settings.sound
    if case .pcm(let rate, let channels, _)? = shape?.format {
      sound = try AudioEncoder(
        kind, rate: rate, channels: channels,
        bitrate: settings.soundBitrate ?? kind.channelBitrate * channels,
        keepsSetupApart: true, cure: settings.cure)
    } else {
      sound = nil
    }
    places = SoundTimeline(
      rate: shape?.format.rate ?? 1, from: beginning?.time, countsEarlier: beginning == nil)
    self.beginning = beginning
    isOpen = MediaTrack.allCases.map { _ in beginning?.follows != true }
    unsafe samples = .allocate(capacity: (shape?.frames ?? 0) * (shape?.format.channels ?? 0))
    unsafe samples.initialize(repeating: 0)
    tracks = TrackInterleaver(sound: sound != nil, patience: settings.patience)
  }

  deinit { unsafe samples.deallocate() }

  // MARK: State

  /// When the first picture or sample is due; nil before any arrived.
  var begin: Nanoseconds? {
    guard let firstPicture else { return places.start }
    return min(firstPicture, places.start ?? firstPicture)
  }

  /// The end of what was encoded; nil if nothing was.
  var front: Nanoseconds? {
    let shown = tracks.front(.pictures).map { $0 + pictures.period }
    guard let heard = places.front else { return shown }
    return max(heard, shown ?? heard)
  }

  /// The time up to which something was recorded: the last picture, or the end of the audio if that is later.
  var reached: Nanoseconds? {
    guard let heard = places.front else { return tracks.front(.pictures) ?? beginning?.time }
    return max(heard, tracks.front(.pictures) ?? heard)
  }

  /// Frames of audio, with the silence between them.
  var soundFrames: Int64 { places.written }

  /// The time that corresponds to 0 in the stream: when the first packet is due, including the encoder's delay.
  var origin: Nanoseconds? { tracks.origin }

  /// True if no more input is accepted.
  var isComplete: Bool { !tracks.isRunning(.pictures) && !tracks.isRunning(.sound) }

  /// When no track that is still waited for has delivered anything new for the patience, if nothing arrives until then.
  var stalled: Nanoseconds { tracks.stalled }

  /// Ends the recording at a time, unless it ends earlier.
  func end(at time: Nanoseconds) { end = min(end ?? .max, time) }

  /// Takes and resets the drop counts.
  func takeDropped() -> (pictures: Int, frames: Int) {
    defer { drops = (0, 0) }
    return drops
  }

  /// Takes and resets the time by which audio was moved to stay in sync.
  func takeMoved() -> Nanoseconds { .samples(places.takeMoved(), rate: places.rate) }

  /// When to call again without new packets; nil: only with new packets.
  func nextExpiry(after now: Nanoseconds) -> Nanoseconds? {
    hasMoreSilence ? now : tracks.nextExpiry(after: now)
  }

  /// The library's error message; nil if there is none.
  var words: String? { refusal.text }

  // MARK: Input

  /// Encodes waiting input: all audio, and one picture.
  func take(_ ports: inout Ports) throws(NodeFault) {
    try keepingWords { () throws(NodeFault) in
      if sound != nil, isOpen(.sound), tracks.isRunning(.sound) { try takeSound(&ports) }
      if isOpen(.pictures), tracks.isRunning(.pictures) { try takePicture(&ports) }
    }
  }

  /// Encodes what waits of the tracks that have ended in the recording before this one.
  func take(_ ports: inout Ports, after other: MediaEncoder) throws(NodeFault) {
    for track in MediaTrack.allCases where !other.tracks.isRunning(track) { takeOver(track, from: other) }
    try take(&ports)
  }

  /// Takes over what the recording before this one has received and not recorded, which is complete.
  func takeOver(from other: MediaEncoder) {
    for track in MediaTrack.allCases { takeOver(track, from: other) }
  }

  private func takeOver(_ track: MediaTrack, from other: MediaEncoder) {
    guard !isOpen(track), let beginning else { return }
    isOpen[track.rawValue] = true
    // What is due between two recordings is to be in neither.
    countsEarlier = other.end == beginning.time
    switch track {
    case .pictures: heldPicture = other.heldPicture.take()
    case .sound:
      held = other.held.take()
      heldFrames = other.heldFrames
      places = other.places.continued(at: beginning.time, countsEarlier: countsEarlier)
    }
  }

  private func isOpen(_ track: MediaTrack) -> Bool { isOpen[track.rawValue] }

  /// Records up to which time packets were received.
  private func note(received time: Nanoseconds) { received = max(received ?? .min, time) }

  /// Ends a track at the end of the recording.
  private func reachEnd(_ track: MediaTrack) {
    hasReachedEnd = true
    tracks.end(track)
  }

  /// Keeps the library's message if a call fails.
  private func keepingWords(_ body: () throws(NodeFault) -> Void) throws(NodeFault) {
    millrace_av_clear_log()
    do throws(NodeFault) { try body() } catch {
      refusal.keep()
      throw error
    }
  }

  private func takePicture(_ ports: inout Ports) throws(NodeFault) {
    guard tracks.hasRoom(.pictures, ahead: Self.maximumLead), let packet = heldPicture.take() ?? ports.next(0)
    else {
      if heldPicture == nil, ports.isOver(0) { tracks.end(.pictures) }
      return
    }
    tracks.noteArrival(.pictures, at: ports.now)
    let time = packet.timestamp
    note(received: time)
    if let end, time >= end {
      heldPicture = consume packet
      return reachEnd(.pictures)
    }
    if let beginning, time < beginning.time {
      if countsEarlier { drops.pictures += 1 }
      return
    }
    try encodePicture(packet, at: time)
  }

  private func encodePicture(_ packet: borrowing Packet, at time: Nanoseconds) throws(NodeFault) {
    let bytes = packet.samples(of: UInt8.self)
    // The first picture may precede audio that has started, but not packets that were sent.
    let isLate = tracks.origin.map { time < $0 } ?? false
    guard !isLate, bytes.count >= source.pixel.byteCount(width: source.width, height: source.height) else {
      drops.pictures += 1
      return
    }
    let view = PictureView(bytes, source.pixel, width: source.width, height: source.height)
    guard try pictures.encode(view, at: time, put) else {
      drops.pictures += 1
      return
    }
    noteBegin(time)
    pictureCount += 1
    tracks.note(.pictures, upTo: time)
  }

  private func noteBegin(_ time: Nanoseconds) { if firstPicture == nil { firstPicture = time } }

  private func takeSound(_ ports: inout Ports) throws(NodeFault) {
    while tracks.hasRoom(.sound, ahead: Self.maximumLead) {
      guard let packet = held.take() ?? ports.next(1) else {
        if ports.isOver(1) { tracks.end(.sound) }
        return
      }
      tracks.noteArrival(.sound, at: ports.now)
      switch try write(packet, &ports) {
      case .all: if isSoundFull { return reachEnd(.sound) }
      case .waits: return
      case .isBeyond: return reachEnd(.sound)
      }
    }
  }

  /// What became of a packet of audio.
  private enum Written {
    /// It was recorded, as far as it was not late.
    case all
    /// It is held until the silence before it is written.
    case waits
    /// Its rest is due after the end, and held.
    case isBeyond
  }

  /// Writes a packet at its position.
  private func write(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) -> Written {
    guard case .pcm(let rate, let channels, let sample)? = soundFormat else { return .all }
    let frames = Int(packet.byteCount) / (channels * sample.byteCount)
    let done = heldFrames
    heldFrames = 0
    // Lost audio becomes silence: the next packet's position shows how much.
    guard frames > done else { return .all }
    let time = packet.timestamp &+ .samples(Int64(done), rate: rate)
    note(received: time &+ .samples(Int64(frames - done), rate: rate))
    if places.start == nil, let end, time >= end {
      hold(packet, done)
      return .isBeyond
    }
    let place = places.place(
      frames: frames - done, position: packet.position &+ Int64(done), time: time,
      isNew: done == 0 && packet.flags.contains(.discontinuity))
    let silence = min(place.silence, Self.silencePiece / 1_000_000_000 * Int64(rate), room(.max))
    if silence > 0 {
      try writeSilence(silence)
      places.note(silence)
    }
    guard silence == place.silence else {
      hold(packet, done)
      guard !isSoundFull else { return .isBeyond }
      ports.wake(at: ports.now)
      return .waits
    }
    drops.frames += place.cut
    let count = Int(room(Int64(place.count)))
    let first = frames - place.count
    if count > 0 {
      try write(packet, sample, channels, first..<first + count)
      places.note(Int64(count))
    }
    guard count < place.count else { return .all }
    hold(packet, first + count)
    return .isBeyond
  }

  private func hold(_ packet: consuming Packet, _ done: Int) {
    held = consume packet
    heldFrames = done
  }

  /// True if the audio has reached the end.
  private var isSoundFull: Bool { end != nil && room(1) == 0 }

  /// How many of these frames lie before the end.
  private func room(_ count: Int64) -> Int64 {
    guard let end, let front = places.front else { return count }
    let left = Int64((Double(max(0, end - front)) * Double(places.rate) / 1e9).rounded())
    return min(count, left)
  }

  private func write(
    _ packet: borrowing Packet, _ sample: SampleType, _ channels: Int, _ frames: Range<Int>
  ) throws(NodeFault) {
    let range = frames.lowerBound * channels..<frames.upperBound * channels
    switch sample {
    case .s16:
      let source = packet.samples(of: Int16.self).extracting(range)
      for index in source.indices { unsafe samples[index] = Float(source[index]) / 0x1p15 }
    case .f32:
      let source = packet.samples(of: Float.self).extracting(range)
      for index in source.indices {
        // NaN becomes silence; encoders accept nothing beyond full scale.
        let value = source[index]
        unsafe samples[index] = value == value ? max(-1, min(1, value)) : 0
      }
    }
    unsafe try sound?.write(Span(_unsafeElements: samples[..<range.count]), putSound)
  }

  private func writeSilence(_ frames: Int64) throws(NodeFault) {
    unsafe try sound?.writeSilence(frames, putSound)
  }

  private func put(_ packet: EncodedPacket) throws(NodeFault) { tracks.put(packet) }

  private func putSound(_ packet: UnsafeMutablePointer<AVPacket>) throws(NodeFault) {
    let (place, length) = unsafe (packet.pointee.pts, packet.pointee.duration)
    let time = (places.start ?? 0) + .samples(place, rate: places.rate)
    unsafe tracks.put(EncodedPacket(.sound, at: time, moving: packet))
    tracks.note(.sound, upTo: time + .samples(length, rate: places.rate))
  }

  // MARK: Output

  /// Fills in tracks whose patience has expired, and passes on every packet that may leave.
  func release(
    at now: Nanoseconds, _ body: (EncodedPacket) throws(NodeFault) -> Void
  ) throws(NodeFault) {
    try keepingWords { () throws(NodeFault) in try fill(at: now) }
    while let packet = tracks.next() { try body(packet) }
  }

  /// Fills in tracks whose patience has expired.
  private func fill(at now: Nanoseconds) throws(NodeFault) {
    tracks.look(at: now)
    try fillSilence(upTo: tracks.abandonedUntil(.sound))
    let expired = tracks.abandonedUntil(.pictures)
    if tracks.front(.pictures) == nil, tracks.isRunning(.pictures), let start = places.start, start <= expired
    {
      try pictures.encodeBlack(at: start, put)
      noteBegin(start)
      tracks.note(.pictures, upTo: start)
    }
    try repeatPicture(expired)
  }

  private func repeatPicture(_ expired: Nanoseconds) throws(NodeFault) {
    guard let heard = places.front else { return }
    let known = tracks.isRunning(.pictures) ? min(expired, heard) : heard
    while let shown = tracks.front(.pictures), shown + Self.longestPicture <= min(known, (end ?? .max) - 1) {
      try pictures.encodeAgain(at: shown + Self.longestPicture, put)
      tracks.note(.pictures, upTo: shown + Self.longestPicture)
    }
  }

  private func fillSilence(upTo expired: Nanoseconds) throws(NodeFault) {
    hasMoreSilence = false
    guard sound != nil, tracks.isRunning(.sound), let begin, expired > begin else { return }
    places.begin(at: begin)
    // After a jump of the pictures' times that may be hours.
    let target = min(expired, end ?? .max)
    let piece = min(target, (places.front ?? begin) + Self.silencePiece)
    hasMoreSilence = piece < target
    try writeSilence(places.fill(to: piece))
    if isSoundFull { reachEnd(.sound) }
  }

  /// Flushes the encoders and passes on the rest.
  func finish(_ body: (EncodedPacket) throws(NodeFault) -> Void) throws(NodeFault) {
    try keepingWords { () throws(NodeFault) in try finishEncoders() }
    tracks.end(.pictures)
    tracks.end(.sound)
    while let packet = tracks.next() { try body(packet) }
  }

  private func finishEncoders() throws(NodeFault) {
    if tracks.front(.pictures) == nil, let start = places.start {
      try pictures.encodeBlack(at: start, put)
      noteBegin(start)
    }
    if pictureCount > 0 || firstPicture != nil { try pictures.finish(put) }
    if places.written > 0 { unsafe try sound?.finish(putSound) }
  }
}
