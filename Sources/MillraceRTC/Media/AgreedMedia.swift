package import MillraceRTCWire

/// What both sides have agreed on about a medium, as an engine needs it: from an offer and its answer, or from settings where there are
/// none.
package struct AgreedMedia: Sendable {
  /// Seen from this side.
  package var direction: MediaDirection
  /// The codec that is sent, with the peer's payload type and parameters; nil: none.
  package var sendCodec: RTPCodec?
  /// Telephone events that the peer takes beside it, with its clock rate; nil: none (RFC 4733).
  package var sendTones: RTPCodec?
  /// The codecs that the peer may send, by payload type; telephone events are among them.
  package var receiveCodecs: [UInt8: RTPCodec]
  /// Payload types of retransmissions, and those that they repeat (RFC 4588).
  package var receiveRTX: [UInt8: UInt8] = [:]
  /// Sources of retransmissions, and those that they repeat, where the peer's description names them (RFC 5576 section 4.2).
  package var rtxSources: [UInt32: UInt32] = [:]
  /// The sources of the peer that its description names, those of retransmissions among them.
  package var sources: [UInt32] = []
  /// The numbers of header extensions.
  package var identifiers = RTPExtensionIdentifiers.none
  /// What packets say about the medium that they belong to.
  package var mid: RTPMediaID?
  /// Feedback may be sent without a report in front of it (RFC 5506).
  package var hasReducedSizeRTCP = false
  /// Parameter sets of H.264 that the description has and the stream may lack, without start codes (RFC 6184 section 8.1).
  package var parameterSets: [[UInt8]] = []

  /// Creates an agreement without extensions.
  package init(
    _ direction: MediaDirection, sendCodec: RTPCodec?, receiveCodecs: [RTPCodec], sendTones: RTPCodec? = nil
  ) {
    self.direction = direction
    self.sendCodec = sendCodec
    self.sendTones = sendTones
    self.receiveCodecs = Dictionary(receiveCodecs.map { ($0.payloadType, $0) }) { first, _ in first }
  }

  /// Takes what an offer and its answer agree on.
  package init(_ media: NegotiatedMedia) {
    direction = media.direction
    sendCodec = media.sendCodec
    sendTones = media.telephoneEvent
    receiveCodecs = media.receiveCodecs
    receiveRTX = media.receiveRTX
    for group in media.remoteSourceGroups where group.semantics == "FID" && group.ssrcs.count == 2 {
      rtxSources[group.ssrcs[1]] = group.ssrcs[0]
    }
    let described = media.remoteSources.map { $0.ssrc }
    sources = described + rtxSources.keys.filter { !described.contains($0) }
    let extensions = media.headerExtensions
    identifiers = RTPExtensionIdentifiers(
      audioLevel: extensions.audioLevel, mid: extensions.mid, absoluteSendTime: extensions.absoluteSendTime,
      transportSequence: extensions.transportCC)
    mid = extensions.mid == nil ? nil : RTPMediaID(media.mid)
    hasReducedSizeRTCP = media.hasReducedSizeRTCP
  }

  /// True where the peer reports this kind of feedback about what this side sends.
  package func readsFeedback(_ kind: RTCPFeedback.Kind) -> Bool {
    sendCodec?.feedback.contains(kind) ?? false
  }

  /// True where this side reports this kind of feedback about what the peer sends.
  package func sendsFeedback(_ kind: RTCPFeedback.Kind) -> Bool {
    receiveCodecs.values.contains { !$0.isAuxiliary && $0.feedback.contains(kind) }
  }
}
