#if RTC
  import MillraceCore
  import MillraceRTC

  /// What a member of a measured room hears, by the packets that come. Any thread.
  ///
  /// A gap is the time between two packets of a medium that their timestamps do not explain: silence that was not sent is none, and what
  /// was lost is one.
  final class RoomEar: Sendable {
    struct Heard: Sendable {
      /// When the first sound came, on the monotonic clock; nil: nothing yet.
      var firstAt: Nanoseconds?
      /// Packets since `reset`, and those that were missing between them.
      var packets = 0
      var lost = 0
      /// The longest gap since `reset`, and how many were longer than `RoomEar.gap`.
      var longest: Nanoseconds = 0
      var gaps = 0
      fileprivate var tracks: [Int: Track] = [:]
    }

    /// The latest packet of a medium.
    fileprivate struct Track: Sendable {
      var ssrc: UInt32
      var sequence: Int64
      var timestamp: Int64
      var arrival: Nanoseconds
    }

    /// Gaps beyond it are counted: three packets. Source: the goal of the suite `rtc`.
    static let gap: Nanoseconds = .milliseconds(60)

    private let state = Locked(Heard())

    /// What was heard so far.
    var heard: Heard { state.withLock { $0 } }

    /// What was heard until a time, on the monotonic clock: a gap that has not ended counts too.
    func total(until now: Nanoseconds) -> Heard {
      var heard = self.heard
      for track in heard.tracks.values { Self.note(now - track.arrival, &heard) }
      return heard
    }

    /// Begins another measurement; the first sound stays.
    func reset() {
      state.withLock { heard in
        let (first, tracks) = (heard.firstAt, heard.tracks)
        heard = Heard()
        (heard.firstAt, heard.tracks) = (first, tracks)
      }
    }

    /// Takes a packet.
    /// - Parameter isSound: false: it has none, or only what is not to be heard.
    func take(_ sound: ReceivedSound, isSound: Bool) {
      state.withLock { heard in
        if isSound, heard.firstAt == nil { heard.firstAt = sound.arrival }
        heard.packets += 1
        let track = Track(
          ssrc: sound.ssrc, sequence: sound.sequence, timestamp: sound.timestamp, arrival: sound.arrival)
        guard let last = heard.tracks[sound.medium], last.ssrc == sound.ssrc else {
          heard.tracks[sound.medium] = track
          return
        }
        guard !sound.restarts else {
          heard.tracks[sound.medium] = track
          Self.note(sound.arrival - last.arrival, &heard)
          return
        }
        let missing = Int(sound.sequence - last.sequence) - 1
        // Late, or twice.
        guard missing >= 0 else { return }
        heard.tracks[sound.medium] = track
        heard.lost += missing
        var gap = sound.arrival - last.arrival
        if missing == 0 {
          let unsent = max(0, sound.timestamp - last.timestamp - Int64(RoomOpus.frame))
          gap -= .samples(unsent, rate: RoomOpus.rate)
        }
        Self.note(gap, &heard)
      }
    }

    private static func note(_ gap: Nanoseconds, _ heard: inout Heard) {
      heard.longest = max(heard.longest, gap)
      if gap > Self.gap { heard.gaps += 1 }
    }
  }

  extension [RoomEar.Heard] {
    /// Of all together.
    var packets: Int { reduce(0) { $0 + $1.packets } }
    var lost: Int { reduce(0) { $0 + $1.lost } }
    var gaps: Int { reduce(0) { $0 + $1.gaps } }
    /// The longest of all, in milliseconds.
    var longestMilliseconds: Double { Double(map(\.longest).max() ?? 0) / 1e6 }
  }
#endif
