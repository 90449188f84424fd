internal import MillraceCore
internal import MillraceRTC
internal import MillraceRoomWire

/// What the rooms on a loop share. On the loop's thread.
final class ForwardingContext {
  let loop: RTCLoop
  let settings: RoomForwardingSettings
  let identity: DTLSIdentity
  let counters: ForwardingCounters
  let clock = Clock(.realtime)
  /// Nil: nobody reads reports yet, or any more.
  var report: (@Sendable (RoomMediaReport) -> Void)?

  init(
    _ loop: RTCLoop, _ settings: RoomForwardingSettings, _ identity: DTLSIdentity,
    _ counters: ForwardingCounters
  ) {
    self.loop = loop
    self.settings = settings
    self.identity = identity
    self.counters = counters
  }
}
