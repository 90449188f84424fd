package import MillraceDialog
package import MillraceRTCWire

/// Which session of a signalling an event is about: the only one of WHIP, one of many viewers of a WHEP server, one feed of a video room.
package struct SignalSessionID: Hashable, Sendable, CustomStringConvertible {
  /// Unique within one `Signalling`.
  package var number: Int

  package init(_ number: Int) { self.number = number }

  package var description: String { "session \(number)" }
}

/// What a session carries, seen from this side.
package struct SignalMedia: Sendable, Hashable {
  package var audio: MediaDirection
  package var video: MediaDirection
  /// Data channels.
  package var hasData: Bool
  /// Media that only receive, beside the first of their kind; they follow it in the description. A room assigns participants to them
  /// (`SignalEvent.slot`).
  package var audioSlots: Int
  package var videoSlots: Int

  package init(
    audio: MediaDirection = .inactive, video: MediaDirection = .inactive, hasData: Bool = false,
    audioSlots: Int = 0, videoSlots: Int = 0
  ) {
    self.audio = audio
    self.video = video
    self.hasData = hasData
    self.audioSlots = audioSlots
    self.videoSlots = videoSlots
  }
}

/// A STUN or TURN server that a signalling has learnt of (RFC 9725 section 4.6).
package struct SignalServer: Sendable, Hashable {
  /// `stun:host:port`, `turn:host:port?transport=udp` (RFC 7064, RFC 7065).
  package var url: String
  package var user: String?
  package var password: String?

  package init(url: String, user: String? = nil, password: String? = nil) {
    self.url = url
    self.user = user
    self.password = password
  }
}

/// What a form of signalling reports. On its own thread, one event at a time, never within a call to it.
package enum SignalEvent: Sendable {
  /// This side is to offer a session: `Signalling.describe` with its offer follows.
  case wantsOffer(SignalSessionID, SignalMedia, servers: [SignalServer])
  /// The other side offers: `Signalling.describe` with the answer follows. A known session: the peer describes it again, as for an ICE
  /// restart.
  case offer(SignalSessionID, sdp: String, SignalMedia, peer: String?)
  /// The other side has answered the latest offer.
  case answer(SignalSessionID, sdp: String)
  /// A candidate of the other side, `candidate:…`; nil: no more follow.
  case candidate(SignalSessionID, String?)
  /// A session is over on the other side. The signalling continues.
  case sessionEnded(SignalSessionID)
  /// What the other side says about the call, the room, its members.
  case event(DialogEvent)
  /// Whose packets the medium with this `mid` of the main session carries from now on; nobody's without a peer.
  case slot(mid: String, track: DialogTrack, peer: String?)
  /// What there is to connect is connected, and there is no session, as in a room where only messages are exchanged. Not complete:
  /// sessions follow once there is another side.
  case ready(isComplete: Bool)
  /// A picture from which a decoder can begin is wanted of this side.
  case wantsKeyFrame
  /// A message of a participant that came by the signalling, and not by a data channel.
  case data(label: String, [UInt8], isText: Bool, from: String)
  /// A session could not be signalled, and the signalling continues: a publisher or viewer that a server refused, a feed that could not be
  /// subscribed to.
  case sessionFailed(SignalSessionID, DialogError)
  /// The signalling has failed or has ended. The last event.
  case closed(DialogError)
}

/// What a form of signalling can do.
package struct SignalTraits: Sendable, Hashable {
  /// Candidates may follow the description.
  package var isTrickle = false
  /// A session can be described again by `Signalling.restart`.
  package var canRestart = false
  /// It waits for others; without sessions it is not over.
  package var isServer = false
  /// Messages go by `Signalling.send`, and not over data channels.
  package var carriesMessages = false

  package init(
    isTrickle: Bool = false, canRestart: Bool = false, isServer: Bool = false, carriesMessages: Bool = false
  ) {
    self.isTrickle = isTrickle
    self.canRestart = canRestart
    self.isServer = isServer
    self.carriesMessages = carriesMessages
  }
}

/// What became of a message that was given to a form of signalling.
package enum SignalSending: Sendable, Hashable {
  /// It is on its way.
  case sent
  /// There is no room for it now; try again later.
  case full
  /// It is larger than the form carries: give it up.
  case tooLarge
  /// The form carries no messages, or not to this participant: it goes over data channels, if at all.
  case unsupported
}

/// One form of signalling: how two sides learn each other's descriptions. WHIP, WHEP, RTS, Janus, as client or as server; the open room.
///
/// All calls may come from any thread; none blocks. An object is begun once; another attempt takes another object.
package protocol Signalling: AnyObject, Sendable {
  /// What it can do; may change once, when the server has said what it supports.
  var traits: SignalTraits { get }
  /// Begins.
  func begin(_ report: @escaping @Sendable (SignalEvent) -> Void)
  /// The description of this side: the offer that was asked for, or the answer.
  func describe(_ session: SignalSessionID, sdp: String)
  /// This side refuses the latest offer of the other side for a session that runs: the session continues as before. The other side
  /// learns of it where the form has a message for that.
  /// - Parameter text: what is wrong and the cure; no secret.
  func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String)
  /// A further candidate of this side; nil: no more follow. Ignored where `isTrickle` is false.
  func add(_ candidate: String?, to session: SignalSessionID)
  /// An offer with new ICE credentials for a session that lost its way; the answer is reported. Only where `canRestart`.
  func restart(_ session: SignalSessionID, sdp: String)
  /// Media passes in a session.
  func connected(_ session: SignalSessionID)
  /// This side has given a session up: its place at the other side is released.
  func end(_ session: SignalSessionID)
  /// Carries a command out, if the form has something like it: answers once, nil for success. False: it has nothing like it, and does not
  /// answer.
  func perform(_ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void) -> Bool
  /// Sends a message beside sound and pictures. Only where `carriesMessages`.
  /// - Parameters:
  ///   - bytes: the message; UTF-8 where it is text.
  ///   - isText: whether the receiver gets a text.
  ///   - label: the name of the channel.
  ///   - peer: the participant it is for; nil: all others.
  func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending
  /// Ends everything: releases what the other side holds (DELETE, leave, destroy), in a bounded time, and calls `done` once. Nothing is
  /// reported from here on. A second call has its `done` called too.
  func end(_ done: @escaping @Sendable () -> Void)
}

extension Signalling {
  package func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {}
  package func add(_ candidate: String?, to session: SignalSessionID) {}
  package func restart(_ session: SignalSessionID, sdp: String) {}
  package func connected(_ session: SignalSessionID) {}
  package func perform(_ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void) -> Bool {
    false
  }
  package func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending {
    .unsupported
  }
}
