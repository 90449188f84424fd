internal import MillraceCore

/// What each address has: its connections, how often it has joined and offered of late, and how much was read of it.
///
/// An address without connections is forgotten when it may do all of it at its full rate again, a few seconds later: one that connects
/// again and again gains nothing by it.
struct AddressTable: Sendable {
  private struct Entry: Sendable {
    var connections = 0
    /// See `RateLimit`.
    var joins: Nanoseconds = 0
    var offers: Nanoseconds = 0
    var read: Nanoseconds = 0

    /// When nothing of it counts any more.
    var end: Nanoseconds { max(joins, offers, read) }
  }

  private let mostConnections: Int
  /// For joins, and by itself for offers: each join has one.
  private let limit: RateLimit
  private let reading: RateLimit
  private var entries: [String: Entry] = [:]
  /// When addresses without connections are forgotten.
  private var idle = Deadlines<String>()

  init(_ settings: RoomHubSettings) {
    mostConnections = settings.connectionsPerAddress
    limit = RateLimit(perSecond: settings.joinsPerSecond)
    reading = ReadingLimit.ofAddress(settings)
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
    entries[address] = entry.connections > 0 || entry.end > now ? entry : nil
    if entry.connections == 0, entry.end > now { idle.set(address, entry.end) }
  }

  /// Counts a join, and returns nil; or returns the nanoseconds after which another is allowed.
  mutating func join(_ address: String, at now: Nanoseconds) -> Nanoseconds? {
    guard var entry = entries[address] else { return nil }
    defer { entries[address] = entry }
    return limit.take(&entry.joins, at: now)
  }

  /// Counts an offer as `join` does a join: each makes sockets and a search for candidates.
  mutating func offer(_ address: String, at now: Nanoseconds) -> Nanoseconds? {
    guard var entry = entries[address] else { return nil }
    defer { entries[address] = entry }
    return limit.take(&entry.offers, at: now)
  }

  /// Counts what was read; returns for how long nothing more should be.
  mutating func read(_ units: Int, of address: String, at now: Nanoseconds) -> Nanoseconds {
    guard var entry = entries[address] else { return 0 }
    defer { entries[address] = entry }
    return reading.charge(units, &entry.read, at: now)
  }

  mutating func run(at now: Nanoseconds) {
    while let address = idle.popDue(at: now) { entries[address] = nil }
  }
}
