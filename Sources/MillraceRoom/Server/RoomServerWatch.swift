package import MillraceNet

/// Sees what goes over the connections of a hub, and may disturb it: for a hub that plays a scenario.
///
/// All calls come on the hub's thread, and must not block.
package protocol RoomServerWatch: AnyObject, Sendable {
  /// A WebSocket is asked for. How that is refused; nil: it is not.
  func refusal() -> (status: Int, text: String)?
  /// A connection is open. What is sent over the socket does not pass the hub.
  func opened(_ connection: RoomConnectionID, _ socket: WebSocket)
  /// A message of a member; false: the hub does not get it.
  func receives(_ bytes: [UInt8], from connection: RoomConnectionID) -> Bool
  /// A message for a member; false: it is not sent.
  func sends(_ bytes: [UInt8], to connection: RoomConnectionID) -> Bool
  /// A member is in a room, and has been answered; true: the room ends for everybody in it.
  func joined(on connection: RoomConnectionID) -> Bool
  /// A connection has ended.
  func closed(_ connection: RoomConnectionID)
}
