public import MillraceNet
public import ServiceLifecycle

/// Serves metrics over HTTP: `GET /metrics` for Prometheus or `curl`, and `GET /health` for load balancers.
///
/// ```swift
/// let metrics = EngineMetrics(engine)
/// let server = try await MetricsServer.listen(metrics, port: 9464)
/// ```
///
/// The server has its own thread. The page is built in a task, at most five times a second however many clients ask. By default the server
/// listens on the loopback interface only: metrics contain no secrets, but the names of graphs and nodes may say more than you want to
/// publish. As a service it serves until the group shuts down.
public final class MetricsServer: Service {
  private let server: HTTPServer
  /// The port the server listens on: the requested one, or the one the system chose for 0.
  public var port: Int { server.port }

  /// 9464, allocated to OpenTelemetry exporters in Prometheus' list of default ports:
  /// https://github.com/prometheus/prometheus/wiki/Default-port-allocations.
  public static let defaultPort = 9464

  private init(_ server: HTTPServer) { self.server = server }

  /// Starts listening and serving.
  /// - Parameters:
  ///   - metrics: the metrics on the page.
  ///   - host: the address to listen on; by default the loopback address, which other machines cannot reach.
  ///   - port: 0 for any free port.
  ///   - plain: true to allow an address that other machines can reach, although requests and responses are not encrypted.
  ///   - additional: returns metrics of your own, added to the page.
  ///   - isHealthy: whether this process accepts work; `/health` answers 503 when it returns false.
  /// - Throws: `NetError` when the server cannot listen.
  public static func listen(
    _ metrics: EngineMetrics, host: String = "127.0.0.1", port: Int = defaultPort, plain: Bool = false,
    additional: @escaping @Sendable () -> [MetricFamily] = { [] },
    isHealthy: @escaping @Sendable () -> Bool = { true }
  ) async throws(NetError) -> MetricsServer {
    let page = MetricsPage { metrics.families() + additional() }
    return MetricsServer(
      try await HTTPServer.listen(host: host, port: port, admission: admission(host, plain: plain)) {
        request in
        await respond(to: request, page, isHealthy)
      })
  }

  /// Admits any number of clients of one address, as behind a proxy or in one machine's load test: the server has no others to protect
  /// from them.
  /// - Parameters:
  ///   - host: the address to listen on. Where other machines reach it, it has any name; the names of this machine's own are checked, because
  ///     a page of another site could have its name resolve to this machine.
  ///   - plain: true to allow an address that other machines can reach.
  static func admission(_ host: String = "127.0.0.1", plain: Bool) -> ServerAdmission {
    var admission = ServerAdmission()
    admission.halfOpenPerAddress = admission.halfOpen
    admission.allowsPlaintext = plain
    let isLocal = host == "::1" || (try? WebAddress("http://" + host))?.isLoopback == true
    if !isLocal { admission.hosts = ["*"] }
    return admission
  }

  static func respond(
    to request: HTTPServer.Request, _ page: MetricsPage, _ isHealthy: @Sendable () -> Bool
  ) async -> HTTPServer.Response {
    let path = request.path
    guard path == "/metrics" || path == "/health" else {
      return .text("not found; try /metrics or /health\n", status: 404)
    }
    guard request.method == "GET" || request.method == "HEAD" else {
      var response = HTTPServer.Response.text("only GET is supported\n", status: 405)
      response.headers.append(("Allow", "GET, HEAD"))
      return response
    }
    guard path == "/metrics" else {
      return isHealthy() ? .text("ok\n") : .text("this process accepts no more work\n", status: 503)
    }
    return HTTPServer.Response(
      headers: [("Content-Type", PrometheusPage.contentType)], body: await page.text())
  }

  /// Serves until the group shuts down or the task is cancelled, then stops.
  public func run() async throws {
    do { try await gracefulShutdown() } catch {
      // Cancelled: stop all the same.
    }
    await stop()
  }

  /// Stops listening. Requests in progress still get their response.
  public func stop() async { await server.stop() }
}
