internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// Pictures and sound of a graph as encoded packets in the order of their times: what recording and sending have in common.
///
/// Pictures go by their packets' times; sound as `SoundPlaces` says; what a linked sound does not bring within the patience is
/// silence, and pictures that have not begun by then begin with a black one. While sound goes on without pictures, the last is given
/// again every second: whoever joins, or finds the file of a killed process, has one. Blocks; bulk lane; one thread at a time.
@safe
final class FilmEncoder {
  /// What a node asks for.
  struct Settings {
    var pictures: PictureEncoder.Settings
    var sound: RecordingFormat
    /// Bits a second of the sound; nil: as many as speech takes.
    var soundBitrate: Int?
    var patience: Nanoseconds
    /// What to do without an encoder for the sound.
    var cure: String
  }

  let pictures: PictureEncoder
  let sound: AudioEncoder?
  let soundFormat: Format?
  /// Pictures that were encoded.
  private(set) var pictureCount = 0
  /// Pictures that came too late, or had too few bytes, and frames of sound that came too late, since the last look.
  private var leftOut = (pictures: 0, frames: 0)
  /// Nothing due at this time or later is taken; nil: no end.
  var end: Nanoseconds?

  private var tracks: FilmTracks
  private var places: SoundPlaces
  private let source: (pixel: PixelType, width: Int, height: Int)
  private var held: Packet?
  /// There is more silence to put in than one call may.
  private var owesSilence = false
  private var refusal = LibraryMessage()
  private let samples: UnsafeMutableBufferPointer<Float>
  private var firstPicture: Nanoseconds?

  /// How far one track is read ahead of the other, which its links hold back then.
  private static let mostAhead = Nanoseconds.milliseconds(10_000)
  /// Time after which a picture is given again.
  private static let longestPicture = Nanoseconds.milliseconds(1_000)
  /// Most silence put in by one call.
  private static let silencePiece = Nanoseconds.milliseconds(5_000)

