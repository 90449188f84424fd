/// What a member may be in a room.
public enum RoomRole: String, Sendable, Hashable, CaseIterable {
  /// Publishes, if it has the right to; only receives.
  case host, viewer
}

/// What a member may do in a room, beyond receiving and writing.
public enum RoomRight: String, Sendable, Hashable, CaseIterable {
  /// Send audio, video or data; remove another peer; end the room for everybody.
  case publish, kick, close
}

/// A kind of content that a member publishes.
public enum RoomTrack: String, Sendable, Hashable, CaseIterable {
  /// Sound; pictures; messages for programs.
  case audio, video, data
}

/// What a published video shows.
public enum RoomVideoSource: String, Sendable, Hashable, CaseIterable {
  /// A camera; what a screen shows.
  case camera, screen
}

/// How a hub distributes media.
public enum RoomMediaMode: String, Sendable, Hashable, CaseIterable {
  /// One sound of all others, never one's own; the sound and pictures of each peer by itself.
  case mix, forward
}

/// Why a peer is no longer in the room: `reason` of the push `peer` with `left`.
public enum RoomLeaveReason: String, Sendable, Hashable, CaseIterable {
  /// It left or logged out; its connection broke.
  case quit, dropped
  /// A member removed it; its user joined again from elsewhere; its token ended.
  case kicked, replaced, expired
}

/// Why this member is no longer in the room: `reason` of the push `kicked`.
public enum RoomKickReason: String, Sendable, Hashable, CaseIterable {
  /// A member removed it; the room was closed.
  case removed, ended
  /// The user joined again from elsewhere; the token ended.
  case replaced, expired
}
