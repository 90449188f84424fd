package import MillraceCore
package import MillraceRTCWire

/// How much a session may send, and what is reported to the peer about what it sends: one for all media of a transport.
///
/// Numbers the packets of all media (draft-holmer-rmcat-transport-wide-cc-extensions-01), reads feedback, REMB and losses of reports, and
/// shares what the network carries between sound and pictures. Records what arrives, for feedback or REMB. Sans-IO; one thread; no heap
/// request after `init`.
package final class CongestionControl {
  /// What a session asks for, and what was agreed on.
  package struct Settings: Sendable {
    /// The source of feedback.
    package var sender: UInt32
    /// The sources whose losses count where there is no other feedback.
    package var reported: [UInt32]
    /// Bits a second that the sound of one medium may take; nil: none is sent.
    package var sound: ClosedRange<Int>?
    /// Bits a second that the pictures of one medium may take; nil: none are sent.
    package var video: ClosedRange<Int>?
    /// Media that may send sound, and pictures.
    package var sounds = 1
    package var videos = 1
    /// The header extension of the transport-wide number; nil: not agreed on.
    package var transportSequence: UInt8?
    /// The header extension of the time a packet left; nil: not agreed on.
    package var absoluteSendTime: UInt8?
    /// The peer reports the arrival of all packets.
    package var readsFeedback = false
    /// This side does.
    package var sendsFeedback = false
    /// This side estimates for the peer, which does not take feedback about each packet.
    package var sendsREMB = false

    package init(sender: UInt32) {
      self.sender = sender
      reported = [sender]
    }
  }

  /// Bytes of a packet that the network carries besides: IPv4, UDP and the tag of SRTP (`MediaAllocation.Overhead`).
  private static let networkBytes = 28 + 10
  /// How much more than the estimate leaves at once when a picture is large (libwebrtc, `kDefaultPaceMultiplier`).
  private static let paceFactor = 2.5
  /// The part by which a share must change to be announced.
  private static let change = 0.05
  /// Added to the 100 ms of feedback where only sound comes, which needs no quick answer (libwebrtc, `kMaxInterval` 250 ms).
  private static let soundDelay: Nanoseconds = .milliseconds(150)
  /// Between two looks at the silence of the peer.
  private static let tickInterval: Nanoseconds = .milliseconds(500)
  /// Bits a second of the heads of sound: 50 packets of 62 bytes, rounded up.
  private static let soundOverhead = 30_000
  /// The usual time of a packet of sound.
  private static let packetTime: Nanoseconds = .milliseconds(20)
  /// Packets that are remembered until feedback about them comes: those of two seconds, with pictures and of sound alone.
  private static let mostRemembered = (video: 2_048, sound: 256)
  /// The estimate before anything is known, with pictures (libwebrtc, `kDefaultStartBitrate`).
  private static let start: Int64 = 300_000

  private var settings: Settings
  private var history: TransportFeedbackHistory
  private var recorder: TransportFeedbackRecorder
  private var estimator: BandwidthEstimator
  private var receiver: ReceiverEstimator
  private var sequence: UInt16
  private var isVideoPaused = false
  private var announced: (sound: Int, video: Int)?
  /// Media whose packets wait for their turn: they share the pace.
  package var waiting = 1
  /// A source of the peer, which feedback has to name.
  private var media: UInt32 = 0
  private var videoHeardAt: Nanoseconds?
  private var tickAt: Nanoseconds?
  /// Something was learnt about the network.
  private var hasEstimate = false

  /// Creates a control.
  /// - Parameter sequence: before the number of the first packet.
  package init(_ settings: Settings, sequence: UInt16 = 0) {
    self.settings = settings
    self.sequence = sequence
    let ofSound = min(Self.mostRemembered.sound * max(1, settings.sounds), Self.mostRemembered.video)
    let remembered = settings.video == nil ? ofSound : Self.mostRemembered.video
    history = TransportFeedbackHistory(capacity: settings.readsFeedback ? remembered : 16)
    recorder = TransportFeedbackRecorder(
      sender: settings.sender, capacity: settings.sendsFeedback ? 1_024 : 16)
    estimator = BandwidthEstimator(Self.limits(settings))
    receiver = ReceiverEstimator(
      clock: settings.absoluteSendTime == nil ? .timestamps(rate: 90_000) : .absoluteSendTime)
  }

  private static func limits(_ settings: Settings) -> BandwidthLimits {
    let sound =
      settings.sound.map { ($0.lowerBound, ($0.upperBound + soundOverhead) * max(1, settings.sounds)) }
      ?? (0, 0)
    guard let video = settings.video else {
      // Sound alone needs no ramp: it begins with what it may take.
      return BandwidthLimits(
        minimum: Int64(sound.0), start: Int64(sound.1), maximum: Int64(sound.1))
    }
    // A tenth more, for the heads of the packets.
    let most = Int64(sound.1) + Int64(video.upperBound) * 11 / 10 * Int64(max(1, settings.videos))
    return BandwidthLimits(minimum: Int64(max(sound.0, 30_000)), start: start, maximum: most)
  }

  /// Takes media that came later: those that send, by what they may take, and the sources whose losses count. What was agreed on about
  /// feedback stays.
  package func extend(
    sound: ClosedRange<Int>?, video: ClosedRange<Int>?, sounds: Int, videos: Int, reported: [UInt32]
  ) {
    let beginsVideo = settings.video == nil && video != nil
    (settings.sound, settings.video) = (sound, video)
    (settings.sounds, settings.videos, settings.reported) = (sounds, videos, reported)
    guard beginsVideo else { return estimator.set(Self.limits(settings)) }
    // What sound alone has shown is hardly more than sound takes: pictures would never be given anything.
    estimator = BandwidthEstimator(Self.limits(settings))
    if settings.readsFeedback { history = TransportFeedbackHistory(capacity: Self.mostRemembered.video) }
  }

  // MARK: Sending

  /// Takes note of a packet of this many bytes that leaves, and gives its number among all.
  package func number(bytes: Int, at now: Nanoseconds) -> UInt16 {
    sequence &+= 1
    if settings.readsFeedback { history.note(sequence: sequence, bytes: bytes + Self.networkBytes, at: now) }
    estimator.noteSent(at: now)
    return sequence
  }

  /// Bits a second at which the queued packets of one medium leave.
  package var pace: Int {
    let least = settings.video?.lowerBound ?? 0
    return Int(Self.paceFactor * Double(max(estimator.target, Int64(least)))) / max(1, waiting)
  }

  /// Bits a second that the network is estimated to carry; 0: not known.
  package var estimate: Int { hasEstimate ? Int(estimator.target) : 0 }

  // MARK: What the peer reports

  /// Handles a packet of RTCP.
  package func take(_ packet: RTCPPacket, at now: Nanoseconds) {
    switch packet {
    case .transportFeedback(let feedback):
      guard settings.readsFeedback else { return }
      history.join(feedback) { estimator.note(result: $0, at: now) }
      estimator.endFeedback(at: now)
      hasEstimate = true
    case .bitrateEstimate(let remb):
      estimator.note(remb: Int64(clamping: remb.bitrate), at: now)
      hasEstimate = true
    case .senderReport(let report):
      take(report.blocks, at: now)
    case .receiverReport(let report):
      take(report.blocks, at: now)
    default: break
    }
  }

  /// Of several sources the one that has lost most counts: they take the same way.
  private func take(_ blocks: RTCPReportBlocks, at now: Nanoseconds) {
    var worst: UInt8?
    for index in settings.reported.indices {
      guard let block = blocks.block(about: settings.reported[index]) else { continue }
      worst = max(worst ?? 0, block.fractionLost)
    }
    guard let worst else { return }
    estimator.note(loss: Double(worst) / 256, at: now)
    hasEstimate = true
  }

  /// Notes the time to the peer and back.
  package func note(roundTrip: Nanoseconds) {
    estimator.note(roundTrip: roundTrip)
    receiver.note(roundTrip: roundTrip)
  }

  /// What the sound and the pictures of one medium may take, in bits a second, when one has changed by 5 % or more; once at the beginning.
  /// - Parameters:
  ///   - sounds: media of sound among which their part is shared.
  ///   - videos: those of pictures.
  ///   - soundSent: bits a second of sound that is sent on as it comes: no encoder will take more, so that no more is kept back from the
  ///     pictures; nil: encoders make it.
  package func takeAllocation(
    sounds: Int = 1, videos: Int = 1, soundSent: Int? = nil
  ) -> (sound: Int, video: Int)? {
    let (sounds, videos) = (max(1, sounds), max(1, videos))
    // Packets of several media at once are, for their heads, more packets of one.
    let audio = settings.sound.map { range in
      let least = range.lowerBound * sounds
      let most = range.upperBound * sounds
      let used = soundSent.map { min(most, max(least, $0 / 4 * 5)) } ?? most
      return MediaAllocation.Audio(
        minimum: Int64(least), maximum: Int64(used), packetTime: Self.packetTime / Int64(sounds))
    }
    let video = settings.video.map {
      MediaAllocation.Video(floor: Int64($0.lowerBound), maximum: Int64($0.upperBound * videos))
    }
    let share = MediaAllocation.share(
      estimator.target, audio: audio, video: video, isVideoPaused: isVideoPaused)
    isVideoPaused = share.isVideoPaused
    let new = (sound: Int(share.audio) / sounds, video: Int(share.video) / videos)
    if let old = announced, !Self.differ(old.sound, new.sound), !Self.differ(old.video, new.video) {
      return nil
    }
    announced = new
    return new
  }

  private static func differ(_ old: Int, _ new: Int) -> Bool {
    old != new && Double(abs(new - old)) >= change * Double(old)
  }

  // MARK: What comes

  /// Notes a packet that has come, for feedback to the peer.
  package func note(received header: RTPHeader, in packet: Span<UInt8>, isVideo: Bool, at now: Nanoseconds) {
    media = header.ssrc
    if isVideo { videoHeardAt = now }
    if settings.sendsFeedback, let identifier = settings.transportSequence,
      let number = header.transportSequence(identifier, in: packet)
    {
      recorder.note(sequence: number, at: now)
    }
    guard settings.sendsREMB, isVideo else { return }
    let bytes = packet.count + Self.networkBytes
    guard let identifier = settings.absoluteSendTime else {
      return receiver.note(stamp: header.timestamp, bytes: bytes, at: now)
    }
    guard let stamp = header.absoluteSendTime(identifier, in: packet) else { return }
    receiver.note(stamp: stamp.rawValue, bytes: bytes, at: now)
  }

  /// When feedback is due; nil: there is nothing to report.
  package var feedbackDeadline: Nanoseconds? {
    guard let deadline = recorder.deadline else { return nil }
    let hasVideo = videoHeardAt.map { deadline &- $0 < .milliseconds(1_000) } ?? false
    return hasVideo ? deadline : deadline &+ Self.soundDelay
  }

  /// True when feedback is due.
  package func hasFeedback(at now: Nanoseconds) -> Bool { feedbackDeadline.map { $0 <= now } ?? false }

  /// Writes feedback. True: there is more, for another datagram.
  package func writeFeedback(into writer: inout RTCPWriter, at now: Nanoseconds) throws(RTCPProblem) -> Bool {
    try recorder.write(media: media, into: &writer, at: now)
  }

  /// The bits a second of a REMB, when one is due.
  package func takeREMB(at now: Nanoseconds) -> Int64? {
    settings.sendsREMB ? receiver.takeReport(at: now) : nil
  }

  // MARK: Time

  /// Lowers the estimate while the peer is silent. Returns when to be called again.
  package func run(at now: Nanoseconds) -> Nanoseconds {
    if tickAt.map({ $0 <= now }) ?? true {
      estimator.tick(at: now)
      tickAt = now &+ Self.tickInterval
    }
    let tick = tickAt ?? now &+ Self.tickInterval
    return min(tick, feedbackDeadline ?? tick)
  }
}
