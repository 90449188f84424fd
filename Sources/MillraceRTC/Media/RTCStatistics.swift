package import MillraceCore

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

/// How the pictures of a session pass over the network.
package struct VideoStatistics: Sendable, Equatable {
  /// Without retransmissions.
  package var sentPackets: UInt64 = 0
  package var sentBytes: UInt64 = 0
  package var sentPictures: UInt64 = 0
  package var receivedPackets: UInt64 = 0
  package var receivedBytes: UInt64 = 0
  /// Delivered, damaged ones included.
  package var receivedPictures: UInt64 = 0
  /// Packets of the peer that have not come at the first attempt.
  package var lost: Int64 = 0
  /// Packets that were sent once more.
  package var retransmitted = 0
  /// Packets of the peer that came after they were requested once more.
  package var recovered = 0
  /// Key frames that this side has asked for.
  package var keyFramesAsked = 0
  /// Key frames that the peer has asked for.
  package var keyFramesWanted = 0
  /// Pictures that were delivered with parts missing.
  package var damaged = 0
  /// Packets that are no RTP or RTCP, or of payload types and sources that nobody agreed on; pictures that could not be sent.
  package var refused = 0
  /// Variation of the transit time of the packets that come.
  package var jitter: Nanoseconds = 0
  /// From here to the peer and back; nil before the first report about what was sent.
  package var roundTrip: Nanoseconds?
  /// The part of what was sent that the peer has lost lately, 0 to 1.
  package var remoteLoss = 0.0

  package init() {}
}

/// Everything that a session counts.
package struct RTCStatistics: Sendable, Equatable {
  package var sound = SoundStatistics()
  package var video = VideoStatistics()
  /// Packets that were not taken by the transport.
  package var refusals = PeerRefusals()
  /// Bits a second that the network is estimated to carry to the peer, headers included; 0: not known.
  package var sendBitrate = 0
  /// From here to the peer and back; nil: not measured yet.
  package var roundTrip: Nanoseconds?

  package init() {}
}

extension SoundStatistics {
  /// Adds those of another medium. Of jitter, round trip and loss the larger counts.
  mutating func add(_ other: SoundStatistics) {
    sentPackets += other.sentPackets
    sentBytes += other.sentBytes
    receivedPackets += other.receivedPackets
    receivedBytes += other.receivedBytes
    lost += other.lost
    duplicates += other.duplicates
    tooLate += other.tooLate
    refused += other.refused
    jitter = max(jitter, other.jitter)
    remoteLoss = max(remoteLoss, other.remoteLoss)
    if let time = other.roundTrip { roundTrip = max(roundTrip ?? 0, time) }
  }
}

extension VideoStatistics {
  /// Adds those of another medium. Of jitter, round trip and loss the larger counts.
  mutating func add(_ other: VideoStatistics) {
    sentPackets += other.sentPackets
    sentBytes += other.sentBytes
    sentPictures += other.sentPictures
    receivedPackets += other.receivedPackets
    receivedBytes += other.receivedBytes
    receivedPictures += other.receivedPictures
    lost += other.lost
    retransmitted += other.retransmitted
    recovered += other.recovered
    keyFramesAsked += other.keyFramesAsked
    keyFramesWanted += other.keyFramesWanted
    damaged += other.damaged
    refused += other.refused
    jitter = max(jitter, other.jitter)
    remoteLoss = max(remoteLoss, other.remoteLoss)
    if let time = other.roundTrip { roundTrip = max(roundTrip ?? 0, time) }
  }
}
