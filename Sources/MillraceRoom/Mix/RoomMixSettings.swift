internal import MillraceCodecs
package import MillraceCore
package import MillraceRTC
internal import MillraceRTCSound

/// How the sound of rooms is mixed.
package struct RoomMixSettings: Sendable {
  /// The most members of a room (`RoomHubSettings.membersPerRoom`).
  static let seats = 150

  /// Of the session with each member: addresses, servers and times. Its sections are made for each offer.
  package var session = RTCSessionSettings()
  /// Threads. A room lives on one of them.
  package var loops = 1
  /// Bits a second of each member's mix.
  package var bitrate = 32_000
  /// Effort of the encoders, 0 to 10.
  package var complexity = 5
  /// Voices that are heard at a time, and so encoders that work for a room beside the shared one.
  package var voices = 8
  /// How long sound waits for late packets.
  package var delays: ClosedRange<Nanoseconds> = Nanoseconds.milliseconds(20)...Nanoseconds.milliseconds(200)

  package init() {}

  var player: JitterPlayer.Settings {
    var settings = SoundDownlinkSettings()
    settings.delays = delays
    return settings.player
  }
}
