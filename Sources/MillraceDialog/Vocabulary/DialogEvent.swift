public import MillraceJSON

/// An event of a dialogue, a call or a room, in a form that is the same for every service. `Documentation/dialog.md` lists each vendor's
/// messages beside them.
///
/// No message is lost: a known one without a common form is `extra` under the vendor's name, and an unknown one is `unknown`. A `round` is
/// the vendor's id of the turn or reply that an event belongs to; nil where the vendor does not say.
public enum DialogEvent: Sendable, Hashable {
  /// The connection, the login and everything else before a dialogue are complete. A server posts it for the first of its sessions, and
  /// again for the next one after it had none.
  case connected
  /// The dialogue began; its id can resume it later.
  case conversationStarted(id: String)
  /// The state of the dialogue changed.
  case state(DialogState)
  /// The service detected that the user started speaking.
  case speechStarted
  /// The service detected that the user stopped speaking.
  case speechEnded
  /// What the user said so far; replaces the transcript before. Final when it will not change.
  case transcript(text: String, isFinal: Bool, round: String? = nil)
  /// Reply text.
  case reply(DialogReply)
  /// The audio of a reply begins to arrive.
  case replyStarted(round: String?)
  /// A reply has arrived completely, with this many utterances of audio, possibly 0. It may still be playing.
  case replyEnded(round: String?, utterances: Int)
  /// A reply was interrupted.
  case interrupted(by: InterruptionSource, round: String? = nil)
  /// The service asks this side for an action.
  case command(name: String, payload: JSONValue, round: String? = nil)
  /// Something to display.
  case media(DialogMedia)
  /// Emotions to show during a reply.
  case emotion([DialogEmotion], round: String? = nil)
  /// A gate opens or closes.
  case gate(DialogGate, isOn: Bool, round: String? = nil)
  /// Resources used: tokens, characters, seconds, under the vendor's names.
  case usage(JSONValue)
  /// A time measured by the service or the node.
  case latency(name: String, milliseconds: Double)
  /// The credentials expire soon; in how many milliseconds, if known.
  case authWillExpire(inMilliseconds: Int?)
  /// The credentials have expired.
  case authExpired
  /// This client was removed.
  case kicked(KickReason, text: String)
  /// Another participant in the room or at the other end.
  case peer(DialogPeer)
  /// Network quality, of this client or of a peer.
  case netQuality(DialogNetQuality)
  /// An error.
  case error(DialogError)
  /// A known message without a common form, under the vendor's name.
  case extra(name: String, payload: JSONValue)
  /// An unknown message.
  case unknown(JSONValue)
  /// What came of a command that had an `id`.
  case answer(DialogAnswer)
  /// Something happened to a call.
  case call(DialogCall)
  /// This client has another role in the room from now on: `speaker`, `viewer`, or a vendor's name.
  case role(String)
  /// Something happened to a track of this client.
  case track(DialogTrack, DialogTrackChange)
  /// How loud this client or a peer is.
  case level(DialogLevel)
  /// Who speaks now, completely; empty: nobody.
  case speaking([DialogLevel])
  /// Something happened to a device of this machine.
  case device(DialogDevice)
  /// How far a long operation is.
  case progress(DialogProgress)
  /// A message of a participant, beside audio and video.
  case data(DialogData)
}

/// What a service may temporarily block.
public enum DialogGate: String, Sendable, Hashable, CaseIterable {
  /// The microphone: its audio is not to be sent.
  case muted
  /// Barge-in: neither a voice nor a command without `force` may interrupt the reply.
  case uninterruptible
}

/// Why this client was removed.
public enum KickReason: String, Sendable, Hashable, CaseIterable {
  /// The same user connected elsewhere; reconnecting would remove that client.
  case replaced
  /// Another participant removed this client.
  case removed
  /// The room or call has ended.
  case ended
  /// Any other reason.
  case other
}
