internal import MillraceRoomWire

/// A room on a loop. On the loop's thread.
protocol MediaRoom: AnyObject {
  func join(_ member: RoomMember)
  func leave(_ peer: RoomName)
  /// Takes an action of one of its members.
  func take(_ action: RoomAction)
  /// Something is to be looked at in its next run, such as a session that is over.
  func noteChange()
  /// Ends all sessions, and leaves the loop. Not within their reports.
  func end()
}
