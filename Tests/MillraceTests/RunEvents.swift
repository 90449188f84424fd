import Millrace
import MillraceCore
import MillraceTesting
import Testing

/// The events of a run, for tests that wait for some.
final class RunEvents: Sendable {
  private let events = Locked<[GraphEvent]>([])

  /// Collects the events of a run that has not started.
  init(_ run: GraphRun) {
    let (stream, events) = (run.events, events)
    Task { for await event in stream { events.withLock { $0.append(event) } } }
  }

  /// All of them, for messages.
  var words: String { "\(events.withLock { $0.map { "\($0.node) \($0.json)" } })" }

  /// Counts the events of a node, optionally those that contain a text.
  func count(_ node: String, _ name: String, _ words: String = "") -> Int {
    events.withLock {
      $0.count { $0.node == node && $0.name == name && (words.isEmpty || $0.json.contains(words)) }
    }
  }

  /// The events of a node with a name.
  func all(_ node: String, _ name: String) -> [GraphEvent] {
    events.withLock { $0.filter { $0.node == node && $0.name == name } }
  }

  /// The latest event of a node with a name.
  func last(_ node: String, _ name: String) -> GraphEvent? {
    events.withLock { $0.last { $0.node == node && $0.name == name } }
  }

  /// Waits for a condition, two minutes at most.
  /// - Parameter details: shown beside the events when it never holds.
  func until(_ what: String, _ details: () -> String = { "" }, _ condition: () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(120)
    while !condition() {
      try #require(ContinuousClock.now < end, "never: \(what); \(details()) \(words)")
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}
