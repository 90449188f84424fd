package import MillraceCore
package import MillraceRoomWire

/// A connection of a hub. The layer above gives each a new number.
package struct RoomConnectionID: Sendable, Hashable, Comparable {
  package let number: UInt64

  package init(_ number: UInt64) { self.number = number }

  package static func < (left: RoomConnectionID, right: RoomConnectionID) -> Bool {
    left.number < right.number
  }
}

/// When something happens: `RoomHub` has no clock.
package struct RoomInstant: Sendable, Hashable {
  /// A clock that only rises. All waiting is counted by it: a wall clock that is set throws nobody out.
  package var now: Nanoseconds
  /// Unix time, by which tokens are checked.
  package var unixMilliseconds: Int64

  package init(_ now: Nanoseconds, unixMilliseconds: Int64) {
    self.now = now
    self.unixMilliseconds = unixMilliseconds
  }
}

/// What an id is for. Nobody must be able to guess those of rooms and files: whoever knows the room of a call can join it, and whoever
/// knows a file can read it.
package enum RoomIDKind: Sendable, Hashable, CaseIterable { case peer, call, room, file }

/// What the layer above a `RoomHub` has to do, in this order.
package enum RoomAction: Sendable, Hashable {
  /// Sends a text frame.
  case send(RoomConnectionID, [UInt8])
  /// Closes the connection, after what was sent. `disconnect` follows, as for every connection.
  case close(RoomConnectionID, code: UInt16, text: String)
  /// Reads nothing of the connection for so long: it has sent more than its share.
  case pause(RoomConnectionID, Nanoseconds)

  // MARK: Media

  /// A room begins, before its first member joins; it has ended, after its last has left.
  case roomBegan(RoomName)
  case roomEnded(RoomName)
  /// A member is in a room.
  case joined(RoomMember, room: RoomName, connection: RoomConnectionID)
  /// The peer is no longer in the room: its session ends.
  case left(RoomName, room: RoomName)
  /// The peer offers a session: see `RoomHub.answerOffer`.
  case offer(RoomName, sdp: String, request: Int)
  /// Nobody waits for the answer to this offer any more: a session that was made for it, or restarted by it, ends.
  case withdrawn(RoomName, request: Int)
  /// A candidate of the peer for its session with the hub.
  case candidate(RoomName, RoomCandidate)
  /// The peer publishes a track, or no longer; or a video shows something else.
  case publishing(RoomName, RoomPublication)
  /// What the peer receives has changed: see `RoomHub.receives`.
  case subscription(RoomName, RoomSubscription)
  /// The peer has another role. What a viewer published has ended before.
  case role(RoomName, RoomRole)
}

/// How much a hub holds.
package struct RoomHubCounts: Sendable, Hashable {
  package var connections = 0
  package var users = 0
  package var rooms = 0
  package var members = 0
  package var calls = 0
  package var offers = 0
  package var addresses = 0
  package var onceValues = 0
  /// Tokens whose end is waited for.
  package var expiries = 0
  /// Rooms in which somebody has spoken.
  package var speakingRooms = 0
  /// Files, also those that have only been announced; and the bytes for which memory is reserved.
  package var files = 0
  package var fileBytes = 0

  package init() {}
}
