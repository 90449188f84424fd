public import Logging
internal import MillraceDialog
public import MillraceEngine
internal import MillraceJSON

/// Writes the events of runs to a `Logger`.
///
/// Levels: `error` when a node failed or did not return, `warning` when something was lost or late, `info` for the run's life cycle,
/// `debug` for the events of nodes. Each entry has the metadata `graph`, `run` and `event`, and `node` when the event concerns one, as
/// well as the event's numbers and Booleans; for the run's own events also its strings. Strings of nodes and services are omitted,
/// because they may contain what a user said. Secrets have already been removed from all events.
public struct RunLog: Sendable {
  private let logger: Logger
  /// True to log the strings that nodes post too, which may include what users said.
  public var includesContent = false

  /// Creates a log that writes to a logger.
  public init(_ logger: Logger) { self.logger = logger }

  /// Logs events as they arrive, until the run has stopped or the task is cancelled.
  /// - Parameters:
  ///   - events: the run's events; subscribe before the run starts.
  ///   - run: the run whose name and number each entry has.
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
    guard event.isOfRun else { return nodeProblems.contains(event.name) ? .warning : .debug }
    return switch event.name {
    case "nodeFailed", "nodeIsolated", "nodeDetached", "workerHeld": .error
    case "nodeRestarted", "messagesLost", "eventsLost", "budgetMissed", "overload": .warning
    // With the failure of a part.
    case "partEnded" where event.json.contains("\"text\""): .warning
    default: .info
    }
  }

  /// Names of node events that report a problem.
  private static let nodeProblems: Set = [
    "error", "failed", "refused", "damaged", "truncated", "lost", "disconnected", "deviceLost", "stalled",
    "kicked", "authExpired",
  ]

  /// Contains names only, so that events of the same kind have the same message: the values are in the metadata.
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
      case .string(let text) where includesContent || event.isOfRun: metadata[member.name] = "\(text)"
      default: break
      }
    }
    return metadata
  }

  private static let common: Set = ["node", "event", "graph", "run"]
}
