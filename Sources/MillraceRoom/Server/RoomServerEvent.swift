public import MillraceNet
public import MillraceRoomWire

/// What happens at a hub, for whoever runs it: without tokens, and without what members write.
///
/// A display name may have any content: it is text, never markup or part of a line of a log that others read by form.
public enum RoomServerEvent: Sendable, Hashable {
  /// A room begins, before its first member joins; it has ended, after its last has left.
  case roomBegan(RoomName), roomEnded(RoomName)
  /// A member is in a room.
  case joined(RoomMember, room: RoomName)
  /// The peer is no longer in the room.
  case left(RoomName, room: RoomName)
  /// A connection was dropped, as it did not take what it was sent. Its address, without port; at most once a second, the latest:
  /// `RoomServerCounts.stalled` has how many.
  case stalled(address: String)
  /// Requests and connections were refused before they reached the hub; at most once a second.
  case refused(ServerAdmission.Refusals)
}

/// How much is going on at a hub.
public struct RoomServerCounts: Sendable, Hashable {
  /// Members' connections, in a room or not.
  public var connections = 0
  /// Members in rooms.
  public var members = 0
  /// Rooms.
  public var rooms = 0
  /// Files of rooms, also those that are still to come, and the bytes that memory is reserved for.
  public var files = 0, fileBytes = 0
  /// Requests and connections refused so far before they reached the hub.
  public var refused = 0
  /// Connections dropped so far, as they did not take what they were sent.
  public var stalled = 0

  /// Nothing is going on.
  public init() {}
}
