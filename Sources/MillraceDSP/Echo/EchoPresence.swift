/// Detects whether there is an echo at all. With headphones there is none, and everything a suppressor removes is speech.
///
/// - In: energies of microphone and error, block by block while the far end is audible, and the correlation peak of far end and
///   microphone, search by search. Out: ``isPresent``.
/// - Two things indicate an echo: the filter removes half of the signal, or the correlation has a peak. Only after more than a second
///   without either is the echo absent; either one brings it back.
///   silent for more than a second there is none; either brings it back.
struct EchoPresence {
  private(set) var isPresent = true

  private var near: Float = 0
  private var error: Float = 0
  /// Blocks for which the filter's last success still counts.
  private var hold = 0
  private var similarity: Float = 0
  private var looks = 0
  private var clearLooks = 0

  // The constants below were chosen on rooms, headphones, and echoes that come and go during a call. The correlation's peak over
  // mean was 4 to 8, rarely 12, without an echo; 20 to 150 with one, and 8 to 16 in the most diffuse room.
  /// Averaging of energies over blocks, and the fraction of the signal that a useful filter leaves.
  private static let renewal: Float = 0.04
  private static let usefulShare: Float = 0.5
  /// Blocks with far end, 1.2 s, for which the filter's success counts.
  private static let holdBlocks = 150
  /// Averaging of the peak over searches, and the searches that make it reliable: 0.8 s.
  private static let lookRenewal: Float = 0.15
  private static let leastLooks = 12
  /// Averaged peak below which there is no echo, and above which there certainly is one.
  private static let faint: Float = 7
  private static let certain: Float = 10
  /// A peak that brings an echo back when two searches show it.
  private static let clear: Float = 12
  private static let neededLooks = 2

  /// True when an echo is certain, not only assumed.
  var isCertain: Bool { isPresent && (hold > 0 || similarity > Self.certain) }

  /// Takes the energies of a block in which the far end is audible. Returns true if the filter is useful.
  mutating func weigh(error errorEnergy: Float, near nearEnergy: Float) -> Bool {
    near += Self.renewal * (nearEnergy - near)
    // A diverged filter counts as useless, not as negative.
    error += Self.renewal * (min(errorEnergy, 2 * nearEnergy) - error)
    let isUseful = error < Self.usefulShare * near
    hold = isUseful ? Self.holdBlocks : max(0, hold - 1)
    return isUseful
  }

  /// Takes the peak of a search, nil if there was none. Returns true if an echo has appeared where there was none.
  mutating func judge(_ peak: Float?) -> Bool {
    guard let peak else { return false }
    looks = min(looks + 1, Self.leastLooks)
    similarity = looks == 1 ? peak : similarity + Self.lookRenewal * (peak - similarity)
    clearLooks = peak > Self.clear ? clearLooks + 1 : 0
    if isPresent {
      isPresent = hold > 0 || looks < Self.leastLooks || similarity >= Self.faint
      return false
    }
    guard clearLooks >= Self.neededLooks || hold > 0 else { return false }
    isPresent = true
    similarity = Self.clear
    return true
  }
}
