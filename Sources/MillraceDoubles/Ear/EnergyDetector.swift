/// Detects speech by energy alone, which is enough for a double. Works in frames of 20 ms: an utterance begins with 100 ms above -40 dBFS,
/// and ends after 600 ms below.
public struct EnergyDetector: Sendable {
  /// What changed.
  public enum Change: Sendable, Hashable {
    /// An utterance began, or ended.
    case began, ended
  }

  /// RMS of 16-bit samples that counts as speech: -40 dBFS.
  private static let threshold = 328.0
  /// Frames of speech that start an utterance, without pauses, and frames of silence that end it.
  private static let least = 5
  private static let pause = 30

  private let frame: Int
  private var sum = 0.0
  private var count = 0
  private var voiced = 0
  private var quiet = 0
  /// True during an utterance.
  public private(set) var isSpeaking = false

  /// Creates a detector for audio at a rate in Hz.
  public init(rate: Int) { frame = max(1, rate / 50) }

  /// Takes samples, and returns the changes in order.
  public mutating func take(_ samples: some Sequence<Int16>) -> [Change] {
    var changes: [Change] = []
    for sample in samples {
      sum += Double(sample) * Double(sample)
      count += 1
      guard count == frame else { continue }
      let isVoice = (sum / Double(frame)).squareRoot() > Self.threshold
      sum = 0
      count = 0
      if let change = note(isVoice) { changes.append(change) }
    }
    return changes
  }

  private mutating func note(_ isVoice: Bool) -> Change? {
    if isVoice {
      voiced += 1
      quiet = 0
      guard !isSpeaking && voiced >= Self.least else { return nil }
      isSpeaking = true
      return .began
    }
    quiet += 1
    guard quiet >= (isSpeaking ? Self.pause : Self.least) else { return nil }
    voiced = 0
    guard isSpeaking else { return nil }
    isSpeaking = false
    return .ended
  }

  /// Forgets the current utterance.
  public mutating func reset() {
    voiced = 0
    quiet = 0
    isSpeaking = false
  }
}
