public import MillraceCore
public import MillraceGraph

/// Something that happened in a run, as the embedding program receives it.
public struct GraphEvent: Sendable, Hashable {
  /// Time on the graph clock, in nanoseconds.
  public var time: Nanoseconds
  /// The node that posted it; empty for events of the run itself.
  public var node: String
  /// The event's name in the node's contract, or of the run: `started`, `draining`, `nodeFailed`, `nodeRestarted`,
  /// `nodeIsolated`, `nodeDetached`, `workerHeld`, `messagesLost` (`count` of them were accepted for a node that ended before it
  /// read them), `partStarted`, `partEnded` (both with the name of the `part`), `overload`, `overloadEased`, `budgetMissed`, `eventsLost`
  /// (`count` of them, before this one), `stopped`.
  ///
  /// `nodeFailed` has the message in `text`, and the fault's `reason` (a case of `NodeFault.Reason`) unless the node could not be
  /// recreated. `workerHeld`: a node did not return when the run was stopped, and the system refused a new thread for its worker;
  /// `text` describes the consequences.
  ///
  /// `budgetMissed` has `of` (`call` or `age`), the last `value` and the `budget` in milliseconds, and the `count` of misses since
  /// it was last posted for this node: at most once a second, and at the end. On a virtual clock calls have no budget.
  public var name: String
  /// The whole event as one JSON object.
  public var json: String
  /// True for an event of the run itself, such as `nodeFailed`; false for one that a node posted, whatever its name.
  public var isOfRun: Bool

  /// An event as the engine makes it; for tests and programs that play events back.
  public init(time: Nanoseconds, node: String, name: String, json: String, isOfRun: Bool = false) {
    self.time = time
    self.node = node
    self.name = name
    self.json = json
    self.isOfRun = isOfRun
  }
}

// MARK: - Typed access

extension GraphEvent {
  /// The run's own events with their details, for a `switch`. See ``GraphEvent/kind``.
  public enum Kind: Sendable, Hashable {
    /// A node posted it: its name is in the node's contract, its details are in ``GraphEvent/fields``.
    case posted
    /// The run has started.
    case started
    /// The sources have ended, and queued packets flow out.
    case draining
    /// The run has stopped: the last event.
    case stopped
    /// A node failed. `reason` is nil when it could not be recreated after a failure.
    case nodeFailed(reason: NodeFault.Reason?, text: String)
    /// A failed node was recreated and takes the next packet.
    case nodeRestarted
    /// A failed node was removed, and the rest of the graph continues.
    case nodeIsolated
    /// A node did not return when the run stopped; its thread was replaced.
    case nodeDetached
    /// As `nodeDetached`, and the system refused a new thread for its worker.
    case workerHeld(text: String)
    /// A node ended before it read this many messages.
    case messagesLost(count: Int)
    /// A part was added to the run and started.
    case partStarted(String)
    /// A part has ended; `failure` is the reason if it failed.
    case partEnded(String, failure: String?)
    /// The machine is overloaded: step `step` of `count` was taken at the given load in percent.
    case overload(step: Int, of: Int, load: Double)
    /// Step `step` of `count` was undone.
    case overloadEased(step: Int, of: Int, load: Double)
    /// A node missed a budget `count` times since this was last posted for it; `value` is the last miss.
    case budgetMissed(Budget, value: Duration, budget: Duration, count: Int)
    /// The listener lost this many events before this one.
    case eventsLost(count: Int)
    /// An event of the run that is not in this list.
    case other
  }

  /// What a node has a budget for.
  public enum Budget: String, Sendable, Hashable {
    /// The time one call takes.
    case call
    /// The age of a packet when the node takes it.
    case age
  }

  /// What happened, as a value.
  ///
  /// ```swift
  /// switch event.kind {
  /// case .nodeFailed(_, let text): log("\(event.node): \(text)")
  /// case .eventsLost(let count): lost += count
  /// default: break
  /// }
  /// ```
  /// Parses ``json`` when the event has details, which takes microseconds. Keep the value rather than ask twice.
  public var kind: Kind {
    guard isOfRun else { return .posted }
    if let simple = Self.simpleKinds[name] { return simple }
    guard let fields else { return .other }
    return Self.kind(name, fields) ?? .other
  }

  /// The members of ``json``, by name and in order; nil when it is not an object. Parsed on every call.
  public var fields: JSONObject? {
    (try? JSONDocument.scan(SourceFile(name: "event", text: json)))?.root.object
  }

  /// One member of ``json``: `event["frequency"]?.double`, `?.integer`, `?.string` or `?.bool`. For several, keep ``fields``.
  public subscript(field: String) -> JSONNode? { fields?[field]?.value }

  /// True when a node posted this event of its contract; with `of`, when that node did.
  ///
  /// ```swift
  /// if event.is(RobotVoice.retuned, of: "robot"), let frequency = event["frequency"]?.double { … }
  /// ```
  public func `is`(_ event: EventContract, of node: String? = nil) -> Bool {
    !isOfRun && name == event.name && (node == nil || node == self.node)
  }

  private static let simpleKinds: [String: Kind] = [
    "started": .started, "draining": .draining, "stopped": .stopped, "nodeRestarted": .nodeRestarted,
    "nodeIsolated": .nodeIsolated, "nodeDetached": .nodeDetached,
  ]

  private static func kind(_ name: String, _ fields: JSONObject) -> Kind? {
    func integer(_ key: String) -> Int? { fields[key]?.value.integer.map { Int($0) } }
    func number(_ key: String) -> Double? { fields[key]?.value.double }
    func text(_ key: String) -> String? { fields[key]?.value.string }
    switch name {
    case "nodeFailed":
      let word = text("reason")
      let reason = NodeFault.Reason.allCases.first { "\($0)" == word }
      return .nodeFailed(reason: reason, text: text("text") ?? "")
    case "partStarted": return text("part").map { .partStarted($0) }
    case "partEnded": return text("part").map { .partEnded($0, failure: text("text")) }
    case "workerHeld": return .workerHeld(text: text("text") ?? "")
    case "messagesLost": return integer("count").map { .messagesLost(count: $0) }
    case "eventsLost": return integer("count").map { .eventsLost(count: $0) }
    case "overload", "overloadEased":
      guard let step = integer("step"), let count = integer("of"), let load = number("load") else {
        return nil
      }
      return name == "overload"
        ? .overload(step: step, of: count, load: load) : .overloadEased(step: step, of: count, load: load)
    case "budgetMissed":
      guard let of = text("of").flatMap({ Budget(rawValue: $0) }), let value = number("value"),
        let budget = number("budget"), let count = integer("count")
      else { return nil }
      return .budgetMissed(
        of, value: .microseconds(value * 1_000), budget: .microseconds(budget * 1_000), count: count)
    default: return nil
    }
  }
}
