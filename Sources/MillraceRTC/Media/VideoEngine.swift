package import MillraceCore
package import MillraceRTCWire

/// What a `VideoEngine` reports, within its calls. The engine must not be ended within.
package protocol VideoObserver: SourceObserver {
  /// Sends a packet of `count` bytes, with room for protection behind it.
  func videoSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool)
  /// The peer has sent a picture. The bytes are valid only during the call.
  func videoReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>)
  /// A source of the peer has ended, with its reason or none.
  func videoEnded(_ ssrc: UInt32, reason: String?)
  /// The peer needs a key frame; at most every 300 ms.
  func videoWantsKeyFrame(medium: Int)
}

/// The pictures of a session as RTP: packs and paces what is to be sent, puts together what comes, repairs both ways, and reports.
///
/// H.264 in packetization mode 1, and VP8. Packets that are lost are requested again by NACK and come by RTX where that was agreed on;
/// what cannot be cured makes a key frame wanted. Sans-IO; one thread; no heap request for a packet. The first picture that is sent
/// requests the memory of sending.
@safe
package final class VideoEngine {
  /// Sources of the peer at the same time. Each has room for a picture of 1 MiB. Further ones are refused.
  package static let sources = 16
  /// A source that was silent for as long makes room for others: five intervals of reports (RFC 3550 section 6.3.5).
  private static let forgottenAfter: Nanoseconds = .milliseconds(25_000)
  /// Packets that one NACK asks for; the rest follows at once in another.
  private static let mostRequests = 64
  /// Bytes of the largest packet of retransmissions that is taken.
  private static let repairBytes = 2_048

  private weak var observer: (any VideoObserver)?
  private let media: AgreedMedia
  private let formats: VideoFormats
  /// The place of the medium in its session.
  private let medium: Int
  private let mostSources: Int
  private let isQuiet: Bool
  private let source: LocalSource
  private let largestBitrate: Int
  private let seed: UInt64
  private let congestion: CongestionControl?
  /// What is sent; nil: nothing.
  private let sent: (codec: RTPCodec, kind: VideoKind)?
  /// Nil before the first picture: queue and history take megabytes.
  private var sender: VideoSender?
  private var knownRoundTrip: Nanoseconds?
  /// A report was sent.
  private var hasReported = false
  private var receivers: [VideoReceiver] = []
  private var goodbyes = EndedSources()
  private var schedule: ReportSchedule
  private let reports: VideoReports
  private var wish = KeyFrameWish()
  private var counts = VideoStatistics()
  private let repair = UnsafeMutableRawBufferPointer.allocate(byteCount: repairBytes, alignment: 8)

  /// Creates an engine for a medium that was agreed on.
  /// - Parameters:
  ///   - medium: its place in the session, for what is reported.
  ///   - source: the source that the description of this side names.
  ///   - mostSources: sources of the peer at the same time.
  ///   - isQuiet: no report is sent while there is nothing to say, as for one of many media of which others report.
  ///   - largestBitrate: bits a second that the encoder makes at most.
  ///   - seed: makes the first numbers, and the times of reports.
  ///   - congestion: numbers the packets of all media and says how fast they leave; nil: at the largest bitrate, without numbers.
  package init(
    _ media: AgreedMedia, medium: Int = 0, source: LocalSource, mostSources: Int = VideoEngine.sources,
    isQuiet: Bool = false, largestBitrate: Int = 2_500_000, seed: UInt64, at now: Nanoseconds,
    congestion: CongestionControl? = nil, observer: any VideoObserver
  ) {
    self.media = media
    self.medium = medium
    self.source = source
    self.mostSources = max(1, mostSources)
    self.isQuiet = isQuiet
    self.largestBitrate = largestBitrate
    self.seed = seed
    self.congestion = congestion
    self.observer = observer
    formats = VideoFormats(media)
    schedule = ReportSchedule(.video, seed: seed, at: now)
    reports = VideoReports(media, source: source)
    if media.direction.sends, let codec = media.sendCodec, let kind = VideoKind(codec) {
      sent = (codec, kind)
    } else {
      sent = nil
    }
    if media.direction.receives { receivers.reserveCapacity(self.mostSources) }
  }

  deinit { unsafe repair.deallocate() }

  /// The codec to send; nil: nothing is sent.
  package var codec: RTPCodec? { sent?.codec }

  /// True for a payload type of pictures or their retransmissions.
  package func takes(_ payloadType: UInt8) -> Bool { formats[payloadType] != nil }

  /// True for a source that has sent pictures lately.
  package var hasSources: Bool { !receivers.isEmpty }

  /// The sources of the peer, appended to a list.
  package func appendSources(to list: inout [UInt32]) {
    for index in receivers.indices { list.append(receivers[index].ssrc) }
  }

  // MARK: Sending

  /// Sends an access unit of H.264 in Annex B form, or a frame of VP8. It leaves at the pace of the network: `run` at the time that it
  /// returns.
  /// - Parameter captured: on the monotonic clock.
  package func send(_ picture: Span<UInt8>, isKey: Bool, captured: Nanoseconds, at now: Nanoseconds) {
    guard let sender = madeSender() else { return }
    guard sender.send(picture, captured: captured, at: now) else {
      counts.refused += 1
      // The pictures behind it refer to it.
      wish.want()
      return reportWish(at: now)
    }
    if isKey { wish.fulfil() }
    sendWaiting(at: now)
  }

  /// What sends, which is made for the first picture; nil: nothing is sent.
  private func madeSender() -> VideoSender? {
    if let sender { return sender }
    guard let sent else { return nil }
    let made = VideoSender(
      sent.codec, sent.kind, media, source: source, largestBitrate: largestBitrate, seed: seed,
      congestion: congestion)
    if let time = knownRoundTrip { made.roundTrip = time }
    sender = made
    return made
  }

  /// The source that is sent; nil: none is.
  private var ownSource: UInt32? { sent == nil ? nil : source.ssrc }

  /// True while packets wait for their turn.
  package var isWaiting: Bool { sender?.isWaiting ?? false }

  private func sendWaiting(at now: Nanoseconds) {
    guard let sender else { return }
    while let count = sender.next(at: now) {
      unsafe observer?.videoSends(sender.packet, count: count, isRTCP: false)
    }
  }

  /// Asks every source of the peer for a key frame.
  package func requestKeyFrame(at now: Nanoseconds) {
    for index in receivers.indices { receivers[index].wantKeyFrame() }
    requestKeyFrames(at: now)
  }

  // MARK: Receiving

  /// Handles a packet of RTP, decrypted.
  package func take(_ bytes: Span<UInt8>, at now: Nanoseconds) {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: bytes) } catch { return counts.refused += 1 }
    take(header, bytes, at: now)
  }

  /// Handles a packet of RTP whose header was read.
  package func take(_ header: RTPHeader, _ bytes: Span<UInt8>, at now: Nanoseconds) {
    guard let format = formats[header.payloadType], media.direction.receives else {
      return counts.refused += 1
    }
    if let original = format.repeats { return take(repeated: header, bytes, original, at: now) }
    guard !goodbyes.contains(header.ssrc, at: now) else { return }
    guard let receiver = receiver(header.ssrc, at: now) else { return counts.refused += 1 }
    take(header, bytes, format, for: receiver, isRepeated: false, at: now)
  }

  private func take(
    _ header: RTPHeader, _ bytes: Span<UInt8>, _ format: VideoFormat, for receiver: VideoReceiver,
    isRepeated: Bool, at now: Nanoseconds
  ) {
    receiver.take(header, bytes, format, isRepeated: isRepeated, at: now) { picture, bytes in
      deliver(picture, bytes)
    }
    requestKeyFrames(at: now)
  }

  private func deliver(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    var picture = picture
    picture.medium = medium
    observer?.videoReceived(picture, bytes)
  }

  /// Handles a retransmission: the packet that it contains, as if it had come by itself.
  private func take(
    repeated header: RTPHeader, _ bytes: Span<UInt8>, _ payloadType: UInt8, at now: Nanoseconds
  ) {
    // Retransmissions without a payload probe the network.
    guard header.payload.count > RTXStream.overhead, let format = formats[payloadType] else { return }
    guard let receiver = repeatedReceiver(header.ssrc) else { return counts.refused += 1 }
    let room = unsafe repair.bindMemory(to: UInt8.self)
    var target = unsafe room.mutableSpan
    do throws(RTPProblem) {
      let count = try RTXStream.unwrap(
        bytes, ssrc: receiver.ssrc, payloadType: payloadType, into: &target)
      let original = try RTPHeader(parsing: target.span.extracting(0..<count))
      take(
        original, target.span.extracting(0..<count), format, for: receiver, isRepeated: true, at: now)
    } catch { counts.refused += 1 }
  }

  /// The source whose packets a source repeats: as the description says; where it says nothing, the only one that there is.
  private func repeatedReceiver(_ ssrc: UInt32) -> VideoReceiver? {
    if let original = media.rtxSources[ssrc] { return place(of: original).map { receivers[$0] } }
    return receivers.count == 1 ? receivers[0] : nil
  }

  private func receiver(_ ssrc: UInt32, at now: Nanoseconds) -> VideoReceiver? {
    if let index = place(of: ssrc) { return receivers[index] }
    if receivers.count >= mostSources {
      // The one that was silent longest, if it was long enough.
      guard let oldest = receivers.min(by: { $0.heardAt < $1.heardAt }),
        now &- oldest.heardAt >= Self.forgottenAfter
      else { return nil }
      end(oldest.ssrc, reason: nil)
    }
    let made = VideoReceiver(ssrc: ssrc, formats, parameterSets: media.parameterSets, at: now)
    if let time = knownRoundTrip ?? sender?.statistics.smoothedRoundTrip { made.roundTrip = time }
    receivers.append(made)
    return made
  }

  /// A source of the peer has said goodbye. Where no pictures are received, none can be meant.
  package func leave(_ ssrc: UInt32, reason: String?, at now: Nanoseconds) {
    guard media.direction.receives else { return }
    goodbyes.note(ssrc, at: now)
    end(ssrc, reason: reason)
  }

  private func end(_ ssrc: UInt32, reason: String?) {
    guard let index = place(of: ssrc) else { return }
    counts.add(receivers.remove(at: index))
    observer?.videoEnded(ssrc, reason: reason)
    for (repeating, original) in media.rtxSources where original == ssrc { observer?.sourceLeft(repeating) }
  }

  /// By hand, as the loops here: iterating an array, and so `firstIndex(where:)`, makes a heap request an element in debug builds.
  private func place(of ssrc: UInt32) -> Int? {
    for index in receivers.indices where receivers[index].ssrc == ssrc { return index }
    return nil
  }

  // MARK: What the peer reports

  /// Handles a datagram of RTCP, decrypted. What is behind something that cannot be skipped is not read.
  package func take(reports bytes: Span<UInt8>, at now: Nanoseconds) {
    var reader = RTCPReader(bytes)
    do throws(RTCPProblem) {
      while let packet = try reader.next() { take(packet, at: now) }
    } catch { counts.refused += 1 }
  }

  /// Handles a packet of RTCP.
  package func take(_ packet: RTCPPacket, at now: Nanoseconds) {
    switch packet {
    case .senderReport(let report):
      let info = report.info
      if let index = place(of: info.ssrc) { receivers[index].note(info, at: now) }
      if let sender, let block = report.blocks.block(about: sender.ssrc) { note(block, sender, at: now) }
    case .receiverReport(let report):
      if let sender, let block = report.blocks.block(about: sender.ssrc) { note(block, sender, at: now) }
    case .goodbye(let goodbye):
      for index in 0..<goodbye.count {
        leave(goodbye[index], reason: goodbye.reasonText, at: now)
        observer?.sourceLeft(goodbye[index])
      }
    case .nack(let nack): answer(nack, at: now)
    case .pictureLoss(let loss): if loss.media == ownSource { noteWish(at: now) }
    case .fullIntraRequest(let request):
      for index in 0..<request.count where request[index].media == ownSource {
        if wish.isNew(request.sender, request[index].number) { noteWish(at: now) }
      }
    default: break
    }
  }

  private func note(_ block: RTCPReportBlock, _ sender: VideoSender, at now: Nanoseconds) {
    sender.note(block, at: now)
    if let time = sender.statistics.smoothedRoundTrip { note(roundTrip: time) }
  }

  /// Notes the time to the peer and back, which decides when a packet is requested again.
  package func note(roundTrip: Nanoseconds) {
    knownRoundTrip = roundTrip
    sender?.roundTrip = roundTrip
    for index in receivers.indices { receivers[index].roundTrip = roundTrip }
  }

  private func answer(_ nack: RTCPNack, at now: Nanoseconds) {
    guard let sender, nack.media == sender.ssrc else { return }
    var sequences = nack.sequences
    while let number = sequences.next() {
      guard let count = sender.retransmit(number, at: now) else { continue }
      unsafe observer?.videoSends(sender.packet, count: count, isRTCP: false)
    }
  }

  private func noteWish(at now: Nanoseconds) {
    counts.keyFramesWanted += 1
    wish.want()
    reportWish(at: now)
  }

  private func reportWish(at now: Nanoseconds) {
    if wish.take(at: now) { observer?.videoWantsKeyFrame(medium: medium) }
  }

  // MARK: What is reported to the peer

  /// Sends what is due. Returns when to be called again.
  package func run(at now: Nanoseconds) -> Nanoseconds? {
    reportWish(at: now)
    sendWaiting(at: now)
    for index in receivers.indices {
      let receiver = receivers[index]
      receiver.run(at: now) { picture, bytes in deliver(picture, bytes) }
      requestPackets(of: receiver, at: now)
    }
    requestKeyFrames(at: now)
    while let action = schedule.due(at: now) { report(isLast: action == .goodbye, at: now) }
    return deadline
  }

  /// When `run` has something to do; nil: nothing by itself.
  package var deadline: Nanoseconds? {
    var earliest = schedule.deadline
    if let due = sender?.deadline { earliest = min(earliest ?? due, due) }
    if let due = wish.deadline { earliest = min(earliest ?? due, due) }
    for index in receivers.indices {
      if let due = receivers[index].deadline { earliest = min(earliest ?? due, due) }
    }
    return earliest
  }

  /// Says that this side ends.
  package func end(at now: Nanoseconds) {
    schedule.end(at: now, sentMedia: (sender?.statistics.packets ?? 0) > 0)
    while let action = schedule.due(at: now) { report(isLast: action == .goodbye, at: now) }
  }

  private func requestPackets(of receiver: VideoReceiver, at now: Nanoseconds) {
    var count = 0
    repeat {
      var numbers = InlineArray<64, UInt16>(repeating: 0)
      var room = numbers.mutableSpan
      count = receiver.requests(at: now, into: &room)
      guard count > 0 else { return }
      send(reports.request(numbers.span.extracting(0..<count), of: receiver.ssrc))
    } while count == Self.mostRequests
  }

  private func requestKeyFrames(at now: Nanoseconds) {
    guard reports.asksForKeyFrames else { return }
    for index in receivers.indices where receivers[index].takeKeyFrameRequest(at: now) {
      counts.keyFramesAsked += 1
      send(reports.requestKeyFrame(of: receivers[index].ssrc))
    }
  }

  private func report(isLast: Bool, at now: Nanoseconds) {
    guard !isQuiet || hasNews || isLast && (hasReported || (sender?.statistics.packets ?? 0) > 0) else {
      return
    }
    hasReported = true
    send(reports.report(sender?.report(at: now), receivers, isLast: isLast, at: now))
  }

  /// Something was sent or received since the last report.
  private var hasNews: Bool {
    if let sent = sender?.statistics.packetsSinceReport, sent > 0 { return true }
    for index in receivers.indices where receivers[index].statistics.packetsSinceReport > 0 { return true }
    return false
  }

  /// Sends the datagram of `reports` with so many bytes; nil: it could not be written.
  private func send(_ count: Int?) {
    guard let count else { return counts.refused += 1 }
    unsafe observer?.videoSends(reports.packet, count: count, isRTCP: true)
  }

  /// From here to the peer and back; nil before the first report about what was sent.
  package var roundTrip: Nanoseconds? { sender?.statistics.smoothedRoundTrip }

  /// Counts since the beginning.
  package var statistics: VideoStatistics {
    var all = counts
    if let sender {
      (all.sentPackets, all.sentBytes) = (sender.statistics.packets, sender.statistics.octets)
      (all.sentPictures, all.retransmitted) = (sender.pictures, sender.retransmitted)
      all.roundTrip = sender.statistics.smoothedRoundTrip
      all.remoteLoss = sender.statistics.remoteLoss
    }
    for receiver in receivers {
      all.add(receiver)
      all.jitter = max(all.jitter, receiver.statistics.jitterNanoseconds)
    }
    return all
  }
}

extension VideoStatistics {
  /// Adds what a source has sent.
  fileprivate mutating func add(_ receiver: VideoReceiver) {
    receivedPackets += receiver.statistics.packets
    receivedBytes += receiver.statistics.bytes
    receivedPictures += receiver.pictures
    lost += receiver.statistics.lost
    recovered += receiver.recovered
    damaged += receiver.damaged
    refused += receiver.refused
  }
}
