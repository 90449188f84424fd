internal import Synchronization

/// What all rooms of a `RoomForwarding` count. Any thread.
final class ForwardingCounters: Sendable {
  let sessions = SessionCount()
  let sounds = Atomic<Int>(0)
  let pictures = Atomic<Int>(0)
  let unpublished = Atomic<Int>(0)
  let otherCodec = Atomic<Int>(0)
  let paused = Atomic<Int>(0)
  let awaitingKeyFrame = Atomic<Int>(0)
  let excessive = Atomic<Int>(0)
  let settlements = Atomic<Int>(0)

  var counts: RoomForwardingCounts {
    var counts = RoomForwardingCounts()
    counts.sessions = sessions.value
    counts.sounds = sounds.load(ordering: .relaxed)
    counts.pictures = pictures.load(ordering: .relaxed)
    counts.unpublished = unpublished.load(ordering: .relaxed)
    counts.otherCodec = otherCodec.load(ordering: .relaxed)
    counts.paused = paused.load(ordering: .relaxed)
    counts.awaitingKeyFrame = awaitingKeyFrame.load(ordering: .relaxed)
    counts.excessive = excessive.load(ordering: .relaxed)
    counts.settlements = settlements.load(ordering: .relaxed)
    return counts
  }
}
