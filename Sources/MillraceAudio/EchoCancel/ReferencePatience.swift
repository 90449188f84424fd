internal import MillraceCore

/// How long a block of microphone sound waits for its reference.
///
/// Live sound waits for a reference that is on its way, and no longer. Sound of files loses nothing by waiting, and has to be cancelled
/// the same whichever file is read first; but nothing waits for ever, because the reference may be made of what waits.
struct ReferencePatience {
  /// A live microphone's: a packet of a reference that is on its way.
  private static let live: Nanoseconds = 20_000_000
  /// Half of what the links of paced sound hold by default, so that nothing is dropped meanwhile; no less where no other
  /// clock is involved: a virtual one stands still while a file is read.
  private static let paced: Nanoseconds = 100_000_000
  /// Of files that are read as fast as they are taken: a disk may take its time.
  private static let unpaced: Nanoseconds = 2_000_000_000
  /// From one look to the next, since a packet of the reference does not call the node.
  private static let look: Nanoseconds = 1_000_000

  private let longest: Nanoseconds
  private let looks: Bool
  private var since: Nanoseconds?

  init(_ pacing: Pacing, isVirtual: Bool) {
    switch pacing {
    case .live: longest = Self.live
    case .paced: longest = Self.paced
    case .waits: longest = isVirtual ? Self.paced : Self.unpaced
    }
    looks = pacing != .live
  }

  /// The reference is there.
  mutating func forget() { since = nil }

  /// When to look again; nil: it has waited long enough.
  mutating func nextLook(_ now: Nanoseconds) -> Nanoseconds? {
    let begun = since ?? now
    let deadline = begun &+ longest
    guard now < deadline else {
      since = nil
      return nil
    }
    since = begun
    return looks ? min(now &+ Self.look, deadline) : deadline
  }
}
