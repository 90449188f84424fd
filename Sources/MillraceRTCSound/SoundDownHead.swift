package import MillraceCore

/// The head of a packet of sound that has come.
package struct SoundDownHead: MediaHead {
  package static let byteCount = 56
  /// The source: unique among all sessions of the node while it is heard.
  package var source: UInt64
  /// The number of the packet, counted on beyond 16 bits.
  package var sequence: Int64
  /// By the clock of its codec, counted on beyond 32 bits.
  package var timestamp: Int64
  /// When it arrived, on the monotonic clock.
  package var arrival: Nanoseconds
  /// When it was captured, by the sender's wall clock in nanoseconds since 1900; 0: not known.
  package var capture: Int64
  package var codec: UInt64
  /// In dB below full scale, 0 to 127; 255: its sender says none.
  package var level: UInt8
  /// It begins after a silence.
  package var marker: Bool
  /// The source has begun again: what comes is not compared with what came.
  package var restarts: Bool
  /// Which of the session's received media of its kind it came in, from 0.
  package var medium: UInt8 = 0

  package init(
    source: UInt64, sequence: Int64, timestamp: Int64, arrival: Nanoseconds, capture: Int64, codec: UInt64,
    level: UInt8, marker: Bool, restarts: Bool, medium: UInt8 = 0
  ) {
    self.source = source
    self.sequence = sequence
    self.timestamp = timestamp
    self.arrival = arrival
    self.capture = capture
    self.codec = codec
    self.level = level
    self.marker = marker
    self.restarts = restarts
    self.medium = medium
  }
}
