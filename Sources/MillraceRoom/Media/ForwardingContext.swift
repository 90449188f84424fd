internal import MillraceRTC

/// What the rooms on a loop share whose media are forwarded. On the loop's thread.
final class ForwardingContext: MediaContext {
  let settings: RoomForwardingSettings
  let counters: ForwardingCounters

  init(
    _ loop: RTCLoop, _ settings: RoomForwardingSettings, _ identity: DTLSIdentity,
    _ counters: ForwardingCounters
  ) {
    self.settings = settings
    self.counters = counters
    super.init(loop, settings.session, identity, counters.sessions)
  }
}
