package import MillraceRTC

/// The media of a hub with `mix`: each member gets one sound of all others, and never hears itself.
///
/// A member offers one session with one sound, both ways or one way; pictures and data channels are refused. What hosts publish is decoded,
/// mixed and encoded (`RoomMixer`), whatever members have subscribed to; who speaks is measured. A member that does not take its packets
/// disturbs nobody: they are datagrams.
///
/// ```
///  RoomMixing ─▸ MediaLoops ─▸ MediaLoop (a thread) ─▸ MixedRoom ─▸ MixedMember ─▸ RTCSession
///                                                      RoomMixer ─▸ RoomMixSeat
/// ```
package final class RoomMixing: RoomMedia {
  private let loops: MediaLoops
  private let counters: MixingCounters

  /// Starts its threads.
  /// - Throws: when the system has no thread for it, or OpenSSL makes no certificate.
  package init(_ settings: RoomMixSettings = RoomMixSettings()) throws(RTCProblem) {
    let counters = MixingCounters()
    self.counters = counters
    loops = try MediaLoops(settings.loops) { loop, identity in
      let context = MixingContext(loop, settings, identity, counters)
      return MediaLoop(context) { MixedRoom($0, context) }
    }
  }

  /// What was counted. Any thread.
  package var counts: RoomMixingCounts { counters.counts }

  package func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void) { loops.begin(report) }

  package func perform(_ action: RoomAction) { loops.perform(action) }

  package func end(_ done: @escaping @Sendable () -> Void) { loops.end(done) }
}

/// What a `RoomMixing` has counted since its beginning.
package struct RoomMixingCounts: Sendable, Hashable {
  /// Sessions, and members with a place in a mix, at present.
  package var sessions = 0
  package var seats = 0
  /// Packets of sound that were sent.
  package var sounds = 0
  /// Packets of sound of members that do not publish.
  package var unpublished = 0
  /// Packets of sound that were dropped because more came than any sound has.
  package var excessive = 0

  package init() {}
}
