internal import MillraceCore
internal import MillraceRoomWire

/// What a request of a member has changed, once the hub has done it.
enum RoomEffect: Hashable, Sendable {
  case role(RoomRole)
  case publication(RoomPublication)
  case subscription(RoomSubscription)
}

/// What a request was for: decides what its answer means.
enum RoomPurpose: Hashable, Sendable {
  case login, join, logout
  /// A description of a session; the number is that of the description.
  case description(Int, number: Int)
  /// Something to be done, for a command by its number, or by itself.
  case ask(command: Int?, RoomEffect?)
  /// Its refusal changes nothing.
  case minor
}

/// The requests that wait for their answers, by id, each with its time.
struct RoomPending: Sendable {
  /// Requests that wait at most: candidates, messages and commands for a hub that does not answer.
  static let most = 1_024

  private var entries: [Int: (purpose: RoomPurpose, deadline: Nanoseconds)] = [:]

  var count: Int { entries.count }
  /// True when no more can wait.
  var isFull: Bool { entries.count >= Self.most }

  /// When the first of them has waited too long.
  var deadline: Nanoseconds? { entries.values.lazy.map(\.deadline).min() }

  mutating func add(_ id: Int, _ purpose: RoomPurpose, until deadline: Nanoseconds) {
    entries[id] = (purpose, deadline)
  }

  /// What a request was for, which is answered now; nil: it is not waited for.
  mutating func take(_ id: Int) -> RoomPurpose? { entries.removeValue(forKey: id)?.purpose }

  /// Those that have waited too long, in the order in which they were sent; they are over.
  mutating func takeExpired(at time: Nanoseconds) -> [RoomPurpose] {
    let late = entries.filter { $0.value.deadline <= time }.keys.sorted()
    return late.compactMap { take($0) }
  }

  /// All commands that wait; they are over.
  mutating func takeCommands() -> [Int] {
    var numbers: [Int] = []
    for (id, entry) in entries {
      guard case .ask(let number?, _) = entry.purpose else { continue }
      numbers.append(number)
      entries[id] = nil
    }
    return numbers.sorted()
  }
}
