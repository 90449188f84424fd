internal import MillraceRTC
internal import Synchronization

/// What the rooms on a loop share whose sound is mixed. On the loop's thread.
final class MixingContext: MediaContext {
  let settings: RoomMixSettings
  let counters: MixingCounters

  init(
    _ loop: RTCLoop, _ settings: RoomMixSettings, _ identity: DTLSIdentity, _ counters: MixingCounters
  ) {
    self.settings = settings
    self.counters = counters
    super.init(loop, settings.session, identity, counters.sessions)
  }
}

/// What all rooms of a `RoomMixing` count. Any thread.
final class MixingCounters: Sendable {
  let sessions = SessionCount()
  let seats = Atomic<Int>(0)
  let sounds = Atomic<Int>(0)
  let unpublished = Atomic<Int>(0)
  let excessive = Atomic<Int>(0)

  var counts: RoomMixingCounts {
    var counts = RoomMixingCounts()
    counts.sessions = sessions.value
    counts.seats = seats.load(ordering: .relaxed)
    counts.sounds = sounds.load(ordering: .relaxed)
    counts.unpublished = unpublished.load(ordering: .relaxed)
    counts.excessive = excessive.load(ordering: .relaxed)
    return counts
  }
}
