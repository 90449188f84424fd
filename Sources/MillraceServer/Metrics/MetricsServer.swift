public import MillraceNet
public import ServiceLifecycle

/// A page of metrics over HTTP, for Prometheus and for `curl`: `GET /metrics`, and `GET /health` for load balancers.
///
/// ```swift
/// let figures = RunFigures(engine)
/// let metrics = try await MetricsServer.listen(figures: figures, port: 9464)
/// ```
///
/// It has its own thread; the page is built in a task, at most five times a second however many clients ask. It listens on this machine
/// only, unless `plain` allows others: metrics are no secrets, but the names of graphs and nodes may say more than you want to publish. As a
/// service it serves until the group shuts down.
public final class MetricsServer: Service {
  private let server: HTTPServer
  /// The port it listens at: the one asked for, or the one the system chose for 0.
  public var port: Int { server.port }

  /// The port that Prometheus' list of default ports has for exporters of OpenTelemetry:
  /// https://github.com/prometheus/prometheus/wiki/Default-port-allocations.
  public static let usualPort = 9464

  private init(_ server: HTTPServer) { self.server = server }

  /// Starts to listen, and serves from then on.
  /// - Parameters:
  ///   - figures: the runs on the page.
  ///   - host: the address to listen at; by default this machine's own, which no other machine can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - plain: true: may listen where other machines can reach it.
  ///   - more: figures of the program, put on the page beside those of the runs.
  ///   - isHealthy: whether this process wants work; false answers `/health` with 503.
  /// - Throws: that it cannot listen, and why.
  public static func listen(
    figures: RunFigures, host: String = "127.0.0.1", port: Int = usualPort, plain: Bool = false,
    more: @escaping @Sendable () -> [MetricFamily] = { [] },
    isHealthy: @escaping @Sendable () -> Bool = { true }
  ) async throws(NetError) -> MetricsServer {
    let page = MetricsPage { figures.families() + more() }
    return MetricsServer(
      try await HTTPServer.listen(host: host, port: port, plain: plain) { request in
        await respond(to: request, page, isHealthy)
      })
  }

  static func respond(
    to request: HTTPServer.Request, _ page: MetricsPage, _ isHealthy: @Sendable () -> Bool
  ) async -> HTTPServer.Response {
    let path = request.path
    guard path == "/metrics" || path == "/health" else {
      return .text("there are /metrics and /health here\n", status: 404)
    }
    guard request.method == "GET" || request.method == "HEAD" else {
      var response = HTTPServer.Response.text("only GET is supported\n", status: 405)
      response.headers.append(("Allow", "GET, HEAD"))
      return response
    }
    guard path == "/metrics" else {
      return isHealthy() ? .text("ok\n") : .text("this process takes no more work\n", status: 503)
    }
    return HTTPServer.Response(
      headers: [("Content-Type", PrometheusPage.contentType)], body: await page.text())
  }

  /// Serves until the group shuts down or the task is cancelled, then stops.
  public func run() async throws {
    do { try await gracefulShutdown() } catch {
      // Cancelled: it stops all the same.
    }
    await stop()
  }

  /// Stops to listen; requests under way get their response.
  public func stop() async { await server.stop() }
}
