internal import MillraceCore
internal import MillraceRTCWire

/// What the media of a session report, within their calls.
protocol SessionMediaObserver: AnyObject {
  /// Sends a packet of `count` bytes, with room for protection behind it.
  func mediaSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool)
  func mediaReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>)
  func mediaReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>)
  func mediaReceived(_ tone: ReceivedTone)
  func mediaEnded(_ ssrc: UInt32, reason: String?)
  /// A source is over, also one of which nothing was heard.
  func mediaLeft(_ ssrc: UInt32)
  func mediaWantsKeyFrame()
  /// Bits a second that the encoders of sound and pictures may make.
  func mediaAllocated(sound: Int, video: Int)
}

/// Sound and pictures of a session, and what they share: one sequence of numbers, one estimate of what the network carries.
///
/// Packets belong to the medium of their payload type, which a bundle has only once (RFC 9143 section 10.1.1). Sans-IO; one thread; no heap
/// request for a packet.
@safe
final class SessionMedia {
  /// Datagrams of feedback at once: after a burst of loss one may not have room for everything.
  private static let mostFeedback = 8

  private weak var observer: (any SessionMediaObserver)?
  private var sound: SoundEngine?
  private var video: VideoEngine?
  private var congestion: CongestionControl?
  private let source: LocalSource
  private let hasReducedSizeRTCP: Bool
  private var refused = 0
  private var remb: [UInt32] = []
  /// The time that the last `run` returned.
  private var nextRun: Nanoseconds?
  private let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SoundSender.packetBytes + SRTPContext.trailer, alignment: 8)

  /// Creates the media that were agreed on.
  /// - Parameters:
  ///   - sound: the agreement, and the source of this side.
  ///   - soundBitrate: bits a second that sound may take.
  init(
    sound: (media: AgreedMedia, source: LocalSource)?, video: (media: AgreedMedia, source: LocalSource)?,
    soundBitrate: ClosedRange<Int>, videoBitrate: ClosedRange<Int>, seed: UInt64, at now: Nanoseconds,
    observer: any SessionMediaObserver
  ) {
    self.observer = observer
    source = video?.source ?? sound?.source ?? LocalSource(ssrc: 1, cname: "")
    hasReducedSizeRTCP = [sound?.media, video?.media].allSatisfy { $0?.hasReducedSizeRTCP ?? true }
    remb.reserveCapacity(VideoEngine.sources)
    var settings = CongestionControl.Settings(sender: source.ssrc)
    for media in [sound?.media, video?.media].compactMap({ $0 }) {
      settings.transportSequence = settings.transportSequence ?? media.identifiers.transportSequence
      settings.readsFeedback = settings.readsFeedback || media.readsFeedback(.transportCC)
      settings.sendsFeedback = settings.sendsFeedback || media.sendsFeedback(.transportCC)
    }
    if settings.transportSequence == nil { (settings.readsFeedback, settings.sendsFeedback) = (false, false) }
    settings.absoluteSendTime = video?.media.identifiers.absoluteSendTime
    settings.sendsREMB = !settings.sendsFeedback && (video?.media.sendsFeedback(.remb) ?? false)
    if let sound, sound.media.direction.sends { settings.sound = soundBitrate }
    if let video, video.media.direction.sends { settings.video = videoBitrate }
    if settings.video == nil, let sound { settings.reported = sound.source.ssrc }
    let congestion = CongestionControl(settings, sequence: UInt16(truncatingIfNeeded: seed >> 16) & 0x7FFF)
    self.congestion = congestion
    if let sound {
      self.sound = SoundEngine(
        sound.media, source: sound.source, seed: seed, at: now, congestion: congestion, observer: self)
    }
    if let video {
      self.video = VideoEngine(
        video.media, source: video.source, largestBitrate: videoBitrate.upperBound,
        seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 1, at: now, congestion: congestion, observer: self)
    }
  }

  deinit { unsafe packet.deallocate() }

  /// The codecs that are sent; nil: none is.
  var soundCodec: RTPCodec? { sound?.codec }
  var pictureCodec: RTPCodec? { video?.codec }

  // MARK: Sending

  func send(
    sound payload: Span<UInt8>, duration: Int, pause: Int, level: RTPAudioLevel?, at now: Nanoseconds
  ) { sound?.send(payload, duration: duration, pause: pause, level: level, at: now) }

  /// True: packets wait for their turn, so `run` is to be called at the time that it returns.
  func send(picture: Span<UInt8>, isKey: Bool, captured: Nanoseconds, at now: Nanoseconds) -> Bool {
    guard let video else { return false }
    video.send(picture, isKey: isKey, captured: captured, at: now)
    return video.isWaiting
  }

  func send(tones: String, milliseconds: Int, gap: Int, at now: Nanoseconds) -> Bool {
    sound?.send(tones: tones, milliseconds: milliseconds, gap: gap, at: now) ?? false
  }

  func requestKeyFrame(at now: Nanoseconds) { video?.requestKeyFrame(at: now) }

  // MARK: Receiving

  /// Handles a packet, decrypted. True: `run` is to be called, because something is due earlier than it has said.
  func take(_ bytes: Span<UInt8>, isRTCP: Bool, at now: Nanoseconds) -> Bool {
    if isRTCP { take(reports: bytes, at: now) } else { take(packet: bytes, at: now) }
    var earliest = congestion?.feedbackDeadline
    if let due = video?.deadline { earliest = min(earliest ?? due, due) }
    guard let time = earliest, time < nextRun ?? .max else { return false }
    nextRun = time
    return true
  }

  private func take(packet bytes: Span<UInt8>, at now: Nanoseconds) {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: bytes) } catch { return refused += 1 }
    if let video, video.takes(header.payloadType) {
      congestion?.note(received: header, in: bytes, isVideo: true, at: now)
      video.take(header, bytes, at: now)
    } else if let sound {
      congestion?.note(received: header, in: bytes, isVideo: false, at: now)
      sound.take(header, bytes, at: now)
    } else {
      refused += 1
    }
  }

  /// What is behind something that cannot be skipped is not read.
  private func take(reports bytes: Span<UInt8>, at now: Nanoseconds) {
    var reader = RTCPReader(bytes)
    while true {
      do throws(RTCPProblem) {
        guard let packet = try reader.next() else { break }
        sound?.take(packet, at: now)
        video?.take(packet, at: now)
        congestion?.take(packet, at: now)
      } catch {
        refused += 1
        guard error.canReadNext else { break }
      }
    }
    if let time = roundTrip {
      congestion?.note(roundTrip: time)
      video?.note(roundTrip: time)
    }
    allocate()
  }

  /// From here to the peer and back; nil: not known yet.
  private var roundTrip: Nanoseconds? { sound?.roundTrip ?? video?.roundTrip }

  private func allocate() {
    guard let share = congestion?.takeAllocation() else { return }
    observer?.mediaAllocated(sound: share.sound, video: share.video)
  }

  // MARK: Time

  /// Sends what is due. Returns when to be called again.
  func run(at now: Nanoseconds) -> Nanoseconds? {
    let times = (sound?.run(at: now), video?.run(at: now))
    sendFeedback(at: now)
    var earliest = congestion?.run(at: now)
    allocate()
    if let due = times.0 { earliest = min(earliest ?? due, due) }
    if let due = times.1 { earliest = min(earliest ?? due, due) }
    nextRun = earliest
    return earliest
  }

  /// Says that this side ends.
  func end(at now: Nanoseconds) {
    sound?.end(at: now)
    video?.end(at: now)
  }

  private func sendFeedback(at now: Nanoseconds) {
    guard let congestion else { return }
    var datagrams = 0
    var hasMore = congestion.hasFeedback(at: now)
    while hasMore, datagrams < Self.mostFeedback {
      hasMore = sendFeedback(congestion, at: now)
      datagrams += 1
    }
    guard let video, video.hasSources, let rate = congestion.takeREMB(at: now) else { return }
    remb.removeAll(keepingCapacity: true)
    video.appendSources(to: &remb)
    sendREMB(UInt64(max(0, rate)))
  }

  /// Sends a datagram of transport-wide feedback. True: there is more.
  private func sendFeedback(_ congestion: CongestionControl, at now: Nanoseconds) -> Bool {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    var hasMore = false
    do throws(RTCPProblem) {
      try begin(&writer)
      hasMore = try congestion.writeFeedback(into: &writer, at: now)
    } catch {
      refused += 1
      return false
    }
    unsafe observer?.mediaSends(packet, count: writer.count, isRTCP: true)
    return hasMore
  }

  private func sendREMB(_ rate: UInt64) {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) {
      try begin(&writer)
      try writer.bitrateEstimate(sender: source.ssrc, bitrate: rate, sources: remb.span)
    } catch { return refused += 1 }
    unsafe observer?.mediaSends(packet, count: writer.count, isRTCP: true)
  }

  /// What has to stand in front of feedback (RFC 4585 section 3.1), unless the peer takes it alone.
  private func begin(_ writer: inout RTCPWriter) throws(RTCPProblem) {
    guard !hasReducedSizeRTCP else { return }
    try writer.receiverReport(ssrc: source.ssrc)
    try writer.sourceDescription(ssrc: source.ssrc, canonicalName: source.cname)
  }

  /// Counts since the beginning, but for those of the transport.
  var statistics: RTCStatistics {
    var all = RTCStatistics()
    if let sound { all.sound = sound.statistics }
    if let video { all.video = video.statistics }
    // What nobody could read.
    all.sound.refused += refused
    all.sendBitrate = congestion?.estimate ?? 0
    all.roundTrip = roundTrip
    return all
  }
}

extension SessionMedia: SoundObserver {
  func soundSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    unsafe observer?.mediaSends(packet, count: count, isRTCP: isRTCP)
  }
  func soundReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    observer?.mediaReceived(sound, payload)
  }
  func soundReceived(_ tone: ReceivedTone) { observer?.mediaReceived(tone) }
  func sourceLeft(_ ssrc: UInt32) { observer?.mediaLeft(ssrc) }

  func soundEnded(_ ssrc: UInt32, reason: String?) { observer?.mediaEnded(ssrc, reason: reason) }
}

extension SessionMedia: VideoObserver {
  func videoSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    unsafe observer?.mediaSends(packet, count: count, isRTCP: isRTCP)
  }
  func videoReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    observer?.mediaReceived(picture, bytes)
  }
  func videoEnded(_ ssrc: UInt32, reason: String?) { observer?.mediaEnded(ssrc, reason: reason) }
  func videoWantsKeyFrame() { observer?.mediaWantsKeyFrame() }
}
