package import MillraceCore
package import MillraceRTCWire

/// What a `SoundEngine` reports, within its calls.
package protocol SoundObserver: SourceObserver {
  /// Sends a packet of `count` bytes, with room for protection behind it.
  func soundSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool)
  /// The peer has sent sound. The payload is valid only during the call.
  func soundReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>)
  /// The peer has pressed a key.
  func soundReceived(_ tone: ReceivedTone)
  /// A source of the peer has ended, with its reason or none.
  func soundEnded(_ ssrc: UInt32, reason: String?)
}

/// The sound of a session as RTP: writes what is to be sent, reads what comes, and reports both ways. Sans-IO; one thread; no heap request
/// for a packet.
@safe
package final class SoundEngine {
  /// Sources of the peer at the same time: a mixer sends one, a conference server may send one a participant. Further ones are
  /// refused.
  package static let sources = 64
  /// A source that was silent for as long makes room for others: five intervals of reports (RFC 3550 section 6.3.5).
  private static let forgottenAfter: Nanoseconds = .milliseconds(25_000)

  private weak var observer: (any SoundObserver)?
  private let media: AgreedMedia
  private let source: LocalSource
  private var sender: SoundSender?
  private var receivers: [SoundReceiver] = []
  private var schedule: ReportSchedule
  private var refused = 0
  /// Counts of sources that have ended.
  private var ended = SoundStatistics()
  private let congestion: CongestionControl?
  private let formats: SoundFormats
  private var tones: ToneQueue?
  private var goodbyes = EndedSources()
  /// The source whose turn it is in the next report, which has room for 31.
  private var nextReported = 0
  /// The place of the medium in its session.
  private let medium: Int
  private let mostSources: Int
  private let isQuiet: Bool
  /// A report was sent.
  private var hasReported = false
  /// Whether the payload of a source of another session can be sent on, as it was found for the latest.
  private var fit: ForwardedFormat?
  private let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SoundSender.packetBytes + SRTPContext.trailer, alignment: 8)

  /// Creates an engine for a medium that was agreed on.
  /// - Parameters:
  ///   - medium: its place in the session, for what is reported.
  ///   - source: the source that the description of this side names.
  ///   - mostSources: sources of the peer at the same time.
  ///   - isQuiet: no report is sent while there is nothing to say, as for one of many media of which others report.
  ///   - seed: makes the first numbers, and the times of reports.
  ///   - congestion: numbers the packets of all media; nil: they have no numbers.
  package init(
    _ media: AgreedMedia, medium: Int = 0, source: LocalSource, mostSources: Int = SoundEngine.sources,
    isQuiet: Bool = false, seed: UInt64, at now: Nanoseconds, congestion: CongestionControl? = nil,
    observer: any SoundObserver
  ) {
    self.media = media
    self.medium = medium
    self.mostSources = max(1, mostSources)
    self.isQuiet = isQuiet
    self.observer = observer
    self.source = source
    self.congestion = congestion
    formats = SoundFormats(media)
    schedule = ReportSchedule(.audio, seed: seed, at: now)
    if media.direction.receives { receivers.reserveCapacity(self.mostSources) }
    guard media.direction.sends, let codec = media.sendCodec else { return }
    sender = SoundSender(
      ssrc: source.ssrc, codec: codec, media, sequence: SoundSender.firstSequence(seed),
      timestamp: UInt32(truncatingIfNeeded: seed), at: now)
    if let tones = media.sendTones { self.tones = ToneQueue(clockRate: tones.clockRate) }
  }

  deinit { unsafe packet.deallocate() }

  /// The codec to send; nil: nothing is sent.
  package var codec: RTPCodec? { sender == nil ? nil : media.sendCodec }

  /// True for a payload type of sound.
  package func takes(_ payloadType: UInt8) -> Bool { formats[payloadType] != nil }

  // MARK: Sending

  /// Sends a payload of the codec.
  /// - Parameters:
  ///   - duration: its samples per channel, by the clock of the codec.
  ///   - pause: samples that were not sent before it.
  package func send(
    _ payload: Span<UInt8>, duration: Int, pause: Int = 0, level: RTPAudioLevel? = nil, at now: Nanoseconds
  ) {
    guard sender != nil else { return }
    guard payload.count <= SoundSender.packetBytes - SoundSender.largestHead else { return refused += 1 }
    if tones?.isSending ?? false {
      // A key replaces the voice (RFC 4733 section 2.3).
      sender?.skip(pause + duration)
      return
    }
    let number = congestion?.number(bytes: payload.count + SoundSender.largestHead, at: now)
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var bytes = unsafe room.bindMemory(to: UInt8.self).mutableSpan
    let count = sender?.write(
      payload, duration: duration, pause: pause, level: level, transportSequence: number, at: now,
      into: &bytes)
    guard let count else { return refused += 1 }
    unsafe observer?.soundSends(packet, count: count, isRTCP: false)
  }

  /// Sends a packet of another session on, with numbers and timestamps that continue what was sent (`SoundForwarder`). One of another codec
  /// is refused.
  package func forward(_ sound: ReceivedSound, _ payload: Span<UInt8>, at now: Nanoseconds) {
    guard sender != nil else { return }
    guard payload.count <= SoundSender.packetBytes - SoundSender.largestHead else { return refused += 1 }
    guard let format = format(of: sound), format.fits else { return refused += 1 }
    // A key replaces the voice (RFC 4733 section 2.3).
    guard !(tones?.isSending ?? false) else { return }
    let samples = format.isOpus ? Self.samples(payload) : 0
    guard let place = sender?.place(of: sound, samples: samples) else { return }
    let number = congestion?.number(bytes: payload.count + SoundSender.largestHead, at: now)
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var bytes = unsafe room.bindMemory(to: UInt8.self).mutableSpan
    let count = sender?.write(
      payload, at: place, level: sound.level, transportSequence: number, at: now, into: &bytes)
    guard let count else { return refused += 1 }
    unsafe observer?.soundSends(packet, count: count, isRTCP: false)
  }

  /// Compares names once a source, and not for every packet.
  private func format(of sound: ReceivedSound) -> ForwardedFormat? {
    if let fit, fit.ssrc == sound.ssrc, fit.payloadType == sound.payloadType { return fit }
    guard let codec = media.sendCodec else { return nil }
    let name = codec.name.lowercased()
    let fits =
      name == sound.codec.name.lowercased() && codec.clockRate == sound.codec.clockRate
      && codec.channels == sound.codec.channels
    fit = ForwardedFormat(
      ssrc: sound.ssrc, payloadType: sound.payloadType, fits: fits, isOpus: name == "opus")
    return fit
  }

  /// Samples of a payload of Opus; 0: it is none.
  private static func samples(_ payload: Span<UInt8>) -> Int {
    do throws(PayloadProblem) { return try OpusPayload(parsing: payload).samples } catch { return 0 }
  }

  /// Sends keys of a telephone. False: the peer takes none, or one is none of 0 to 9, *, #, A to D.
  package func send(tones text: String, milliseconds: Int = 100, gap: Int = 70, at now: Nanoseconds) -> Bool {
    guard tones?.append(text, milliseconds: milliseconds, gap: gap) ?? false else { return false }
    sendTones(at: now)
    return true
  }

  private func sendTones(at now: Nanoseconds) {
    guard tones?.deadline != nil, let payloadType = media.sendTones?.payloadType else { return }
    if let sender { tones?.begin(timestamp: sender.presentTimestamp(at: now), at: now) }
    while let due = tones?.sender.deadline, due <= now, let count = writeTone(payloadType, at: now) {
      unsafe observer?.soundSends(packet, count: count, isRTCP: false)
    }
  }

  private func writeTone(_ payloadType: UInt8, at now: Nanoseconds) -> Int? {
    guard var queue = tones else { return nil }
    let number = congestion?.number(bytes: SoundSender.largestHead + TelephoneEvent.byteCount, at: now)
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var bytes = unsafe room.bindMemory(to: UInt8.self).mutableSpan
    let count = sender?.write(
      tone: &queue.sender, payloadType: payloadType, transportSequence: number, at: now, into: &bytes)
    // A key that cannot be written would be due for ever.
    if count == nil { queue.sender.cancel() }
    tones?.sender = queue.sender
    return count
  }

  // MARK: Receiving

  /// Handles a packet of RTP, decrypted.
  package func take(_ bytes: Span<UInt8>, at now: Nanoseconds) {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: bytes) } catch { return refused += 1 }
    take(header, bytes, at: now)
  }

  /// Handles a packet of RTP whose header was read.
  package func take(_ header: RTPHeader, _ bytes: Span<UInt8>, at now: Nanoseconds) {
    guard let format = formats[header.payloadType], media.direction.receives else {
      return refused += 1
    }
    guard !goodbyes.contains(header.ssrc, at: now) else { return }
    guard let index = receiver(header.ssrc, format, at: now) else { return refused += 1 }
    if format.isTone {
      return take(
        tones: bytes.extracting(header.payload), header, format.codec.clockRate, index, at: now)
    }
    guard var sound = receivers[index].take(header, format.codec, at: now), !format.isAuxiliary else {
      return
    }
    sound.medium = medium
    if let identifier = media.identifiers.audioLevel {
      sound.level = header.audioLevel(identifier, in: bytes)
    }
    observer?.soundReceived(sound, bytes.extracting(header.payload))
  }

  private func take(
    tones payload: Span<UInt8>, _ header: RTPHeader, _ clockRate: Int, _ index: Int, at now: Nanoseconds
  ) {
    var report: TelephoneEventReport?
    do throws(PayloadProblem) {
      // Of several in one packet the last is over: events end to end are one key (RFC 4733 section 2.5.1.5).
      try receivers[index].take(tones: payload, header, clockRate: clockRate, at: now) { report = $0 }
    } catch { refused += 1 }
    if let report { deliver(report, of: header.ssrc) }
  }

  private func deliver(_ report: TelephoneEventReport, of ssrc: UInt32) {
    guard let digit = report.key else { return }
    observer?.soundReceived(ReceivedTone(ssrc: ssrc, digit: digit, milliseconds: report.milliseconds))
  }

  private func receiver(_ ssrc: UInt32, _ format: SoundFormat, at now: Nanoseconds) -> Int? {
    let codec = format.codec
    if let index = place(of: ssrc) {
      guard !format.isAuxiliary, receivers[index].clockRate != codec.clockRate else { return index }
      // Another clock: nothing that was counted by the one before it continues.
      ended.add(receivers[index])
      receivers[index] = SoundReceiver(ssrc: ssrc, clockRate: codec.clockRate, restarts: true, at: now)
      return index
    }
    if receivers.count >= mostSources {
      // The one that was silent longest, if it was long enough.
      guard let oldest = receivers.indices.min(by: { receivers[$0].heardAt < receivers[$1].heardAt }),
        now - receivers[oldest].heardAt >= Self.forgottenAfter
      else { return nil }
      end(receivers[oldest].ssrc, reason: nil)
    }
    receivers.append(SoundReceiver(ssrc: ssrc, clockRate: codec.clockRate, at: now))
    return receivers.count - 1
  }

  /// Handles a datagram of RTCP, decrypted. What is behind something broken is not read.
  package func take(reports bytes: Span<UInt8>, at now: Nanoseconds) {
    var reader = RTCPReader(bytes)
    do throws(RTCPProblem) {
      while let packet = try reader.next() { take(packet, at: now) }
    } catch { refused += 1 }
  }

  /// Handles a packet of RTCP.
  package func take(_ packet: RTCPPacket, at now: Nanoseconds) {
    switch packet {
    case .senderReport(let report):
      let info = report.info
      if let index = place(of: info.ssrc) { receivers[index].note(info, at: now) }
      if let sender, let block = report.blocks.block(about: sender.ssrc) { self.sender?.note(block, at: now) }
    case .receiverReport(let report):
      if let sender, let block = report.blocks.block(about: sender.ssrc) { self.sender?.note(block, at: now) }
    case .goodbye(let goodbye):
      for index in 0..<goodbye.count {
        leave(goodbye[index], reason: goodbye.reasonText, at: now)
        observer?.sourceLeft(goodbye[index])
      }
    default: break
    }
  }

  /// A source of the peer has said goodbye. Where no sound is received, none can be meant.
  package func leave(_ ssrc: UInt32, reason: String?, at now: Nanoseconds) {
    guard media.direction.receives else { return }
    goodbyes.note(ssrc, at: now)
    end(ssrc, reason: reason)
  }

  private func end(_ ssrc: UInt32, reason: String?) {
    guard let index = place(of: ssrc) else { return }
    ended.add(receivers.remove(at: index))
    observer?.soundEnded(ssrc, reason: reason)
  }

  /// The sources of the peer, appended to a list.
  package func appendSources(to list: inout [UInt32]) {
    for index in receivers.indices { list.append(receivers[index].ssrc) }
  }

  /// By hand: iterating an array, and so `firstIndex(where:)`, makes a heap request an element in debug builds.
  private func place(of ssrc: UInt32) -> Int? {
    for index in receivers.indices where receivers[index].ssrc == ssrc { return index }
    return nil
  }

  // MARK: Time

  /// True while keys wait to be sent.
  package var isSendingTones: Bool { tones?.deadline != nil }

  /// Sends what is due. Returns when to be called again.
  package func run(at now: Nanoseconds) -> Nanoseconds? {
    sendTones(at: now)
    var earliest = tones?.deadline
    for index in receivers.indices {
      if let report = receivers[index].expireTone(at: now) { deliver(report, of: receivers[index].ssrc) }
      if let due = receivers[index].toneDeadline { earliest = min(earliest ?? due, due) }
    }
    while let action = schedule.due(at: now) { report(isLast: action == .goodbye, at: now) }
    guard let due = schedule.deadline else { return earliest }
    return min(earliest ?? due, due)
  }

  /// Says that this side ends.
  package func end(at now: Nanoseconds) {
    schedule.end(at: now, sentMedia: (sender?.statistics.packets ?? 0) > 0)
    _ = run(at: now)
  }

  private func report(isLast: Bool, at now: Nanoseconds) {
    guard !isQuiet || hasNews || isLast && (hasReported || (sender?.statistics.packets ?? 0) > 0) else {
      return
    }
    hasReported = true
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) { try write(&writer, isLast: isLast, at: now) } catch { return refused += 1 }
    unsafe observer?.soundSends(packet, count: writer.count, isRTCP: true)
  }

  /// Something was sent or received since the last report.
  private var hasNews: Bool {
    if let sent = sender?.statistics.packetsSinceReport, sent > 0 { return true }
    for index in receivers.indices where receivers[index].statistics.packetsSinceReport > 0 { return true }
    return false
  }

  private func write(_ writer: inout RTCPWriter, isLast: Bool, at now: Nanoseconds) throws(RTCPProblem) {
    let own = source.ssrc
    if let info = sender?.report(at: now) {
      try writer.senderReport(info)
    } else {
      try writer.receiverReport(ssrc: own)
    }
    var blocks = 0
    let first = nextReported
    for offset in receivers.indices where blocks < RTCPWriter.largestCount {
      let index = (first + offset) % receivers.count
      nextReported = index + 1
      guard let block = receivers[index].reportBlock(at: now) else { continue }
      try writer.add(block)
      blocks += 1
    }
    try writer.sourceDescription(ssrc: own, canonicalName: source.cname)
    if isLast { try writer.goodbye(ssrc: own) }
  }

  /// From here to the peer and back; nil before the first report about what was sent.
  package var roundTrip: Nanoseconds? { sender?.statistics.smoothedRoundTrip }

  /// Counts since the beginning.
  package var statistics: SoundStatistics {
    var all = ended
    all.refused = refused
    if let sent = sender?.statistics {
      (all.sentPackets, all.sentBytes) = (sent.packets, sent.octets)
      (all.roundTrip, all.remoteLoss) = (sent.smoothedRoundTrip, sent.remoteLoss)
    }
    for receiver in receivers {
      all.add(receiver)
      all.jitter = max(all.jitter, receiver.statistics.jitterNanoseconds)
    }
    return all
  }
}

