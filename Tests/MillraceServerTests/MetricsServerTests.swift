import MillraceEngine
import MillraceGraph
import MillraceNet
import ServiceLifecycle
import ServiceLifecycleTestKit
import Synchronization
import Testing

@testable import MillraceServer

@Suite("Metrics server", .timeLimit(.minutes(10)))
struct MetricsServerTests {
  private func get(_ path: String, _ port: Int, method: String = "GET") async throws -> HTTPClient.Response {
    var request = HTTPClient.Request(method, try WebAddress("http://127.0.0.1:\(port)\(path)"))
    request.timeouts = HTTPClient.Timeouts(connect: 600_000, answer: 600_000, whole: 600_000)
    return try await HTTPClient.shared.run(request)
  }

  private func text(_ response: HTTPClient.Response) -> String {
    String(decoding: response.body, as: UTF8.self)
  }

  @Test("the page is served in Prometheus' format, and everything else is rejected")
  func page() async throws {
    let engine = Engine(catalogue: serverCatalogue)
    let metrics = EngineMetrics(engine)
    let run = try engine.prepare(try talkPlan())
    metrics.add(run)
    let isHealthy = Atomic<Bool>(true)
    let server = try await MetricsServer.listen(
      metrics, port: 0,
      additional: {
        [MetricFamily("bot_calls_total", "Calls.", .counter, [MetricFamily.Sample([], .count(3))])]
      }, isHealthy: { isHealthy.load(ordering: .relaxed) })
    let page = try await get("/metrics", server.port)
    #expect(page.status == 200)
    #expect(page["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
    #expect(
      text(page).contains(
        "\nmillrace_node_info{graph=\"talk\",node=\"bot\",type=\"test.talk\",lane=\"voice\"} 1\n"))
    #expect(text(page).hasPrefix("# HELP bot_calls_total"))
    #expect(try await get("/", server.port).status == 404)
    #expect(try await get("/metrics/x?y=/metrics", server.port).status == 404)
    #expect(try await get("/metrics?x=1", server.port).status == 200)
    let posted = try await get("/metrics", server.port, method: "POST")
    #expect(posted.status == 405 && posted["Allow"] == "GET, HEAD")
    #expect(try await get("/health", server.port).status == 200)
    isHealthy.store(false, ordering: .relaxed)
    #expect(try await get("/health", server.port).status == 503)
    await server.stop()
    run.stop()
  }

  @Test("an address that other machines can reach is rejected unless it is allowed")
  func loopback() async throws {
    let metrics = EngineMetrics(Engine(catalogue: serverCatalogue))
    await #expect {
      _ = try await MetricsServer.listen(metrics, host: "0.0.0.0", port: 0)
    } throws: { ($0 as? NetError)?.kind == .address }
    let server = try await MetricsServer.listen(metrics, host: "0.0.0.0", port: 0, plain: true)
    #expect(try await get("/health", server.port).status == 200)
    let local = try await MetricsServer.listen(metrics, port: 0, plain: true)
    // Other machines reach it by any name; a name that was rebound to this machine does not reach the local one.
    for (port, status) in [(server.port, 200), (local.port, 403)] {
      var request = HTTPClient.Request("GET", try WebAddress("http://127.0.0.1:\(port)/health"))
      request.timeouts = HTTPClient.Timeouts(connect: 600_000, answer: 600_000, whole: 600_000)
      request.headers = [("Host", "bot.example")]
      #expect(try await HTTPClient.shared.run(request).status == status)
    }
    await local.stop()
    await server.stop()
  }

  @Test("a port in use is reported with the system's reason")
  func taken() async throws {
    let metrics = EngineMetrics(Engine(catalogue: serverCatalogue))
    let server = try await MetricsServer.listen(metrics, port: 0)
    await #expect {
      _ = try await MetricsServer.listen(metrics, port: server.port)
    } throws: { ($0 as? NetError)?.kind == .connect }
    await server.stop()
  }

  @Test("a thousand clients at once all get the page, which is built once")
  func many() async throws {
    let engine = Engine(catalogue: serverCatalogue)
    let metrics = EngineMetrics(engine)
    let run = try engine.prepare(try talkPlan())
    metrics.add(run)
    run.start()
    let page = MetricsPage(lifetime: .seconds(3_600)) { metrics.families() }
    var limits = HTTPServer.Limits()
    // All clients share one thread, so the last ones wait.
    limits.patience = 600_000
    let server = try await HTTPServer.listen(
      port: 0, limits: limits, admission: MetricsServer.admission(plain: false)
    ) {
      await MetricsServer.respond(to: $0, page, { true })
    }
    var crowd = HTTPClient.Limits()
    crowd.connectionsPerHost = 1_000
    let client = HTTPClient(limits: crowd)
    let good = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<1_000 {
        group.addTask {
          var request = HTTPClient.Request("GET", try WebAddress("http://127.0.0.1:\(server.port)/metrics"))
          request.timeouts = HTTPClient.Timeouts(connect: 0, answer: 0, whole: 600_000)
          return try await client.run(request).status
        }
      }
      return try await group.reduce(0) { $0 + ($1 == 200 ? 1 : 0) }
    }
    #expect(good == 1_000)
    #expect(await page.count == 1)
    run.stop()
    await server.stop()
  }

  @Test("as a service it serves until the group shuts down")
  func service() async throws {
    let metrics = EngineMetrics(Engine(catalogue: serverCatalogue))
    let server = try await MetricsServer.listen(metrics, port: 0)
    let port = server.port
    try await testGracefulShutdown { trigger in
      let serving = Task { try await server.run() }
      #expect(try await get("/health", port).status == 200)
      trigger.triggerGracefulShutdown()
      try await serving.value
    }
    await #expect(throws: NetError.self) { _ = try await get("/health", port) }
  }
}
