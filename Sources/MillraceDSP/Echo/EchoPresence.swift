/// Whether there is an echo at all. Who wears headphones has none: then whatever a suppressor takes is voice.
///
/// - In: energies of microphone and error, block by block while the far end is heard, and how far the correlation of far end and
///   microphone stands out, look by look. Out: ``isPresent``.
/// - Two things speak for an echo: the filter takes half of the sound away, or the correlation has a peak. Only when both have been
///   silent for more than a second there is none; either brings it back.
struct EchoPresence {
  private(set) var isPresent = true

  private var near: Float = 0
  private var error: Float = 0
  /// Blocks for which the filter's use still counts.
  private var hold = 0
  private var likeness: Float = 0
  private var looks = 0
  private var clearLooks = 0

  // What follows was chosen on rooms, headphones and echoes that come and go in the midst of a call. Peak over mean of the
  // correlation was 4 to 8, seldom 12, without an echo; 20 to 150 with one, and 8 to 16 through the most diffuse room.
  /// Averaging of energies over blocks, and the share of sound that a filter of use leaves.
  private static let renewal: Float = 0.04
  private static let usefulShare: Float = 0.5
  /// Blocks with far end, 1.2 s, for which the filter's use counts.
  private static let holdBlocks = 150
  /// Averaging of the peak over looks, and the looks that make it worth something: 0.8 s.
  private static let lookRenewal: Float = 0.15
  private static let leastLooks = 12
  /// The averaged peak under which there is no echo, and over which there is no doubt of one.
  private static let faint: Float = 7
  private static let certain: Float = 10
  /// A peak that brings an echo back when two looks show it.
  private static let clear: Float = 12
  private static let neededLooks = 2

  /// True when an echo is known and not only supposed.
  var isCertain: Bool { isPresent && (hold > 0 || likeness > Self.certain) }

  /// Takes the energies of a block in which the far end is heard. True: the filter is of use.
  mutating func weigh(error errorEnergy: Float, near nearEnergy: Float) -> Bool {
    near += Self.renewal * (nearEnergy - near)
    // A filter that does harm is worth nothing, and not less than that.
    error += Self.renewal * (min(errorEnergy, 2 * nearEnergy) - error)
    let isUseful = error < Self.usefulShare * near
    hold = isUseful ? Self.holdBlocks : max(0, hold - 1)
    return isUseful
  }

  /// Takes what a look at the correlation showed, nil when there was none. True: an echo has come where there was none.
  mutating func judge(_ peak: Float?) -> Bool {
    guard let peak else { return false }
    looks = min(looks + 1, Self.leastLooks)
    likeness = looks == 1 ? peak : likeness + Self.lookRenewal * (peak - likeness)
    clearLooks = peak > Self.clear ? clearLooks + 1 : 0
    if isPresent {
      isPresent = hold > 0 || looks < Self.leastLooks || likeness >= Self.faint
      return false
    }
    guard clearLooks >= Self.neededLooks || hold > 0 else { return false }
    isPresent = true
    likeness = Self.clear
    return true
  }
}
