package import MillraceRoomWire

/// What the media of a hub report to its server. Each is passed on to `RoomHub` under the server's lock.
package enum RoomMediaReport: Sendable {
  /// The answer to an offer: `RoomHub.answerOffer`.
  case answered(RoomName, request: Int, Result<String, RoomError>)
  /// Whose packets a medium of a member's session carries from now on: `RoomHub.assign`.
  case assigned(RoomSlot, to: RoomName)
  /// A decoder needs a picture of this peer with which it can begin: `RoomHub.wantKeyFrame`.
  case wantsKeyFrame(RoomName)
  /// Who speaks in a room, as often as it is measured: `RoomHub.speak`.
  case levels([RoomLevel], room: RoomName)
}

/// What carries the sound and pictures of a hub's rooms.
///
/// The server tells it what happens by the media actions of `RoomAction`, in their order; it reports on any thread, never within a call.
/// Neither side blocks the other: a call takes a queue's lock at most.
package protocol RoomMedia: AnyObject, Sendable {
  /// Begins; called once, before anything else.
  func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void)
  /// Takes a media action; others are ignored. Any thread, one call at a time.
  func perform(_ action: RoomAction)
  /// Ends all sessions in a bounded time, then calls `done` once. Nothing is reported from here on. Any thread.
  func end(_ done: @escaping @Sendable () -> Void)
}
