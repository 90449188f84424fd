internal import MillraceCore

/// What each address has: its connections, and how often it has joined of late.
///
/// An address without connections is forgotten when it may join at its full rate again, one second later at most: one that connects again
/// and again gains nothing by it.
struct AddressTable: Sendable {
  private struct Entry: Sendable {
    var connections = 0
    /// See `RateLimit`.
    var joins: Nanoseconds = 0
  }

  private let mostConnections: Int
  private let limit: RateLimit
  private var entries: [String: Entry] = [:]
  /// When addresses without connections are forgotten.
  private var idle = Deadlines<String>()

  init(_ settings: RoomHubSettings) {
    mostConnections = settings.connectionsPerAddress
    limit = RateLimit(perSecond: settings.joinsPerSecond)
  }

  var count: Int { entries.count }
  var deadline: Nanoseconds? { idle.next }

  /// Counts a connection; false: there are enough.
  mutating func connect(_ address: String) -> Bool {
    let connections = entries[address]?.connections ?? 0
    guard connections < mostConnections else { return false }
    entries[address, default: Entry()].connections = connections + 1
    idle.remove(address)
    return true
  }

  /// Counts a connection no more.
  mutating func disconnect(_ address: String, at now: Nanoseconds) {
    guard var entry = entries[address] else { return }
    entry.connections -= 1
    if entry.connections > 0 || entry.joins > now {
      entries[address] = entry
    } else {
      entries[address] = nil
    }
    if entry.connections == 0, entry.joins > now { idle.set(address, entry.joins) }
  }

  /// Counts a join, and returns nil; or returns the nanoseconds after which another is allowed.
  mutating func join(_ address: String, at now: Nanoseconds) -> Nanoseconds? {
    guard var entry = entries[address] else { return nil }
    defer { entries[address] = entry }
    return limit.take(&entry.joins, at: now)
  }

  mutating func run(at now: Nanoseconds) {
    while let address = idle.popDue(at: now) { entries[address] = nil }
  }
}
