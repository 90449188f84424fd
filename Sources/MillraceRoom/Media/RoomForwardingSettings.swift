package import MillraceRTC
package import MillraceRTCWire

/// How a `RoomForwarding` is set up.
package struct RoomForwardingSettings: Sendable {
  /// Of the session with each member: addresses, servers, times and bit rates. Its sections are made for each offer.
  package var session = RTCSessionSettings()
  /// Threads. A room lives on one of them.
  package var loops = 1
  /// Codecs of pictures, in the order of preference. Pictures are not decoded: a member with another codec than their sender's sees none.
  /// Every browser has VP8 (RFC 7742 section 5), while some come without H.264, such as Firefox in Debian.
  package var videoCodecs: [RTPCodec] = [.vp8, .h264]

  package init() {}

  /// Bits a second above which a video is not sent on: twice what a session may send, or 5 Mbit/s if that is more (browsers send 2.5).
  var mostVideoBitrate: Int { max(5_000_000, 2 * min(session.videoBitrate.upperBound, Int.max / 2)) }
}

/// What a `RoomForwarding` has counted since its beginning.
package struct RoomForwardingCounts: Sendable, Hashable {
  /// Sessions at present.
  package var sessions = 0
  /// Packets of sound that were sent on, once for each receiver.
  package var sounds = 0
  /// Pictures that were sent on, once for each receiver.
  package var pictures = 0
  /// Packets of sound and pictures of members that do not publish.
  package var unpublished = 0
  /// Pictures that a receiver was not sent because it has another codec.
  package var otherCodec = 0
  /// Pictures that a receiver was not sent because its network does not carry them.
  package var paused = 0
  /// Pictures that a receiver was not sent because it waits for a key frame.
  package var awaitingKeyFrame = 0
  /// Packets of sound that were dropped because more came than any sound has.
  package var excessive = 0
  /// How often it was settled who is in which slot, in all rooms.
  package var settlements = 0

  package init() {}
}
