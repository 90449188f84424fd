/// A cached metrics page: built when a client requests it, and served from the cache for the next 200 ms.
///
/// However many clients ask at once, one page is built at a time, in a task: no worker and no event loop waits for it.
public actor MetricsPage {
  private let lifetime: Duration
  private let metrics: @Sendable () -> [MetricFamily]
  private var page: [UInt8] = []
  private var builtAt: ContinuousClock.Instant?
  /// Number of pages built so far.
  package private(set) var count = 0

  /// Creates a page; the first request builds it.
  /// - Parameters:
  ///   - lifetime: how long a page is served before it is built again.
  ///   - metrics: returns the metrics of the page.
  public init(lifetime: Duration = .milliseconds(200), metrics: @escaping @Sendable () -> [MetricFamily]) {
    self.lifetime = lifetime
    self.metrics = metrics
  }

  /// The page in Prometheus' text format, at most `lifetime` old.
  public func text() -> [UInt8] {
    if let builtAt, builtAt.duration(to: .now) < lifetime { return page }
    page = Array(PrometheusPage.text(metrics()).utf8)
    count += 1
    builtAt = .now
    return page
  }
}
