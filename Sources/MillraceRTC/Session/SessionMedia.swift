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
  func mediaWantsKeyFrame(medium: Int)
  /// Bits a second that one encoder of sound and one of pictures may make.
  func mediaAllocated(sound: Int, video: Int)
}

/// Sound and pictures of a session, in any number, and what they share: one sequence of numbers, one estimate of what the network
/// carries.
///
/// A packet belongs to the kind of its payload type, which a bundle has only once (RFC 9143 section 10.1.1), and among media of a kind to
/// the one that `MediaRoutes` says. Reports of the peer go to all media: each knows its own sources. Sans-IO; one thread; no heap request
/// for a packet.
final class SessionMedia {
  private struct Medium {
    let line: MediaLine
    var sound: SoundEngine?
    var video: VideoEngine?
    /// When it was given something to send.
    var sentAt: Nanoseconds?
    var roundTrip: Nanoseconds?
  }

  /// Sources that may leave in one datagram, which has room for 280: as many as `EndedSources` keeps. Others are silent from now on.
  private static let mostLeaving = 64
  /// Datagrams of feedback at once: after a burst of loss one may not have room for everything.
  private static let mostFeedback = 8
  /// A medium that was given nothing for this long has no part of what the network carries.
  private static let idleAfter: Nanoseconds = .milliseconds(3_000)
  /// However many media receive, each takes some sources, since one may replace another.
  private static let fewestSources = (sound: 4, video: 2)

  private weak var observer: (any SessionMediaObserver)?
  private var media: [Medium] = []
  private var soundRoutes = MediaRoutes()
  private var videoRoutes = MediaRoutes()
  /// Payload types of pictures, 128 of them.
  private var pictureTypes = [Bool](repeating: false, count: 128)
  /// The first media that send.
  private var firstSound: Int?
  private var firstVideo: Int?
  private let rates: MediaRates
  private let largestVideoBitrate: Int
  private let seed: UInt64
  private let congestion: CongestionControl
  private let feedback: SessionFeedback
  /// What is sent on, and not encoded here.
  private var forwarded = ForwardedRate()
  private var refused = 0
  private var remb: [UInt32] = []
  /// The latest times to the peer and back.
  private var roundTrips: (sound: Nanoseconds?, video: Nanoseconds?) = (nil, nil)
  /// The time that the last `run` returned.
  private var nextRun: Nanoseconds?

  /// Creates the media that were agreed on, in the order of their m-lines.
  /// - Parameters:
  ///   - soundBitrate: bits a second that the sound of one medium may take.
  ///   - videoBitrate: bits a second that the pictures of one medium may take.
  init(
    _ lines: [MediaLine], soundBitrate: ClosedRange<Int>, videoBitrate: ClosedRange<Int>, seed: UInt64,
    at now: Nanoseconds, observer: any SessionMediaObserver
  ) {
    self.observer = observer
    self.seed = seed
    let first = lines.first { $0.kind == .video } ?? lines.first
    let source = first?.source ?? LocalSource(ssrc: 1, cname: "")
    feedback = SessionFeedback(
      source, hasReducedSizeRTCP: lines.allSatisfy { $0.media.hasReducedSizeRTCP })
    let rates = MediaRates(sound: soundBitrate, video: videoBitrate)
    self.rates = rates
    largestVideoBitrate = videoBitrate.upperBound
    congestion = CongestionControl(
      rates.settings(lines, sender: source.ssrc), sequence: UInt16(truncatingIfNeeded: seed >> 16) & 0x7FFF)
    append(lines, at: now)
  }

  /// Adds media that were agreed on later, behind those that there are.
  func add(_ lines: [MediaLine], at now: Nanoseconds) {
    guard !lines.isEmpty else { return }
    // While there was one medium of a kind, nobody had to know which source is whose.
    for index in media.indices {
      var known: [UInt32] = []
      media[index].sound?.appendSources(to: &known)
      for ssrc in known { soundRoutes.learn(ssrc, as: index, at: now) }
      known = []
      media[index].video?.appendSources(to: &known)
      for ssrc in known { videoRoutes.learn(ssrc, as: index, at: now) }
    }
    append(lines, at: now)
    rates.extend(congestion, by: media.map { $0.line })
  }

