internal import MillraceCore

/// How long a block of microphone audio waits for its reference.
///
/// Live audio waits only for a reference that is due. Files lose nothing by waiting, and must give the same result whichever is read
/// first; but nothing waits forever, because the reference may depend on what waits.
struct ReferenceWait {
  /// For a live microphone: one packet of a reference that is due.
  private static let live: Nanoseconds = 20_000_000
  /// Half of what the links of paced audio hold by default, so that nothing is dropped meanwhile. Not shorter on a virtual clock,
  /// which stands still while a file is read.
  private static let paced: Nanoseconds = 100_000_000
  /// For files read as fast as possible: the disk may block.
  private static let unpaced: Nanoseconds = 2_000_000_000
  /// Interval between two checks, since packets of the reference do not drive the node.
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

  /// The reference has arrived.
  mutating func forget() { since = nil }

  /// When to check again; nil: the wait is over.
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
