internal import MillraceCore
internal import MillraceJSON

/// A request on its way to Janus. The link adds where it goes: in its path, or as members.
struct JanusRequest: Sendable, Hashable {
  var json: JSONValue
  var session: Int?
  /// The id of the handle.
  var handle: Int?
}

/// The requests that wait for their answers, by transaction, each with its time.
struct JanusPending: Sendable {
  /// What a request was for.
  enum Purpose: Hashable, Sendable {
    case create, keepalive, trickle, detach, leave, destroy
    /// The handle of a session.
    case attach(Int)
    /// A message of the plugin, for a session.
    case plugin(Int, JanusPurpose)
  }

  /// Requests that wait at most: candidates and commands of a server that does not answer.
  static let most = 1_024

  private var entries: [String: (purpose: Purpose, deadline: Nanoseconds)] = [:]
  private var last = 0

  /// True when no more can wait.
  var isFull: Bool { entries.count >= Self.most }

  /// A session is being created.
  var awaitsSession: Bool { entries.values.contains { $0.purpose == .create } }

  /// When the first of them has waited too long.
  var deadline: Nanoseconds? { entries.values.map(\.deadline).min() }

  /// A new transaction.
  mutating func add(_ purpose: Purpose, until deadline: Nanoseconds) -> String {
    last += 1
    let transaction = "m\(last)"
    entries[transaction] = (purpose, deadline)
    return transaction
  }

  /// What a transaction was for; nil: it is not waited for.
  func purpose(_ transaction: String?) -> Purpose? { transaction.flatMap { entries[$0]?.purpose } }

  /// The transaction is over.
  mutating func remove(_ transaction: String?) {
    if let transaction { entries[transaction] = nil }
  }

  /// Those that have waited too long, in the order in which they were sent; they are over.
  mutating func expired(at time: Nanoseconds) -> [Purpose] {
    let late = entries.filter { $0.value.deadline <= time }
    for transaction in late.keys { entries[transaction] = nil }
    return late.sorted { Self.number($0.key) < Self.number($1.key) }.map(\.value.purpose)
  }

  /// All commands that wait; they are over.
  mutating func takeCommands() -> [Int] {
    var numbers: [Int] = []
    for (transaction, entry) in entries {
      guard case .plugin(_, .command(let number)) = entry.purpose else { continue }
      numbers.append(number)
      entries[transaction] = nil
    }
    return numbers.sorted()
  }

  private static func number(_ transaction: String) -> Int { Int(transaction.dropFirst()) ?? 0 }
}

/// A handle, and the session it carries.
struct JanusHandle: Sendable {
  /// Candidates that wait for a description at most.
  static let mostCandidates = 100

  /// Nil: it is being attached.
  var id: Int?
  /// This side has described the session.
  var isDescribed = false
  /// The other side has.
  var isRemoteKnown = false
  /// An answer of the other side is expected.
  var awaitsAnswer = false
  /// This side has given it up.
  var isEnded = false
  /// The id of the medium that candidates belong to.
  var mid = "0"
  /// Candidates of this side, and of the other, that have to wait.
  var outgoing: [String?] = []
  var incoming: [String?] = []
}
