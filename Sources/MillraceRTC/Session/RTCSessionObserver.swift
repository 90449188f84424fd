package import MillraceRTCWire

/// Where a session stands.
package enum RTCSessionState: Sendable, Equatable {
  /// Addresses of this side are searched, or the peer has not answered yet.
  case signalling
  /// Both descriptions are there: ICE, then DTLS.
  case connecting
  case connected
  /// The network has failed, and may come back.
  case disconnected
  /// The peer has ended.
  case closed
  case failed(RTCSessionFailure)
}

/// Why a session has failed.
package enum RTCSessionFailure: Error, Sendable, Equatable {
  /// The descriptions do not fit together.
  case negotiation(NegotiationProblem)
  /// The transport.
  case peer(PeerFailure)
  /// Not connected in time.
  case timeout
  /// Connected, and then not any more for too long.
  case lost
  case library(RTCProblem)
}

/// What a session reports, on the thread of its loop. The session must not be ended within a call.
package protocol RTCSessionObserver: AnyObject {
  /// The description of this side, an offer or an answer, is to be sent to the peer.
  func sessionDescribed(_ description: SessionDescription)
  /// A candidate that the description did not have; nil: no more follow.
  func sessionFound(_ candidate: ICECandidate?)
  func sessionChanged(_ state: RTCSessionState)
  /// Sound of the peer. The payload is valid only during the call.
  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>)
  /// A source of the peer has ended.
  func sessionEnded(source: UInt32, reason: String?)
  /// An encoded picture of the peer, whole. The bytes are valid only during the call.
  func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>)
  /// The peer has pressed a key of a telephone.
  func sessionReceived(_ tone: ReceivedTone)
  /// The peer needs a key frame of a medium, by its place in `RTCSession.media`; at most every 300 ms each.
  func sessionWantsKeyFrame(medium: Int)
  /// Bits a second that one encoder of each kind may make, as many as have sent lately, when one has changed by 5 % or
  /// more. 0: none is sent, or it pauses.
  func sessionAllocated(sound: Int, video: Int)
  func sessionReceived(_ event: DataChannelEvent)
}
