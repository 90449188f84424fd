public import Logging
internal import MillraceDialog
public import MillraceEngine

/// Hands the events of runs to a `Logger`.
///
/// The level says what it means: `error` when a node failed or did not return, `warning` when something was lost or late, `info` for
/// the run's own life, `debug` for the events of nodes. Each entry has the metadata `graph`, `run`, `event`, and `node` where the event
/// is about one; then the event's members that are numbers or truth values, and of the run's own events also texts. Texts of nodes and
/// services are left out, since they may be what a user said. Secrets have been removed from all events already.
public struct RunLog: Sendable {
  private let logger: Logger
  /// Texts that nodes post are logged too, what users say among them.
  public var includesContent = false

  /// A log that goes to a logger.
  public init(_ logger: Logger) { self.logger = logger }

  /// Logs events as they come, until the run has stopped or the task is cancelled.
  /// - Parameters:
  ///   - events: of the run; ask for them before the run starts.
  ///   - run: what the entries are marked with.
  public func follow(_ events: GraphEvents, of run: GraphRun) async {
    let (graph, number) = (run.name, run.id)
    for await event in events { log(event, graph: graph, run: number) }
  }

  /// Logs one event.
  public func log(_ event: GraphEvent, graph: String, run: Int) {
    let level = Self.level(of: event)
    guard level >= logger.logLevel else { return }
    var metadata = members(of: event)
    metadata["graph"] = "\(graph)"
    metadata["run"] = "\(run)"
    metadata["event"] = "\(event.name)"
    if !event.node.isEmpty { metadata["node"] = "\(event.node)" }
    logger.log(level: level, "\(Self.message(event))", metadata: metadata)
  }

  /// The level of an event.
  public static func level(of event: GraphEvent) -> Logger.Level {
    switch event.name {
    case "nodeFailed", "nodeIsolated", "nodeDetached", "workerHeld": .error
    case "nodeRestarted", "messagesLost", "eventsLost", "budgetMissed", "overload": .warning
    case "started" where event.node.isEmpty, "draining", "stopped", "overloadEased": .info
    case let name where nodeTroubles.contains(name) && !event.node.isEmpty: .warning
    default: event.node.isEmpty ? .info : .debug
    }
  }

  /// What nodes call their troubles.
  private static let nodeTroubles: Set = [
    "error", "failed", "refused", "damaged", "truncated", "lost", "disconnected", "deviceLost", "stalled",
    "kicked", "authExpired",
  ]

  /// Names only, so that entries of the same kind are equal: figures are in the metadata.
  private static func message(_ event: GraphEvent) -> String {
    event.node.isEmpty ? "run: \(event.name)" : "node \(event.node): \(event.name)"
  }

  private func members(of event: GraphEvent) -> Logger.Metadata {
    guard let members = (try? JSONValue(parsing: event.json))?.members else { return [:] }
    var metadata: Logger.Metadata = [:]
    for member in members where !Self.common.contains(member.name) {
      switch member.value {
      case .number(let number): metadata[member.name] = "\(number)"
      case .bool(let bool): metadata[member.name] = "\(bool)"
      case .string(let text) where includesContent || isOfRun(event): metadata[member.name] = "\(text)"
      default: break
      }
    }
    return metadata
  }

  private static let common: Set = ["node", "event", "graph", "run"]

  /// Of the run itself, also where it is about a node.
  private func isOfRun(_ event: GraphEvent) -> Bool {
    event.node.isEmpty || Self.runEvents.contains(event.name)
  }

  /// Events of a run that name a node; see `GraphEvent.name`.
  private static let runEvents: Set = [
    "nodeFailed", "nodeRestarted", "nodeIsolated", "nodeDetached", "workerHeld", "messagesLost",
    "budgetMissed",
  ]
}
