package import MillraceCore
package import MillraceRTCWire

/// What a `PlainSession` reports, on the thread of its loop. The session must not be ended within a call.
package protocol PlainSessionObserver: AnyObject {
  /// Packets go to this address from now on, because valid ones come from there.
  func plainMoved(to address: DatagramAddress)
  /// Sound of the peer. The payload is valid only during the call.
  func plainReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>)
  /// An encoded picture of the peer, whole. The bytes are valid only during the call.
  func plainReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>)
  /// The peer has pressed a key of a telephone.
  func plainReceived(_ tone: ReceivedTone)
  /// A source of the peer has ended.
  func plainEnded(source: UInt32, reason: String?)
  /// The peer needs a key frame; at most every 300 ms.
  func plainWantsKeyFrame()
}

/// One medium over RTP and RTCP without ICE and DTLS: for telephones, FFmpeg, GStreamer and devices (RFC 3550, RFC 3551; SRTP with keys
/// from elsewhere: RFC 3711).
///
/// - RTP and RTCP have two ports, or share one; RTCP is taken from both either way. `AddressLatch` says whose packets are taken and where
///   they go; what fails SRTP moves nothing.
/// - A packet of another payload type, that is no RTP, or of a stranger is counted and dropped.
/// - There is no connection: a peer that is not there is only silence.
/// - On the thread of its loop, `init` included. No heap request for a packet. `end` says goodbye (BYE) and frees the ports.
@safe
package final class PlainSession: RTCLoopMember {
  private let loop: RTCLoop
  private let settings: PlainSettings
  private weak var observer: (any PlainSessionObserver)?
  private let clock = Clock(.realtime)
  private let protection: SRTPProtection?
  private var entry: RTCLoop.Entry?
  private var sockets: PlainSockets?
  private var sound: SoundEngine?
  private var video: VideoEngine?
  private var latch: AddressLatch
  /// Of RTCP on a port of its own.
  private var reportLatch: AddressLatch
  private var refusals = PeerRefusals()
  /// Datagrams of addresses that are not the peer's.
  package private(set) var strangers = 0
  /// The time that the last `run` returned.
  private var nextRun: Nanoseconds?
  private var hasEnded = false

  /// Binds the ports and begins.
  /// - Throws: that an address or a port cannot be used, or that a key has the wrong length, as a message without the key.
  package init(
    on loop: RTCLoop, _ settings: PlainSettings, observer: any PlainSessionObserver
  ) throws(RTCProblem) {
    if let keys = settings.keys { protection = try SRTPProtection(keys) } else { protection = nil }
    self.loop = loop
    self.settings = settings
    self.observer = observer
    latch = AddressLatch(settings.remote, isSymmetric: settings.isSymmetric)
    reportLatch = AddressLatch(settings.remote?.next, isSymmetric: settings.isSymmetric)
    sockets = try unsafe PlainSockets(
      settings, on: loop,
      packets: { [weak self] datagram, source in
        guard let self else { return }
        unsafe self.take(datagram, from: source, isReportPort: false)
      },
      reports: { [weak self] datagram, source in
        guard let self else { return }
        unsafe self.take(datagram, from: source, isReportPort: true)
      })
    let (seed, now) = (UInt64.random(in: 0...(.max)), clock.now)
    if settings.isVideo {
      video = VideoEngine(
        settings.media, source: settings.source, largestBitrate: settings.largestBitrate, seed: seed, at: now,
        observer: self)
    } else {
      sound = SoundEngine(settings.media, source: settings.source, seed: seed, at: now, observer: self)
    }
    entry = loop.add(self)
  }

  /// What the socket of RTP is bound to; nil after the end.
  package var local: DatagramAddress? { sockets?.packets.local }

  /// Where packets go; nil: nowhere before the first comes.
  package var target: DatagramAddress? { latch.target }

  // MARK: Sending

  /// The codec in which sound is sent; nil: none is.
  package var soundCodec: RTPCodec? { sound?.codec }

  /// The codec in which pictures are sent; nil: none are.
  package var pictureCodec: RTPCodec? { video?.codec }

  /// Sends sound.
  /// - Parameters:
  ///   - duration: samples per channel of the payload, by the clock of the codec.
  ///   - pause: samples that were not sent before it.
  package func send(_ payload: Span<UInt8>, duration: Int, pause: Int = 0) {
    sound?.send(payload, duration: duration, pause: pause, at: clock.now)
  }

  /// Sends an access unit of H.264 in Annex B form, or a frame of VP8.
  /// - Parameter captured: on the monotonic clock.
  package func send(picture bytes: Span<UInt8>, isKey: Bool, captured: Nanoseconds) {
    guard let video else { return }
    video.send(bytes, isKey: isKey, captured: captured, at: clock.now)
    if video.isWaiting { entry?.wake() }
  }

  /// Sends keys of a telephone: 0 to 9, *, #, A to D. False: another is among them, more than 64 wait, or none are sent.
  package func send(tones: String, milliseconds: Int = 100, gap: Int = 70) -> Bool {
    guard let sound, !hasEnded else { return false }
    defer { entry?.wake() }
    return sound.send(tones: tones, milliseconds: milliseconds, gap: gap, at: clock.now)
  }

  /// True while something waits for its time: keys, or packets of pictures.
  package var isSending: Bool { sound?.isSendingTones ?? video?.isWaiting ?? false }

  /// Asks every source of pictures of the peer for a key frame; at most every 500 ms.
  package func requestKeyFrame() { video?.requestKeyFrame(at: clock.now) }

  private func send(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    guard let sockets else { return }
    let isApart = isRTCP && !settings.hasRTCPMux
    let socket = isApart ? sockets.reports ?? sockets.packets : sockets.packets
    guard let target = isApart ? reportLatch.target : latch.target else { return }
    var length = count
    if let protection {
      guard let sealed = unsafe protection.protect(packet, count: count, isRTCP: isRTCP) else { return }
      length = sealed
    }
    // One that is not sent is as good as lost.
    _ = unsafe socket.send(UnsafeRawBufferPointer(rebasing: packet[..<length]), to: target)
  }

  // MARK: Receiving

  private func take(
    _ datagram: UnsafeMutableRawBufferPointer, from source: DatagramAddress, isReportPort: Bool
  ) {
    guard !hasEnded else { return }
    let now = clock.now
    let bytes = unsafe datagram.bindMemory(to: UInt8.self)
    let kind = RTPDemultiplexer.kind(of: unsafe bytes.span)
    guard kind == .rtcp || kind == .rtp && !isReportPort else { return refusals.malformed += 1 }
    guard admits(source, isReportPort: isReportPort, at: now) else { return strangers += 1 }
    guard let count = unsafe open(datagram, isRTCP: kind == .rtcp) else { return }
    let opened = unsafe UnsafeMutableBufferPointer(rebasing: bytes[..<count])
    if kind == .rtcp {
      take(reports: unsafe opened.span, from: source, isReportPort: isReportPort, at: now)
    } else {
      take(packet: unsafe opened.span, from: source, at: now)
    }
  }

  private func admits(_ source: DatagramAddress, isReportPort: Bool, at now: Nanoseconds) -> Bool {
    guard isReportPort else { return latch.admits(source, at: now) }
    // Keys tell the peer from others better than its host.
    let isHost = protection != nil || latch.target.map { source.hasHost(of: $0) } ?? true
    return isHost && reportLatch.admits(source, at: now)
  }

  /// Bytes of a datagram once it is decrypted, in place; nil: it is refused.
  private func open(_ datagram: UnsafeMutableRawBufferPointer, isRTCP: Bool) -> Int? {
    guard let protection else { return datagram.count }
    return unsafe protection.unprotect(datagram, isRTCP: isRTCP, &refusals)
  }

  private func take(packet: Span<UInt8>, from source: DatagramAddress, at now: Nanoseconds) {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: packet) } catch {
      return refusals.malformed += 1
    }
    let isKnown = sound?.takes(header.payloadType) ?? video?.takes(header.payloadType) ?? false
    if isKnown { note(source, at: now) }
    sound?.take(header, packet, at: now)
    video?.take(header, packet, at: now)
    let isTone = settings.media.sendTones.map { $0.payloadType == header.payloadType } ?? false
    if isTone { entry?.wake() } else { wakeIfDue() }
  }

  private func note(_ source: DatagramAddress, at now: Nanoseconds) {
    guard latch.note(source, at: now) else { return }
    // RTCP follows, unless it has shown its own port at this host.
    let isKnown = reportLatch.isLatched && reportLatch.target?.hasHost(of: source) == true
    if !isKnown { reportLatch = AddressLatch(source.next, isSymmetric: settings.isSymmetric) }
    observer?.plainMoved(to: source)
  }

  private func take(
    reports: Span<UInt8>, from source: DatagramAddress, isReportPort: Bool, at now: Nanoseconds
  ) {
    if isReportPort, Self.isReport(reports) { _ = reportLatch.note(source, at: now) }
    sound?.take(reports: reports, at: now)
    video?.take(reports: reports, at: now)
    wakeIfDue()
  }

  /// True for RTCP of a kind that is known, and whole.
  private static func isReport(_ bytes: Span<UInt8>) -> Bool {
    var reader = RTCPReader(bytes)
    do throws(RTCPProblem) {
      guard let first = try reader.next() else { return false }
      switch first {
      case .other: return false
      default: return true
      }
    } catch { return false }
  }

  /// What has come may have to be answered before the time that `run` has returned.
  private func wakeIfDue() {
    guard let due = video?.deadline, due < nextRun ?? .max else { return }
    nextRun = due
    entry?.wake()
  }

  // MARK: Time and end

  package func run(at now: Nanoseconds) -> Nanoseconds? {
    guard !hasEnded else { return nil }
    nextRun = sound?.run(at: now) ?? video?.run(at: now)
    return nextRun
  }

  /// Says goodbye, and frees the ports. A second call does nothing.
  package func end() {
    guard !hasEnded else { return }
    sound?.end(at: clock.now)
    video?.end(at: clock.now)
    hasEnded = true
    observer = nil
    sockets?.close()
    sockets = nil
    if let entry { loop.remove(entry) }
    entry = nil
  }

  /// Everything that was counted. What came from strangers is among the refusals for its source.
  package var statistics: RTCStatistics {
    var all = RTCStatistics()
    if let sound { all.sound = sound.statistics }
    if let video { all.video = video.statistics }
    all.roundTrip = sound?.roundTrip ?? video?.roundTrip
    all.refusals = refusals
    all.refusals.sources += strangers
    return all
  }
}

extension PlainSession: SoundObserver {
  package func sourceLeft(_ ssrc: UInt32) { protection?.noteEnd(of: ssrc) }

  package func soundSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    unsafe send(packet, count: count, isRTCP: isRTCP)
  }

  package func soundReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    observer?.plainReceived(sound, payload)
  }

  package func soundReceived(_ tone: ReceivedTone) { observer?.plainReceived(tone) }

  package func soundEnded(_ ssrc: UInt32, reason: String?) {
    protection?.noteEnd(of: ssrc)
    observer?.plainEnded(source: ssrc, reason: reason)
  }
}

extension PlainSession: VideoObserver {
  package func videoSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    unsafe send(packet, count: count, isRTCP: isRTCP)
  }

  package func videoReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    observer?.plainReceived(picture, bytes)
  }

  package func videoEnded(_ ssrc: UInt32, reason: String?) {
    protection?.noteEnd(of: ssrc)
    observer?.plainEnded(source: ssrc, reason: reason)
  }

  package func videoWantsKeyFrame(medium: Int) { observer?.plainWantsKeyFrame() }
}
