package import MillraceCore
internal import MillraceRoomWire

/// Which other side of a room `RoomPeerClient` has its session with.
package enum RoomPeerChoice: Sendable, Hashable {
  /// The one that was there first.
  case first
  /// The peer with this id, which the hub gives each time a user joins.
  case peer(String)
  /// The first peer of this user.
  case user(String)

  func includes(_ peer: RoomName, _ user: RoomName) -> Bool {
    switch self {
    case .first: true
    case .peer(let id): peer.rawValue == id
    case .user(let name): user.rawValue == name
    }
  }

  /// What is wrong with it; nil: nothing.
  package var problem: NodeProblem? {
    switch self {
    case .first: return nil
    case .peer(let name), .user(let name):
      guard RoomName(name) == nil else { return nil }
      return NodeProblem(
        "the other side is named by 1 to \(RoomLimits.nameCharacters) of A to Z, a to z, the digits, - and _")
    }
  }
}
