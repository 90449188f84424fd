/// What every contestant for live sessions gets to do.
///
/// Each session hears 20 ms of the same voice every 20 ms (960 samples of 48 kHz from memory, each session at a place of its
/// own), resamples to 16 kHz and encodes with Opus at 24 kb/s and complexity 5. Session i begins i ms later, modulo 20.
///
/// The n-th Opus packet is due when the frame that completes it is: at the session's start + (n + `framesBehind`) * 20 ms. It
/// is late when it comes more than 20 ms after that, or not at all.
public struct LiveLoad: Sendable {
  /// How many there are at once.
  public var sessions: Int
  /// 48 kHz, one channel; its length is a whole number of frames.
  public var voice: [Int16]
  /// The processor all threads share.
  public var core: Int
  /// Packets of each session that do not count, at its start, and packets that do.
  public var warmUp: Int
  /// Packets of each session that count.
  public var measured: Int
  /// Whole frames a contestant needs more than one before its first packet can come, as seen when nothing else was going on.
  public var framesBehind = 0

  /// Samples and nanoseconds in a frame.
  public static let frame = 960
  /// Nanoseconds in a frame.
  public static let frameTime = 20_000_000

  /// Where in the voice a session begins, in samples.
  public func offset(of session: Int) -> Int {
    // A step that shares no factor with the number of frames spreads sessions over the whole recording.
    session * 389 * Self.frame % voice.count
  }

  /// When the n-th packet of a session is due, in nanoseconds after the session's start.
  public func due(_ number: Int) -> Int { (number + framesBehind) * Self.frameTime }

  /// Whether the n-th packet of a session counts.
  public func counts(_ number: Int) -> Bool { number >= warmUp && number < warmUp + measured }
}
