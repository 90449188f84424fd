internal import MillraceCore
package import MillraceDialog

/// Signalling with one other side of a room: descriptions and candidates go between the two over the hub (`millrace-room.1`,
/// Documentation/room.md), which takes no part in the session and need not carry media.
///
/// - Sessions have numbers from 1, one at a time: another one when the other side joins again, or when both have offered at once and this
///   side has taken its offer back. There is no main session 0: the call lives on without one. The one that has joined later offers.
/// - `peer` of an offer is the id that the hub gave the other side. Everything else of the room is as with `RoomClient`, but for
///   `subscribe` and `mute` of a peer, which are a matter of the session, and for messages where it has data channels.
///
/// Runs on one loop; all calls from any thread.
package final class RoomPeerClient: Signalling {
  /// Milliseconds by which a caller must wait longer for an answer than `RoomClientSettings.timeout`: at that time this client offers the
  /// next member a session, or says which one has not answered.
  package static let grace = 1_000

  private let client: RoomClient

  package init(_ settings: RoomClientSettings, with choice: RoomPeerChoice = .first) {
    let timeout = Nanoseconds.milliseconds(Int64(settings.timeout))
    client = RoomClient(
      settings, RoomPeerSession(choice, settings.media, timeout: timeout), choice.problem)
  }

  package var traits: SignalTraits { client.traits }

  /// What another attempt should begin with. Also after the end.
  package var wishes: RoomWishes { client.wishes }

  package func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) { client.begin(report) }

  package func describe(_ session: SignalSessionID, sdp: String) { client.describe(session, sdp: sdp) }

  package func add(_ candidate: String?, to session: SignalSessionID) { client.add(candidate, to: session) }

  package func restart(_ session: SignalSessionID, sdp: String) { client.restart(session, sdp: sdp) }

  package func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {
    client.refuse(session, error, text)
  }

  package func connected(_ session: SignalSessionID) { client.connected(session) }

  package func end(_ session: SignalSessionID) { client.end(session) }

  package func perform(
    _ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void
  ) -> Bool {
    client.perform(command, done)
  }

  package func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending {
    client.send(bytes, isText: isText, label: label, to: peer)
  }

  package func end(_ done: @escaping @Sendable () -> Void) { client.end(done) }
}
