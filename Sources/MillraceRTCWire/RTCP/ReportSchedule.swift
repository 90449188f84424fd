/// Decides when RTCP reports are due between two participants (RFC 3550, sections 6.2 and 6.3, simplified).
///
/// With two participants the share of the bandwidth never decides, so the interval is the minimum, times a random factor of 0.5
/// to 1.5. There is no reconsideration and no time-out of members. Sans-IO: the owner calls `due` at `deadline`. The same seed
/// gives the same times.
public struct ReportSchedule: Sendable {
  /// What the reports are about.
  public enum Medium: Sendable, Equatable {
    /// Sound: a report each 5 s (RFC 3550, section 6.2).
    case audio
    /// Video: a report each 360 s divided by the bitrate in kbit/s (the reduced minimum of RFC 3550, section 6.2), but each second
    /// at least, so that the round trip is known, and ten each second at most.
    case video
  }

  /// What is due.
  public enum Action: Sendable, Equatable {
    /// A report: SR or RR, and the description.
    case report
    /// The last packet: a report and BYE.
    case goodbye
  }

  /// RFC 3550, section 6.2: the minimum interval in nanoseconds.
  private static let minimum: Int64 = 5_000_000_000
  /// RFC 3550, section 6.2: the reduced minimum is 360 divided by the bitrate in kbit/s, in seconds; here nanoseconds and bit/s.
  private static let reduced: Int64 = 360_000 * 1_000_000_000
  private static let longestOfVideo: Int64 = 1_000_000_000
  private static let shortestOfVideo: Int64 = 100_000_000

  /// The bitrate of the session in bit/s, which decides the interval of video; 0: not known.
  public var bitrate: Int64 = 0
  /// When something is due; nil: the end was reported.
  public private(set) var deadline: Int64?

  private let medium: Medium
  private var state: UInt64
  private var hasSent = false
  private var ends = false

  /// Creates a schedule that begins at `now`. The first report is due after half of the interval (RFC 3550, section 6.2).
  public init(_ medium: Medium, seed: UInt64, at now: Int64) {
    self.medium = medium
    state = seed
    deadline = now &+ randomized(interval / 2)
  }

  /// What is due now, once: the next report is due after another interval. Nil: nothing.
  public mutating func due(at now: Int64) -> Action? {
    guard let time = deadline, time <= now else { return nil }
    if ends {
      deadline = nil
      return .goodbye
    }
    hasSent = true
    deadline = now &+ randomized(interval)
    return .report
  }

  /// Makes BYE due at once, if anything was sent: RFC 3550, section 6.3.7. `sentMedia` says whether RTP packets were.
  public mutating func end(at now: Int64, sentMedia: Bool) {
    guard deadline != nil, !ends else { return }
    ends = true
    deadline = hasSent || sentMedia ? now : nil
  }

  /// Nanoseconds between reports, without the random factor.
  public var interval: Int64 {
    switch medium {
    case .audio: return Self.minimum
    case .video:
      guard bitrate > 0 else { return Self.longestOfVideo }
      return max(Self.shortestOfVideo, min(Self.reduced / bitrate, Self.longestOfVideo))
    }
  }

  /// An interval times a factor of 0.5 to 1.5, which keeps participants from reporting all at once (RFC 3550, section 6.3.1).
  private mutating func randomized(_ interval: Int64) -> Int64 {
    interval / 2 + Int64(nextRandom() % UInt64(max(1, interval)))
  }

  /// The next number of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
  private mutating func nextRandom() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
