/// The page of metrics as clients get it: put together when somebody asks, and for the next fifth of a second the same for all.
///
/// However many ask at once, one page is put together at a time, in a task: no worker and no event loop waits for it.
public actor MetricsPage {
  private let lifetime: Duration
  private let figures: @Sendable () -> [MetricFamily]
  private var page: [UInt8] = []
  private var madeAt: ContinuousClock.Instant?
  /// Pages put together so far.
  package private(set) var count = 0

  /// A page that was not asked for yet.
  /// - Parameters:
  ///   - lifetime: how long a page is given to all who ask.
  ///   - figures: everything that is on it.
  public init(lifetime: Duration = .milliseconds(200), figures: @escaping @Sendable () -> [MetricFamily]) {
    self.lifetime = lifetime
    self.figures = figures
  }

  /// The page in Prometheus' text format, at most `lifetime` old.
  public func text() -> [UInt8] {
    if let madeAt, madeAt.duration(to: .now) < lifetime { return page }
    page = Array(PrometheusPage.text(figures()).utf8)
    count += 1
    madeAt = .now
    return page
  }
}
