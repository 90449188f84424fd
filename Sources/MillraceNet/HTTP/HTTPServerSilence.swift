internal import NIOCore

/// Which addresses hold more than their share of a crowded server's connections without asking for anything. A pure value.
///
/// An address is caught when more of its connections than a share have sent no whole head for the patience of a crowded server, or were
/// closed like that by the client meanwhile. From then on and for some time it has no patience to expect: what it holds beyond its share
/// goes when the server is full, the oldest first. Before that all clients wait alike, because one address may be a proxy, or a load test.
struct HTTPServerSilence {
  typealias Address = AdmissionCount.Address

  /// One address may hold a quarter of all connections.
  private static let parts = 4
  /// As many connections as browsers open to one host at once: no address is caught with fewer, however small the server is.
  private static let least = 6

  /// Connections without a request that a caught address keeps.
  let share: Int
  private let patience: TimeAmount
  /// How long an address stays caught.
  private let memory: TimeAmount
  private var caught: [Address: NIODeadline] = [:]
  /// Connections that clients have closed without a request, since the time below.
  private var left: [Address: Int] = [:]
  private var leftSince: NIODeadline

  init(_ limits: HTTPServer.Limits, at now: NIODeadline) {
    share = max(Self.least, limits.connections / Self.parts)
    patience = .milliseconds(Int64(limits.crowdedPatience))
    memory = .milliseconds(Int64(limits.patience))
    leftSince = now
  }

  var hasCaught: Bool { !caught.isEmpty }

  /// Clients wait. Catches addresses, and forgets those whose time is over.
  /// - Parameter silent: the connections that have not sent a whole head, with the time since when.
  mutating func check(_ silent: [(address: Address, since: NIODeadline)], at now: NIODeadline) {
    caught = caught.filter { $0.value > now }
    var counts = left
    for (address, since) in silent where since + patience <= now { counts[address, default: 0] += 1 }
    for (address, count) in counts where count > share { caught[address] = now + memory }
    guard leftSince + patience <= now else { return }
    left = [:]
    leftSince = now
  }

  /// While clients wait, one has closed its connection before it sent a whole head.
  mutating func leave(_ address: Address) { left[address, default: 0] += 1 }

  /// A connection was closed because its address is caught: the time of being caught begins again.
  mutating func drop(_ address: Address, at now: NIODeadline) { caught[address] = now + memory }

  /// The connections that caught addresses hold beyond their share, the oldest first.
  /// - Parameter silent: as in `check`, with anything that tells the connections apart.
  func surplus<ID>(
    _ silent: [(address: Address, since: NIODeadline, id: ID)], at now: NIODeadline
  ) -> [ID] {
    let held = Dictionary(grouping: silent) { $0.address }
      .filter { caught[$0.key].map { $0 > now } ?? false }
    let all = held.values.flatMap { $0.sorted { $0.since < $1.since }.dropLast(share) }
    return all.sorted { $0.since < $1.since }.map { $0.id }
  }
}
