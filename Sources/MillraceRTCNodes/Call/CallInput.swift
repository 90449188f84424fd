internal import MillraceDialog
internal import MillraceRTCSignal

/// What happened to a call.
enum CallInput: Sendable {
  /// The call begins.
  case start
  /// The signalling of the present attempt reports something.
  case signal(SignalEvent)
  /// This side's description of a session is made: an offer, an answer, or the offer of a restart.
  case described(SignalSessionID)
  /// The peer's latest offer for a session that runs is refused.
  case refused(SignalSessionID, DialogError)
  /// A session has changed.
  case session(SignalSessionID, CallSessionChange)
  /// The first packet of media of a session has come.
  case received(SignalSessionID)
  /// The first packet of media was sent in a session.
  case sent(SignalSessionID)
  /// The signalling that was asked to end has ended.
  case signallingEnded
  /// Everything is to be recreated, such as for another address.
  case renew
  /// The call is to end.
  case hangUp
  /// Time has passed.
  case tick
}

/// A change of a session, as the call sees it.
enum CallSessionChange: Sendable, Hashable {
  /// Media passes, in these directions as seen from this side.
  case connected(SignalMedia)
  /// The network is interrupted.
  case disconnected
  /// The peer has ended it.
  case closed
  case failed(DialogError)
}

/// What a call has to do.
enum CallAction: Sendable, Hashable {
  /// Make the signalling of the next attempt, and begin.
  case begin
  /// End the present signalling; `CallInput.signallingEnded` follows.
  case endSignalling
  /// Make a session and its offer.
  case offer(SignalSessionID, SignalMedia, servers: [SignalServer])
  /// Make a session, or take the one that is there, and answer.
  case answer(SignalSessionID, sdp: String, SignalMedia, peer: String?)
  /// Hand this side's description to the signalling.
  case describe(SignalSessionID)
  /// Tell the peer and the node that an offer is refused.
  case refuse(SignalSessionID, DialogError)
  /// Hand the offer of a restart to the signalling.
  case describeRestart(SignalSessionID)
  /// Take the peer's answer.
  case accept(SignalSessionID, sdp: String)
  /// Take a candidate of the peer; nil: no more follow.
  case add(SignalSessionID, String?)
  /// Restart ICE.
  case restart(SignalSessionID)
  /// Tell the signalling that media passes.
  case confirm(SignalSessionID)
  /// End a session properly; `tells`: its place at the other side is released too.
  case end(SignalSessionID, tells: Bool, DialogError?)
  case post(DialogEvent)
  /// Say whose packets a medium of the main session carries from now on.
  case slot(mid: String, track: DialogTrack, peer: String?)
  /// Ask the encoder of this side for a key frame.
  case wantKeyFrame
  /// Deliver a message that came by the signalling.
  case deliver(label: String, [UInt8], isText: Bool, from: String)
  /// The call is over, with an error when it failed.
  case finish(DialogError?)
}
