package import MillraceCore
package import MillraceRTCWire

/// A packet of sound, in the order of its arrival: a jitter buffer puts it in its place.
package struct ReceivedSound: Sendable, Equatable {
  /// The source it comes from.
  package var ssrc: UInt32
  /// The codec of the payload.
  package var codec: RTPCodec
  /// The number of the packet, counted on beyond 16 bits.
  package var sequence: Int64
  /// When it was made, by the clock of its codec, counted on beyond 32 bits. Begins anywhere.
  package var timestamp: Int64
  /// When it came, on the monotonic clock.
  package var arrival: Nanoseconds
  /// When it was captured, by the sender's wall clock in nanoseconds since 1900; 0: not known before its first report.
  package var capture: Int64
  package var payloadType: UInt8
  /// It begins after a silence.
  package var marker: Bool
  /// The source has begun again: what comes is not compared with what came.
  package var restarts: Bool
  /// The level that its sender measured; nil: it says none.
  package var level: RTPAudioLevel?
  /// Its place in `RTCSession.media`; 0 where there is one medium only.
  package var medium = 0
}

/// A whole encoded picture: an access unit of H.264 in Annex B form, or a frame of VP8. In the order of its source.
package struct ReceivedPicture: Sendable, Equatable {
  /// The source it comes from.
  package var ssrc: UInt32
  package var codec: RTPCodec
  /// By a clock of 90 kHz, counted on beyond 32 bits. Begins anywhere.
  package var timestamp: Int64
  /// When it was captured, by the sender's wall clock in nanoseconds since 1900; 0: not known before its first report.
  package var capture: Int64
  /// When it was complete, on the monotonic clock.
  package var arrival: Nanoseconds
  /// A decoder can start with it.
  package var isKey: Bool
  /// A part is missing, or may be.
  package var isDamaged: Bool
  /// Something between the picture before and this one is missing.
  package var followsLoss: Bool
  /// Its place in `RTCSession.media`; 0 where there is one medium only.
  package var medium = 0
}

/// A key that the peer has pressed (RFC 4733), after its end.
package struct ReceivedTone: Sendable, Equatable {
  /// The source it comes from.
  package var ssrc: UInt32
  /// 0 to 9, *, #, A to D.
  package var digit: Character
  package var milliseconds: Int

  package init(ssrc: UInt32, digit: Character, milliseconds: Int) {
    self.ssrc = ssrc
    self.digit = digit
    self.milliseconds = milliseconds
  }
}

extension MediaClock {
  /// Nanoseconds from 1900 to 1970, the epochs of NTP and Unix (RFC 868).
  private static let unixEpoch: Int64 = 2_208_988_800 * 1_000_000_000

  /// The sender's wall-clock time of a timestamp, in nanoseconds since 1900; 0 before the first report.
  func capture(of timestamp: UInt32) -> Int64 {
    guard let time = time(of: timestamp) else { return 0 }
    let (sum, overflow) = time.addingReportingOverflow(Self.unixEpoch)
    return overflow ? 0 : sum
  }
}