  private func append(_ lines: [MediaLine], at now: Nanoseconds) {
    let all = media.map { $0.line } + lines
    func receiving(_ kind: MediaKind) -> Int {
      max(1, all.count(where: { $0.kind == kind && $0.media.direction.receives }))
    }
    let most = (
      sound: max(Self.fewestSources.sound, SoundEngine.sources / receiving(.audio)),
      video: max(Self.fewestSources.video, VideoEngine.sources / receiving(.video))
    )
    for line in lines {
      if line.kind == .audio {
        appendSound(line, mostSources: most.sound, at: now)
      } else {
        appendVideo(line, mostSources: most.video, at: now)
      }
    }
    remb.reserveCapacity(VideoEngine.sources * 2)
  }

  private func appendSound(_ line: MediaLine, mostSources: Int, at now: Nanoseconds) {
    let (index, before) = (media.count, media.count(where: { $0.sound != nil }))
    let engine = SoundEngine(
      line.media, medium: index, source: line.source, mostSources: mostSources, isQuiet: before > 0,
      seed: seed &+ UInt64(before) &* 0xBF58_476D_1CE4_E5B9, at: now, congestion: congestion, observer: self)
    if engine.codec != nil { firstSound = firstSound ?? index }
    media.append(Medium(line: line, sound: engine))
    soundRoutes.add(line.media, as: index, at: now)
  }

  private func appendVideo(_ line: MediaLine, mostSources: Int, at now: Nanoseconds) {
    let (index, before) = (media.count, media.count(where: { $0.video != nil }))
    let engine = VideoEngine(
      line.media, medium: index, source: line.source, mostSources: mostSources, isQuiet: before > 0,
      largestBitrate: largestVideoBitrate,
      seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 1 &+ UInt64(before) &* 0xBF58_476D_1CE4_E5B9, at: now,
      congestion: congestion, observer: self)
    if engine.codec != nil { firstVideo = firstVideo ?? index }
    for type in pictureTypes.indices where engine.takes(UInt8(type)) { pictureTypes[type] = true }
    media.append(Medium(line: line, video: engine))
    videoRoutes.add(line.media, as: index, at: now)
  }

  /// The media, in the order of their numbers.
  var shown: [SessionMedium] { media.map { $0.line.shown } }

  /// The codecs that are sent first; nil: none is.
  var soundCodec: RTPCodec? { sound(firstSound)?.codec }
  var pictureCodec: RTPCodec? { video(firstVideo)?.codec }

  private func sound(_ medium: Int?) -> SoundEngine? {
    guard let medium, medium >= 0, medium < media.count else { return nil }
    return media[medium].sound
  }

  private func video(_ medium: Int?) -> VideoEngine? {
    guard let medium, medium >= 0, medium < media.count else { return nil }
    return media[medium].video
  }

  // MARK: Sending

  /// Sends sound on a medium; nil: the first that sends.
  func send(
    sound payload: Span<UInt8>, duration: Int, pause: Int, level: RTPAudioLevel?, on medium: Int? = nil,
    at now: Nanoseconds
  ) {
    guard let index = medium ?? firstSound, let sound = sound(index) else { return }
    noteSent(on: index, at: now)
    sound.send(payload, duration: duration, pause: pause, level: level, at: now)
  }

  /// Sends sound of another session on.
  func forward(_ sound: ReceivedSound, _ payload: Span<UInt8>, on medium: Int, at now: Nanoseconds) {
    guard let engine = self.sound(medium) else { return }
    noteSent(on: medium, at: now)
    forwarded.note(payload.count, at: now)
    engine.forward(sound, payload, at: now)
  }

