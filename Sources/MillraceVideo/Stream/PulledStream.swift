internal import MillraceCore

/// One address that a node plays, from the moment it came. Its thread ends with it.
final class PulledStream {
  let address: StreamAddress
  let thread: PullThread
  /// When the address came, on the monotonic clock.
  let start: Nanoseconds
  /// True once a picture was put out.
  var hasPicture = false
  /// True once the stream ended for good.
  var isOver = false

  /// Starts to play an address.
  init(_ settings: PullThread.Settings, waker: Waker) throws(NodeProblem) {
    start = Clock(.realtime).now
    address = settings.address
    thread = try PullThread.start(settings, waker: waker)
  }

  deinit { thread.stop() }
}
