internal import MillraceCore
package import MillraceRTCWire

/// A packet of sound, in the order of its arrival: a jitter buffer puts it in its place.
package struct ReceivedSound: Sendable, Equatable {
  /// The source it comes from.
  package var ssrc: UInt32
  /// The number of the packet, counted on beyond 16 bits.
  package var sequence: Int64
  /// When it was made, by the clock of its codec, counted on beyond 32 bits. Begins anywhere.
  package var timestamp: Int64
  package var payloadType: UInt8
  /// It begins after a silence.
  package var marker: Bool
  /// The source has begun again: what comes is not compared with what came.
  package var restarts: Bool
  /// The level that its sender measured; nil: it says none.
  package var level: RTPAudioLevel?
}

/// One source of sound of the peer.
struct SoundReceiver {
  let ssrc: UInt32
  private(set) var statistics: RTPReceiverStatistics
  /// Its clock, by its sender reports.
  private(set) var clock: MediaClock
  private var sequences = SequenceUnwrapper()
  private var timestamps = TimestampUnwrapper()
  private var window = ReceptionWindow()
  private var restarts = false
  private(set) var duplicates = 0
  /// Packets that came after 512 later ones.
  private(set) var tooLate = 0
  /// When the latest packet came.
  private(set) var heardAt: Nanoseconds

  init(ssrc: UInt32, clockRate: Int, at now: Nanoseconds) {
    self.ssrc = ssrc
    // Its packets are those of a peer that has proved who it is: the first one counts.
    statistics = RTPReceiverStatistics(ssrc: ssrc, clockRate: clockRate, probation: 0)
    clock = MediaClock(clockRate: clockRate)
    heardAt = now
  }

  /// Notes a packet. Nil: there is nothing to play.
  mutating func take(_ header: RTPHeader, at now: Nanoseconds) -> ReceivedSound? {
    heardAt = now
    let verdict = statistics.note(header, at: now)
    if verdict == .restarted {
      restarts = true
      sequences.reset()
      timestamps.reset()
      window.reset()
      clock.reset()
    }
    guard verdict == .valid || verdict == .restarted else { return nil }
    let number = sequences.unwrap(header.sequence)
    switch window.note(number) {
    case .inOrder, .reordered: break
    case .duplicate:
      duplicates += 1
      return nil
    case .tooOld:
      tooLate += 1
      return nil
    }
    // Padding alone, which probes the network.
    guard !header.payload.isEmpty else { return nil }
    defer { restarts = false }
    return ReceivedSound(
      ssrc: ssrc, sequence: number, timestamp: timestamps.unwrap(header.timestamp),
      payloadType: header.payloadType, marker: header.marker, restarts: restarts)
  }

  mutating func note(_ info: RTCPSenderInfo, at now: Nanoseconds) {
    statistics.noteSenderReport(info.time, at: now)
    clock.note(info.time, timestamp: info.timestamp)
  }

  mutating func reportBlock(at now: Nanoseconds) -> RTCPReportBlock? {
    // RFC 3550 section 6.4: not about who has sent nothing since the last report.
    statistics.packetsSinceReport > 0 ? statistics.reportBlock(at: now) : nil
  }
}
