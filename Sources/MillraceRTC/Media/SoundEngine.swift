package import MillraceCore
package import MillraceRTCWire

/// What a `SoundEngine` reports, within its calls.
package protocol SoundObserver: AnyObject {
  /// Sends a packet of `count` bytes, with room for protection behind it.
  func soundSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool)
  /// The peer has sent sound. The payload is valid only during the call.
  func soundReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>)
  /// A source of the peer has ended, with its reason or none.
  func soundEnded(_ ssrc: UInt32, reason: String?)
}

/// How the sound of a session passes over the network.
package struct SoundStatistics: Sendable, Equatable {
  package var sentPackets: UInt64 = 0
  package var sentBytes: UInt64 = 0
  package var receivedPackets: UInt64 = 0
  package var receivedBytes: UInt64 = 0
  /// Packets of the peer that have not come.
  package var lost: Int64 = 0
  package var duplicates = 0
  package var tooLate = 0
  /// Variation of the transit time of the packets that come.
  package var jitter: Nanoseconds = 0
  /// From here to the peer and back; nil before the first report about what was sent.
  package var roundTrip: Nanoseconds?
  /// The part of what was sent that the peer has lost lately, 0 to 1.
  package var remoteLoss = 0.0
  /// Packets that are no RTP or RTCP, or of payload types and sources that nobody agreed on.
  package var refused = 0

  package init() {}
}

/// The sound of a session as RTP: writes what is to be sent, reads what comes, and reports both ways. Sans-IO; one thread; no heap request for
/// a packet.
@safe
package final class SoundEngine {
  /// Sources of the peer at the same time: a mixer sends one, a conference server may send one a participant. Further ones are
  /// refused.
  package static let sources = 64
  /// A source that was silent for as long makes room for others: five intervals of reports (RFC 3550 section 6.3.5).
  private static let forgottenAfter: Nanoseconds = .milliseconds(25_000)

  private weak var observer: (any SoundObserver)?
  private let media: NegotiatedMedia
  private let source: LocalSource
  private var sender: SoundSender?
  private var receivers: [SoundReceiver] = []
  private var schedule: ReportSchedule
  private var refused = 0
  /// Counts of sources that have ended.
  private var ended = SoundStatistics()
  private var transportSequence: UInt16 = 0
  /// The source whose turn it is in the next report, which has room for 31.
  private var nextReported = 0
  private let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SoundSender.packetBytes + SRTPContext.trailer, alignment: 8)

  /// Creates an engine for a medium that was agreed on.
  /// - Parameters:
  ///   - source: the source that the description of this side names.
  ///   - seed: makes the first numbers, and the times of reports.
  package init(
    _ media: NegotiatedMedia, source: LocalSource, seed: UInt64, at now: Nanoseconds,
    observer: any SoundObserver
  ) {
    self.media = media
    self.observer = observer
    self.source = source
    schedule = ReportSchedule(.audio, seed: seed, at: now)
    receivers.reserveCapacity(Self.sources)
    guard media.direction.sends, let codec = media.sendCodec else { return }
    sender = SoundSender(
      ssrc: source.ssrc, codec: codec, media, sequence: SoundSender.firstSequence(seed),
      timestamp: UInt32(truncatingIfNeeded: seed))
  }

  deinit { unsafe packet.deallocate() }

  /// The codec to send; nil: nothing is sent.
  package var codec: RTPCodec? { sender == nil ? nil : media.sendCodec }

  // MARK: Sending

  /// Sends a payload of the codec.
  /// - Parameters:
  ///   - duration: its samples per channel, by the clock of the codec.
  ///   - pause: samples that were not sent before it.
  package func send(
    _ payload: Span<UInt8>, duration: Int, pause: Int = 0, level: RTPAudioLevel? = nil, at now: Nanoseconds
  ) {
    guard sender != nil else { return }
    let number = transportSequence &+ 1
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var bytes = unsafe room.bindMemory(to: UInt8.self).mutableSpan
    let count = sender?.write(
      payload, duration: duration, pause: pause, level: level, transportSequence: number, at: now,
      into: &bytes)
    guard let count else { return refused += 1 }
    transportSequence = number
    unsafe observer?.soundSends(packet, count: count, isRTCP: false)
  }

  // MARK: Receiving

  /// Handles a packet of RTP, decrypted.
  package func take(_ bytes: Span<UInt8>, at now: Nanoseconds) {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: bytes) } catch { return refused += 1 }
    guard let codec = media.receiveCodecs[header.payloadType], media.direction.receives,
      let index = receiver(header.ssrc, codec, at: now)
    else { return refused += 1 }
    guard var sound = receivers[index].take(header, at: now) else { return }
    if let identifier = media.headerExtensions.audioLevel {
      sound.level = header.audioLevel(identifier, in: bytes)
    }
    observer?.soundReceived(sound, bytes.extracting(header.payload))
  }

  private func receiver(_ ssrc: UInt32, _ codec: RTPCodec, at now: Nanoseconds) -> Int? {
    if let index = receivers.firstIndex(where: { $0.ssrc == ssrc }) { return index }
    if receivers.count == Self.sources {
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

  private func take(_ packet: borrowing RTCPPacket, at now: Nanoseconds) {
    switch packet {
    case .senderReport(let report):
      if let index = receivers.firstIndex(where: { $0.ssrc == report.info.ssrc }) {
        receivers[index].note(report.info, at: now)
      }
      if let sender, let block = report.blocks.block(about: sender.ssrc) { self.sender?.note(block, at: now) }
    case .receiverReport(let report):
      if let sender, let block = report.blocks.block(about: sender.ssrc) { self.sender?.note(block, at: now) }
    case .goodbye(let goodbye):
      for index in 0..<goodbye.count { end(goodbye[index], reason: goodbye.reasonText) }
    default: break
    }
  }

  private func end(_ ssrc: UInt32, reason: String?) {
    guard let index = receivers.firstIndex(where: { $0.ssrc == ssrc }) else { return }
    ended.add(receivers.remove(at: index))
    observer?.soundEnded(ssrc, reason: reason)
  }

  // MARK: Reports

  /// Sends what is due. Returns when to be called again.
  package func run(at now: Nanoseconds) -> Nanoseconds? {
    while let action = schedule.due(at: now) { report(isLast: action == .goodbye, at: now) }
    return schedule.deadline
  }

  /// Says that this side ends.
  package func end(at now: Nanoseconds) {
    schedule.end(at: now, sentMedia: (sender?.statistics.packets ?? 0) > 0)
    _ = run(at: now)
  }

  private func report(isLast: Bool, at now: Nanoseconds) {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) { try write(&writer, isLast: isLast, at: now) } catch { return refused += 1 }
    unsafe observer?.soundSends(packet, count: writer.count, isRTCP: true)
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