extension SoundStatistics {
  /// Adds what a source has sent.
  fileprivate mutating func add(_ receiver: SoundReceiver) {
    receivedPackets += receiver.statistics.packets
    receivedBytes += receiver.statistics.bytes
    lost += receiver.statistics.lost
    duplicates += receiver.duplicates
    tooLate += receiver.tooLate
  }
}

/// Whether a source of another session can be sent on.
private struct ForwardedFormat {
  var ssrc: UInt32
  var payloadType: UInt8
  /// It has the codec that is sent.
  var fits: Bool
  var isOpus: Bool
}

/// What a payload type stands for among sound.
private struct SoundFormat {
  var codec: RTPCodec
  /// Nothing that is heard.
  var isAuxiliary: Bool
  /// Keys of a telephone (RFC 4733).
  var isTone: Bool
}

/// What the payload types stand for that were agreed on.
private struct SoundFormats {
  private static let unknown = UInt8.max

  private var list: [SoundFormat] = []
  /// Places in the list by payload type, 128 of them: a table of formats would take 10 KB for the few that there are.
  private var places = [UInt8](repeating: SoundFormats.unknown, count: 128)

  init(_ media: AgreedMedia) {
    for (payloadType, codec) in media.receiveCodecs where list.count < Int(Self.unknown) {
      places[Int(payloadType & 0x7F)] = UInt8(list.count)
      list.append(SoundFormat(codec: codec, isAuxiliary: codec.isAuxiliary, isTone: codec.isTone))
    }
  }

  /// Nil: not agreed on.
  subscript(payloadType: UInt8) -> SoundFormat? {
    let place = places[Int(payloadType & 0x7F)]
    return place == Self.unknown ? nil : list[Int(place)]
  }
}

extension RTPCodec {
  /// Keys of a telephone (RFC 4733).
  var isTone: Bool { name.lowercased() == "telephone-event" }
}
