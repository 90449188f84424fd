internal import MillraceCore

/// The sources that have said goodbye a moment ago. What is still on its way from them does not make new ones (RFC 3550 section 6.3.4).
struct EndedSources {
  /// How long packets of a source may come after its BYE.
  static let lateness: Nanoseconds = .milliseconds(2_000)
  /// As many as `SoundEngine.sources`; the oldest entry is replaced.
  private static let most = 64

  private var entries: [(ssrc: UInt32, until: Nanoseconds)] = []
  private var next = 0

  init() { entries.reserveCapacity(Self.most) }

  /// Notes a BYE.
  mutating func note(_ ssrc: UInt32, at now: Nanoseconds) {
    let entry = (ssrc: ssrc, until: now &+ Self.lateness)
    if let index = place(of: ssrc) {
      entries[index] = entry
    } else if entries.count < Self.most {
      entries.append(entry)
    } else {
      entries[next] = entry
      next = (next + 1) % Self.most
    }
  }

  /// True where a packet of this source is a late one.
  func contains(_ ssrc: UInt32, at now: Nanoseconds) -> Bool {
    guard let index = place(of: ssrc) else { return false }
    return now < entries[index].until
  }

  /// By hand: iterating an array, and so `firstIndex(where:)`, makes a heap request an element in debug builds.
  private func place(of ssrc: UInt32) -> Int? {
    for index in entries.indices where entries[index].ssrc == ssrc { return index }
    return nil
  }
}
