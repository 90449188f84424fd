internal import MillraceRoomWire

/// How many bytes of messages go from members to members.
///
/// A member that does not take what it is sent is dropped. So nobody may send so much that one that is only slow is dropped, too: what can
/// come at once, for it alone and for all in its room, is together less than what may wait to be sent to it by default.
struct PassingLimits: Sendable {
  /// What a message costs besides its bytes, for each receiver: a buffer, a promise, and their places in queues.
  static let overhead = 256
  /// The largest message, and some more, must pass at once.
  private static let burstOfMember = RoomLimits.messageBytes + 16_384
  private static let burst = RoomLimits.messageBytes + 65_536

  /// From one member; to one member alone; to all in one room.
  let ofMember: RateLimit
  let toMember: RateLimit
  let toRoom: RateLimit

  init(_ settings: RoomHubSettings) {
    let rate = settings.messageBytesPerSecond
    ofMember = RateLimit(perSecond: rate, burst: max(rate, Self.burstOfMember))
    // One member alone never uses up what all have together.
    toMember = RateLimit(perSecond: 2 * rate, burst: max(2 * rate, Self.burst))
    toRoom = RateLimit(perSecond: 4 * rate, burst: max(4 * rate, Self.burst))
  }
}