  /// Sends a picture on a medium; nil: the first that sends. True: packets wait for their turn, so `run` is to be called at the time that
  /// it returns.
  func send(
    picture: Span<UInt8>, isKey: Bool, captured: Nanoseconds, on medium: Int? = nil, at now: Nanoseconds
  ) -> Bool {
    guard let index = medium ?? firstVideo, let video = video(index) else { return false }
    noteSent(on: index, at: now)
    countWaiting(with: index)
    video.send(picture, isKey: isKey, captured: captured, at: now)
    return video.isWaiting
  }

  private func noteSent(on medium: Int, at now: Nanoseconds) {
    if media[medium].line.media.direction.sends { media[medium].sentAt = now }
  }

  /// Lets the media that wait share the pace, and with them one that is about to.
  private func countWaiting(with medium: Int? = nil) {
    var count = 0
    for index in media.indices {
      let waits = media[index].video?.isWaiting ?? false
      if waits || index == medium { count += 1 }
    }
    congestion.waiting = count
  }

  func send(tones: String, milliseconds: Int, gap: Int, at now: Nanoseconds) -> Bool {
    sound(firstSound)?.send(tones: tones, milliseconds: milliseconds, gap: gap, at: now) ?? false
  }

  /// Asks the sources of a medium for a key frame; nil: those of all.
  func requestKeyFrame(medium: Int? = nil, at now: Nanoseconds) {
    for index in media.indices where medium == nil || medium == index {
      media[index].video?.requestKeyFrame(at: now)
    }
  }

  // MARK: Receiving

  /// Handles a packet, decrypted. True: `run` is to be called, because something is due earlier than it has said.
  func take(_ bytes: Span<UInt8>, isRTCP: Bool, at now: Nanoseconds) -> Bool {
    var earliest: Nanoseconds?
    if isRTCP {
      take(reports: bytes, at: now)
      for index in media.indices { Self.advance(&earliest, media[index].video?.deadline) }
    } else {
      earliest = take(packet: bytes, at: now)
    }
    Self.advance(&earliest, congestion.feedbackDeadline)
    guard let time = earliest, time < nextRun ?? .max else { return false }
    nextRun = time
    return true
  }

