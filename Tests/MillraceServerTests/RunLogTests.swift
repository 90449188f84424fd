import InMemoryLogging
import Logging
import MillraceEngine
import MillraceGraph
import Testing

@testable import MillraceServer

@Suite("Events as log entries", .timeLimit(.minutes(10)))
struct RunLogTests {
  private func logged(
    _ plan: GraphPlan, level: Logger.Level = .trace, content: Bool = false
  ) async throws -> [InMemoryLogHandler.Entry] {
    let handler = InMemoryLogHandler()
    var logger = Logger(label: "test") { _ in handler }
    logger.logLevel = level
    var log = RunLog(logger)
    log.includesContent = content
    let engine = Engine(catalogue: serverCatalogue, clock: .virtual)
    let run = try engine.prepare(plan)
    let observing = RunObservers(log: log).observe(run)
    run.start()
    _ = await run.wait()
    await observing.value
    return handler.entries
  }

  @Test("entries have the level of their event, and the run, graph and node as metadata")
  func levels() async throws {
    let entries = try await logged(try talkPlan(count: 20))
    let speech = try #require(entries.first { $0.metadata["event"] == "speechStarted" })
    #expect(speech.level == .debug)
    #expect(speech.metadata["graph"] == "talk" && speech.metadata["node"] == "bot")
    #expect(speech.metadata["run"] == "1" && speech.metadata["number"] == "42")
    let stopped = try #require(entries.last)
    #expect(stopped.level == .info && stopped.metadata["event"] == "stopped")
    #expect(stopped.metadata["node"] == nil)
  }

  @Test("a failed node is logged as an error with the reason")
  func failure() async throws {
    let entries = try await logged(try talkPlan(failAt: 3), level: .error)
    #expect(entries.map(\.level) == [.error])
    #expect(entries[0].metadata["event"] == "nodeFailed" && entries[0].metadata["text"] != nil)
  }

  @Test("what users say is logged only on request", arguments: [false, true])
  func content(isRequested: Bool) async throws {
    let entries = try await logged(try talkPlan(count: 20), content: isRequested)
    let transcript = try #require(entries.first { $0.metadata["event"] == "transcript" })
    #expect((transcript.metadata["text"] == "my number is 1234") == isRequested)
    #expect(entries.contains { "\($0.metadata)\($0.message)".contains("1234") } == isRequested)
  }

  @Test("losses, missed budgets and problems of nodes are warnings")
  func table() {
    func run(_ name: String, node: String = "", json: String = "{}") -> Logger.Level {
      RunLog.level(of: GraphEvent(time: 0, node: node, name: name, json: json, isOfRun: true))
    }
    func node(_ name: String) -> Logger.Level {
      RunLog.level(of: GraphEvent(time: 0, node: "a", name: name, json: "{}"))
    }
    #expect(run("eventsLost") == .warning && run("budgetMissed", node: "a") == .warning)
    #expect(run("nodeRestarted", node: "a") == .warning && run("nodeDetached", node: "a") == .error)
    #expect(run("started") == .info && run("overload") == .warning && run("partEnded") == .info)
    #expect(run("partEnded", json: "{\"part\":\"fx\",\"text\":\"failed\"}") == .warning)
    #expect(node("disconnected") == .warning && node("started") == .debug)
    // A node may give its events the names of the run's.
    #expect(node("nodeFailed") == .debug)
  }
}
