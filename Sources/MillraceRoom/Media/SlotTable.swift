internal import MillraceCore
internal import MillraceRoomWire

/// Which peer is in which slot: a medium of a member's session that the hub fills with the packets of one peer at a time.
///
/// A peer keeps its slot as long as it is wanted. Free slots go to those who came first; where they are not enough, to those who spoke
/// last. A peer that speaks without a slot takes that of the peer that has been silent for longest.
struct SlotTable: Sendable, Hashable {
  /// A peer that is to be in a slot.
  struct Candidate: Sendable, Hashable {
    let peer: RoomName
    var speech = SpeechActivity()
  }

  /// A peer that has spoken for this long takes a slot; a cough does not.
  static let turn: Nanoseconds = .milliseconds(200)
  /// A peer that was silent for less keeps its slot.
  static let silence: Nanoseconds = .milliseconds(2_000)

  /// The peers by their slots; nil: nobody.
  private(set) var peers: [RoomName?] = []
  /// Somebody is wanted and has no slot.
  private(set) var isShort = false
  /// Slots that are not to be used.
  private var closed: Set<Int> = []

  /// Adds free slots.
  mutating func grow(to count: Int) {
    while peers.count < count { peers.append(nil) }
  }

  /// Takes a slot out of use, or into use again, from the next `assign` on.
  mutating func setOpen(_ isOpen: Bool, _ place: Int) {
    if isOpen { closed.remove(place) } else { closed.insert(place) }
  }

  /// Frees slots of peers that are no longer wanted, and gives them to others. Returns the slots with another peer than before.
  /// - Parameter wanted: in the order in which they came.
  mutating func assign(_ wanted: [Candidate], at now: Nanoseconds) -> [Int] {
    let before = peers
    let names = Set(wanted.map(\.peer))
    for place in peers.indices {
      if let peer = peers[place], !names.contains(peer) || closed.contains(place) { peers[place] = nil }
    }
    let placed = Set(peers.compactMap { $0 })
    var waiting = wanted.filter { !placed.contains($0.peer) }
    let free = peers.indices.filter { peers[$0] == nil && !closed.contains($0) }
    if waiting.count > free.count { waiting = Self.latestFirst(waiting) }
    for (place, candidate) in zip(free, waiting) { peers[place] = candidate.peer }
    waiting.removeFirst(min(free.count, waiting.count))
    for candidate in waiting where candidate.speech.hasSpoken(for: Self.turn, at: now) {
      guard let place = longestSilent(wanted, at: now) else { break }
      peers[place] = candidate.peer
    }
    isShort = !waiting.isEmpty
    return peers.indices.filter { peers[$0] != before[$0] }
  }

  /// Those who spoke last first; among those who have not spoken, the order stays.
  private static func latestFirst(_ candidates: [Candidate]) -> [Candidate] {
    candidates.enumerated().sorted { left, right in
      let times = (left.element.speech.lastAt ?? .min, right.element.speech.lastAt ?? .min)
      return times.0 == times.1 ? left.offset < right.offset : times.0 > times.1
    }.map(\.element)
  }

  /// The slot of the peer that has been silent for longest; nil: all have spoken lately.
  private func longestSilent(_ wanted: [Candidate], at now: Nanoseconds) -> Int? {
    var found: (place: Int, lastAt: Nanoseconds)?
    for place in peers.indices {
      guard let candidate = wanted.first(where: { $0.peer == peers[place] }) else { continue }
      let lastAt = candidate.speech.lastAt ?? .min
      guard lastAt == .min || now - lastAt >= Self.silence else { continue }
      if lastAt < found?.lastAt ?? .max { found = (place, lastAt) }
    }
    return found?.place
  }
}