  /// Returns when the medium of the packet has something to do.
  private func take(packet bytes: Span<UInt8>, at now: Nanoseconds) -> Nanoseconds? {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: bytes) } catch {
      refused += 1
      return nil
    }
    let isVideo = pictureTypes[Int(header.payloadType & 0x7F)]
    // It has come, whatever source it belongs to.
    congestion.note(received: header, in: bytes, isVideo: isVideo, at: now)
    let medium =
      isVideo
      ? videoRoutes.medium(of: header, in: bytes, at: now)
      : soundRoutes.medium(of: header, in: bytes, at: now)
    guard let medium else {
      refused += 1
      return nil
    }
    media[medium].sound?.take(header, bytes, at: now)
    guard let video = media[medium].video else { return nil }
    video.take(header, bytes, at: now)
    return video.deadline
  }

  /// What is behind something that cannot be skipped is not read.
  private func take(reports bytes: Span<UInt8>, at now: Nanoseconds) {
    var reader = RTCPReader(bytes)
    var left = 0
    while true {
      do throws(RTCPProblem) {
        guard let packet = try reader.next() else { break }
        take(packet, &left, at: now)
      } catch {
        refused += 1
        guard error.canReadNext else { break }
      }
    }
    noteRoundTrips()
    if let time = roundTrip {
      congestion.note(roundTrip: time)
      for index in media.indices { media[index].video?.note(roundTrip: time) }
    }
    allocate(at: now)
  }

  /// - Parameter left: sources that have left in the datagram so far.
  private func take(_ packet: RTCPPacket, _ left: inout Int, at now: Nanoseconds) {
    switch packet {
    case .goodbye(let goodbye):
      let reason = goodbye.reasonText
      for index in 0..<goodbye.count where left < Self.mostLeaving {
        left += 1
        leave(goodbye[index], reason: reason, at: now)
      }
    default:
      for index in media.indices {
        media[index].sound?.take(packet, at: now)
        media[index].video?.take(packet, at: now)
      }
      congestion.take(packet, at: now)
    }
  }

  /// A source is over, in whatever medium it was.
  private func leave(_ ssrc: UInt32, reason: String?, at now: Nanoseconds) {
    for index in media.indices {
      media[index].sound?.leave(ssrc, reason: reason, at: now)
      media[index].video?.leave(ssrc, reason: reason, at: now)
    }
    sourceLeft(ssrc)
  }

  /// From here to the peer and back; nil: not known yet.
  private var roundTrip: Nanoseconds? { roundTrips.sound ?? roundTrips.video }

  /// Of several media of a kind the one that was measured last counts.
  private func noteRoundTrips() {
    for index in media.indices {
      let isSound = media[index].sound != nil
      let time = isSound ? media[index].sound?.roundTrip : media[index].video?.roundTrip
      guard time != media[index].roundTrip else { continue }
      media[index].roundTrip = time
      if isSound { roundTrips.sound = time } else { roundTrips.video = time }
    }
  }

  private func allocate(at now: Nanoseconds) {
    var (sounds, videos) = (0, 0)
    for index in media.indices {
      guard let sentAt = media[index].sentAt, now &- sentAt < Self.idleAfter else { continue }
      if media[index].sound != nil { sounds += 1 } else { videos += 1 }
    }
    let sent = forwarded.bitrate(at: now)
    guard let share = congestion.takeAllocation(sounds: sounds, videos: videos, soundSent: sent) else {
      return
    }
    observer?.mediaAllocated(sound: share.sound, video: share.video)
  }

  // MARK: Time

  /// Sends what is due. Returns when to be called again.
  func run(at now: Nanoseconds) -> Nanoseconds? {
    var earliest: Nanoseconds?
    countWaiting()
    for index in media.indices {
      Self.advance(&earliest, media[index].sound?.run(at: now))
      Self.advance(&earliest, media[index].video?.run(at: now))
    }
    sendFeedback(at: now)
    Self.advance(&earliest, congestion.run(at: now))
    allocate(at: now)
    nextRun = earliest
    return earliest
  }

  private static func advance(_ earliest: inout Nanoseconds?, _ time: Nanoseconds?) {
    if let time { earliest = min(earliest ?? time, time) }
  }

  /// Says that this side ends.
  func end(at now: Nanoseconds) {
    for index in media.indices {
      media[index].sound?.end(at: now)
      media[index].video?.end(at: now)
    }
  }

  private func sendFeedback(at now: Nanoseconds) {
    var datagrams = 0
    var hasMore = congestion.hasFeedback(at: now)
    while hasMore, datagrams < Self.mostFeedback {
      guard let written = feedback.transport(congestion, at: now) else {
        refused += 1
        break
      }
      unsafe observer?.mediaSends(feedback.packet, count: written.count, isRTCP: true)
      hasMore = written.hasMore
      datagrams += 1
    }
    remb.removeAll(keepingCapacity: true)
    for index in media.indices { media[index].video?.appendSources(to: &remb) }
    guard !remb.isEmpty, let rate = congestion.takeREMB(at: now) else { return }
    guard let count = feedback.estimate(rate, of: remb) else { return refused += 1 }
    unsafe observer?.mediaSends(feedback.packet, count: count, isRTCP: true)
  }

  /// Counts since the beginning, but for those of the transport.
  var statistics: RTCStatistics {
    var all = RTCStatistics()
    for index in media.indices {
      if let sound = media[index].sound { all.sound.add(sound.statistics) }
      if let video = media[index].video { all.video.add(video.statistics) }
    }
    if let time = roundTrips.sound { all.sound.roundTrip = time }
    if let time = roundTrips.video { all.video.roundTrip = time }
    // What nobody could read.
    all.sound.refused += refused
    all.sendBitrate = congestion.estimate
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
  func sourceLeft(_ ssrc: UInt32) {
    soundRoutes.forget(ssrc)
    videoRoutes.forget(ssrc)
    observer?.mediaLeft(ssrc)
  }

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
  func videoWantsKeyFrame(medium: Int) { observer?.mediaWantsKeyFrame(medium: medium) }
}