  /// Opens the encoders for what the first two inputs of a node carry: pictures, and sound where the second is linked.
  init(_ settings: Settings, _ inputs: [NodeSetup.Port]) throws(NodeProblem) {
    guard case .video(let width, let height, let pixel, let rate)? = inputs.first?.shape?.format else {
      throw NodeProblem("pictures are needed")
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
    places = SoundPlaces(rate: shape?.format.rate ?? 1)
    unsafe samples = .allocate(capacity: (shape?.frames ?? 0) * (shape?.format.channels ?? 0))
    unsafe samples.initialize(repeating: 0)
    tracks = FilmTracks(sound: sound != nil, patience: settings.patience)
  }

  deinit { unsafe samples.deallocate() }

  // MARK: What is known

  /// When the first picture or sample is due; nil before anything came.
  var begin: Nanoseconds? {
    guard let firstPicture else { return places.start }
    return min(firstPicture, places.start ?? firstPicture)
  }

  /// Up to when there is anything; nil before.
  var front: Nanoseconds? {
    let shown = tracks.front(.pictures).map { $0 + pictures.period }
    guard let heard = places.front else { return shown }
    return max(heard, shown ?? heard)
  }

  /// The time that counts as the stream's 0: when the first packet is due, which may carry an encoder's delay.
  var origin: Nanoseconds? { tracks.origin }

  /// True when nothing more is taken.
  var isComplete: Bool { !tracks.isRunning(.pictures) && !tracks.isRunning(.sound) }

  /// Takes the counts of what was left out.
  func takeLeftOut() -> (pictures: Int, frames: Int) {
    defer { leftOut = (0, 0) }
    return leftOut
  }

  /// Takes the time by which sound was moved to stay with the pictures.
  func takeMoved() -> Nanoseconds { .samples(places.takeMoved(), rate: places.rate) }

  /// When to look again, without new packets; nil: only with them.
  func nextExpiry(after now: Nanoseconds) -> Nanoseconds? {
    owesSilence ? now : tracks.nextExpiry(after: now)
  }

  /// What the library said when it refused; nil when it said nothing.
  var words: String? { refusal.text }

  // MARK: In

  /// Encodes what waits: all sound, and one picture.
  func take(_ ports: inout Ports) throws(NodeFault) {
    try keepingWords { () throws(NodeFault) in
      if sound != nil, tracks.isRunning(.sound) { try takeSound(&ports) }
      if tracks.isRunning(.pictures) { try takePicture(&ports) }
    }
  }

  /// Keeps what the library says to a call that fails.
  private func keepingWords(_ body: () throws(NodeFault) -> Void) throws(NodeFault) {
    millrace_av_clear_log()
    do throws(NodeFault) { try body() } catch {
      refusal.keep()
      throw error
    }
  }

  private func takePicture(_ ports: inout Ports) throws(NodeFault) {
    guard tracks.hasRoom(.pictures, ahead: Self.mostAhead), let packet = ports.next(0) else {
      if ports.isOver(0) { tracks.end(.pictures) }
      return
    }
    tracks.noteArrival(.pictures, at: ports.now)
    let time = packet.timestamp
    if let end, time >= end { return tracks.end(.pictures) }
    let bytes = packet.samples(of: UInt8.self)
    // The first picture may be earlier than sound that began, never than what has left.
    let isLate = tracks.origin.map { time < $0 } ?? false
    guard !isLate, bytes.count >= source.pixel.byteCount(width: source.width, height: source.height) else {
      leftOut.pictures += 1
      return
    }
    let view = PictureView(bytes, source.pixel, width: source.width, height: source.height)
    guard try pictures.encode(view, at: time, put) else {
      leftOut.pictures += 1
      return
    }
    noteBegin(time)
    pictureCount += 1
    tracks.note(.pictures, upTo: time)
  }

  private func noteBegin(_ time: Nanoseconds) { if firstPicture == nil { firstPicture = time } }

  private func takeSound(_ ports: inout Ports) throws(NodeFault) {
    while tracks.hasRoom(.sound, ahead: Self.mostAhead) {
      guard let packet = held.take() ?? ports.next(1) else {
        if ports.isOver(1) { tracks.end(.sound) }
        return
      }
      tracks.noteArrival(.sound, at: ports.now)
      guard try write(packet, &ports) else { return }
      if let end, let front = places.front, front >= end { return tracks.end(.sound) }
    }
  }

  /// Writes a packet at its place; false when there is more silence before it than one call writes.
  private func write(_ packet: consuming Packet, _ ports: inout Ports) throws(NodeFault) -> Bool {
    guard case .pcm(let rate, let channels, let sample)? = soundFormat else { return true }
    let frames = Int(packet.byteCount) / (channels * sample.byteCount)
    // What was lost is silence: the next packet's position tells how much.
    guard frames > 0 else { return true }
    let place = places.place(
      frames: frames, position: packet.position, time: packet.timestamp,
      isNew: packet.flags.contains(.discontinuity))
    let silence = min(place.silence, Self.silencePiece / 1_000_000_000 * Int64(rate), room(.max))
    if silence > 0 {
      try writeSilence(silence)
      places.note(silence)
    }
    if silence < place.silence, room(1) > 0 {
      held = consume packet
      ports.wake(at: ports.now)
      return false
    }
    leftOut.frames += place.cut
    let count = Int(room(Int64(place.count)))
    guard count > 0 else { return true }
    let first = frames - place.count
    try write(packet, sample, channels, first..<first + count)
    places.note(Int64(count))
    return true
  }

  /// Frames of so many that lie before the end.
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
        // Not a number is silence; encoders take nothing beyond full scale.
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

  // MARK: Out

  /// Puts in what the patience has ended for, and hands on every packet whose turn it is.
  func release(
    at now: Nanoseconds, _ body: (EncodedPacket) throws(NodeFault) -> Void
  ) throws(NodeFault) {
    try keepingWords { () throws(NodeFault) in try fill(at: now) }
    while let packet = tracks.next() { try body(packet) }
  }

  /// Puts in what the patience has ended for.
  private func fill(at now: Nanoseconds) throws(NodeFault) {
    tracks.look(at: now)
    try fillSilence(upTo: tracks.givenUp(.sound))
    let expired = tracks.givenUp(.pictures)
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
    owesSilence = false
    guard sound != nil, tracks.isRunning(.sound), let begin, expired > begin else { return }
    places.begin(at: begin)
    // After a leap of the pictures' times that may be hours.
    let target = min(expired, end ?? .max)
    let piece = min(target, (places.front ?? begin) + Self.silencePiece)
    owesSilence = piece < target
    try writeSilence(places.fill(to: piece))
    if let end, let front = places.front, front >= end { tracks.end(.sound) }
  }

  /// Ends the encoders and hands on all that is left.
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
