/// The work of every contestant that carries live sessions.
///
/// Each session receives 20 ms of the same voice every 20 ms (960 samples at 48 kHz from memory, each session from a different
/// offset), resamples to 16 kHz and encodes with Opus at 24 kb/s and complexity 5. Session i begins i ms later, modulo 20.
///
/// The n-th Opus packet is due when the frame that completes it is: at the session's start + (n + `framesBehind`) * 20 ms. It
/// is late when it comes more than 20 ms after that, or not at all.
public struct LiveLoad: Sendable {
  /// The number of sessions at the same time.
  public var sessions: Int
  /// 48 kHz, one channel; its length is a whole number of frames.
  public var voice: [Int16]
  /// The processor all threads share.
  public var core: Int
  /// Packets at the start of each session that are not measured.
  public var warmUp: Int
  /// Packets of each session that are measured.
  public var measured: Int
  /// Whole frames beyond the first that a contestant needs before its first packet, as measured on an idle machine.
  public var framesBehind = 0

  /// Samples in a frame.
  public static let frame = 960
  /// Nanoseconds in a frame.
  public static let frameTime = 20_000_000

  /// The sample of the voice at which a session begins.
  public func offset(of session: Int) -> Int {
    // A step that shares no factor with the number of frames spreads sessions over the whole recording.
    session * 389 * Self.frame % voice.count
  }

  /// When the n-th packet of a session is due, in nanoseconds after the session's start.
  public func due(_ number: Int) -> Int { (number + framesBehind) * Self.frameTime }

  /// Whether the n-th packet of a session is measured.
  public func counts(_ number: Int) -> Bool { number >= warmUp && number < warmUp + measured }
}
