internal import MillraceCore
internal import MillraceRTCWire

/// One source of sound of the peer.
struct SoundReceiver {
  let ssrc: UInt32
  let clockRate: Int
  private(set) var statistics: RTPReceiverStatistics
  /// Its clock, by its sender reports.
  private(set) var clock: MediaClock
  private var sequences = SequenceUnwrapper()
  private var timestamps = TimestampUnwrapper()
  private var window = ReceptionWindow()
  private var restarts: Bool
  private var tones: TelephoneEventReceiver
  private var toneRate: Int
  private(set) var duplicates = 0
  /// Packets that came after 512 later ones.
  private(set) var tooLate = 0
  /// When the latest packet came.
  private(set) var heardAt: Nanoseconds

  /// - Parameter restarts: the source was there before, with another clock.
  init(ssrc: UInt32, clockRate: Int, restarts: Bool = false, at now: Nanoseconds) {
    self.ssrc = ssrc
    self.clockRate = clockRate
    self.restarts = restarts
    (toneRate, tones) = (clockRate, Self.tones(clockRate))
    // Its packets are those of a peer that has proved who it is: the first one counts.
    statistics = RTPReceiverStatistics(ssrc: ssrc, clockRate: clockRate, probation: 0)
    clock = MediaClock(clockRate: clockRate)
    heardAt = now
  }

  /// Notes a packet of a codec. Nil: it is of no use.
  mutating func take(_ header: RTPHeader, _ codec: RTPCodec, at now: Nanoseconds) -> ReceivedSound? {
    guard let number = place(header, at: now) else { return nil }
    defer { restarts = false }
    return ReceivedSound(
      ssrc: ssrc, codec: codec, sequence: number, timestamp: timestamps.unwrap(header.timestamp),
      arrival: now, capture: clock.capture(of: header.timestamp), payloadType: header.payloadType,
      marker: header.marker, restarts: restarts)
  }

  private static func tones(_ rate: Int) -> TelephoneEventReceiver {
    TelephoneEventReceiver(clockRate: max(1, min(rate, 192_000)))
  }

  /// Takes telephone events. Those that are over are reported.
  /// - Parameter clockRate: of their format, which may differ from that of the voice.
  mutating func take(
    tones payload: Span<UInt8>, _ header: RTPHeader, clockRate rate: Int, at now: Nanoseconds,
    _ report: (TelephoneEventReport) -> Void
  ) throws(PayloadProblem) {
    guard place(header, at: now) != nil else { return }
    if rate != toneRate { (toneRate, tones) = (rate, Self.tones(rate)) }
    try tones.receive(
      payload, timestamp: header.timestamp, marker: header.marker, at: now, report: report)
  }

  /// A telephone event whose end was lost; nil: none.
  mutating func expireTone(at now: Nanoseconds) -> TelephoneEventReport? { tones.expire(at: now) }

  /// When a telephone event is taken for over; nil: none lasts.
  var toneDeadline: Nanoseconds? { tones.deadline }

  /// The number of a packet; nil: it came before, is not one of the source's, or is empty.
  private mutating func place(_ header: RTPHeader, at now: Nanoseconds) -> Int64? {
    heardAt = now
    let verdict = statistics.note(header, at: now)
    if verdict == .restarted {
      restarts = true
      sequences.reset()
      timestamps.reset()
      window.reset()
      clock.reset()
      tones.reset()
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
    return header.payload.isEmpty ? nil : number
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
