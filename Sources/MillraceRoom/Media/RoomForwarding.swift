package import MillraceRTC

/// The media of a hub with `forward`: packets of sound and whole encoded pictures go from each member to those that want them, as they are.
///
/// A member offers one session. What it sends is received; each medium that it only receives is a slot, which carries one other member at a
/// time. Nothing is decoded: a receiver sees the pictures of those that send in its codec. Who speaks is read from the levels in packets of
/// sound (RFC 6464). Pictures begin with a key frame, and pause where the network of a receiver does not carry them; sound never does. A
/// member that does not take its packets disturbs nobody: they are datagrams.
///
/// ```
///  RoomForwarding ─▸ MediaLoops ─▸ MediaLoop (a thread) ─▸ ForwardedRoom ─▸ ForwardedMember ─▸ RTCSession
///                                                           SlotTable (pure): who is in which slot
/// ```
package final class RoomForwarding: RoomMedia {
  private let loops: MediaLoops
  private let counters: ForwardingCounters

  /// Starts its threads.
  /// - Throws: when the system has no thread for it, or OpenSSL makes no certificate.
  package init(_ settings: RoomForwardingSettings = RoomForwardingSettings()) throws(RTCProblem) {
    let counters = ForwardingCounters()
    self.counters = counters
    loops = try MediaLoops(settings.loops) { loop, identity in
      let context = ForwardingContext(loop, settings, identity, counters)
      return MediaLoop(context) { ForwardedRoom($0, context) }
    }
  }

  /// What was counted. Any thread.
  package var counts: RoomForwardingCounts { counters.counts }

  package func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void) { loops.begin(report) }

  package func perform(_ action: RoomAction) { loops.perform(action) }

  package func end(_ done: @escaping @Sendable () -> Void) { loops.end(done) }
}
