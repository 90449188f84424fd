internal import MillraceCore
internal import MillraceJSON

/// An event that says in which state a node is, as it is sent to members that join a room after it.
struct RoomState: Sendable, Hashable {
  /// `state` of a service and `turn` of `dialog.turn`: each replaces the one before it of the same node.
  private static let events: Set = ["state", "turn"]
  /// Bytes of the longest event that is kept: five times those of `dialog.turn`.
  private static let mostBytes = 1_024

  /// The node and the name of the event.
  let node: String
  let event: String
  /// JSON, with a member `repeated` that is true: the time in it is when the state was reached.
  let text: String

  /// Nil: another event, or none at all.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= Self.mostBytes, let json = try? JSONValue(parsing: bytes),
      let event = json["event"]?.string, Self.events.contains(event), let members = json.members
    else { return nil }
    node = json["node"]?.string ?? ""
    self.event = event
    text = JSONValue.object(members + [JSONValue.Member("repeated", true)]).text
  }
}

/// What members receive when they join a room: the latest states of the nodes whose events go to the room, as no event may follow for a
/// long time. Transcripts, replies and times are over by then, and are not sent again.
///
/// A pure state machine: every input is legal at any time. It keeps `mostStates` states and the names of those who wait, and returns one
/// `Message` in `pause` at most, so that many members that join leave the hub's limits to the events to come.
struct RoomCatchUp: Sendable {
  /// What is to be sent now.
  struct Message: Sendable, Hashable {
    /// Nil: to everybody.
    var peer: String?
    /// Events, the oldest first.
    var texts: [String]
  }

  /// As many as four nodes with both events have.
  static let mostStates = 8
  /// When more wait, one message goes to all in the room: it costs the hub less, and its events are marked as repeated.
  static let mostSingle = 4
  /// From the first member that joins to the message: those that were in the room before this one are reported all at once.
  static let gathering: Nanoseconds = .milliseconds(20)
  static let pause: Nanoseconds = .milliseconds(100)

  /// Each with its number: 1 for the first that was ever sent.
  private var states: [(state: RoomState, number: Int)] = []
  private var last = 0
  /// Members that have joined, and the number of the last state before: they have received later ones themselves.
  private var waiting: [(peer: String, last: Int)] = []
  private var nextAt: Nanoseconds = 0

  /// When to call `next`; nil: nobody waits.
  var deadline: Nanoseconds? { waiting.isEmpty ? nil : nextAt }

  /// For another connection to the room, which does not know who has received what.
  var forNextConnection: RoomCatchUp {
    var next = self
    (next.waiting, next.nextAt) = ([], 0)
    return next
  }

  /// A state was sent to all in the room.
  mutating func sentToAll(_ state: RoomState) {
    last += 1
    states.removeAll { $0.state.node == state.node && $0.state.event == state.event }
    states.append((state, last))
    if states.count > Self.mostStates { states.removeFirst() }
  }

  mutating func joined(_ peer: String, at now: Nanoseconds) {
    guard !states.isEmpty, !waiting.contains(where: { $0.peer == peer }) else { return }
    if waiting.isEmpty { nextAt = max(nextAt, now + Self.gathering) }
    waiting.append((peer, last))
  }

  mutating func left(_ peer: String) { waiting.removeAll { $0.peer == peer } }

  /// What is to be sent now, and counts as sent; nil: nothing.
  mutating func next(at now: Nanoseconds) -> Message? {
    guard let first = waiting.first, now >= nextAt else { return nil }
    let isForAll = waiting.count > Self.mostSingle
    let known = isForAll ? waiting[waiting.count - 1].last : first.last
    waiting.removeFirst(isForAll ? waiting.count : 1)
    let texts = states.filter { $0.number <= known }.map { $0.state.text }
    guard !texts.isEmpty else { return nil }
    nextAt = now + Self.pause
    return Message(peer: isForAll ? nil : first.peer, texts: texts)
  }
}
