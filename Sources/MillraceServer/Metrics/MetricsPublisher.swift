public import CoreMetrics
internal import MillraceCore
public import ServiceLifecycle

/// Publishes metrics through swift-metrics at an interval, to the backend that the program has chosen.
///
/// Names and labels are those of the page (`Documentation/servers.md`). Counters become `Counter`, or `FloatingPointCounter` when they count
/// seconds; gauges become `Gauge`. Histograms are on the page only: swift-metrics accepts single observations, and these are already counted.
///
/// As a service it publishes until the group shuts down, and once more at the end.
public final class MetricsPublisher: Service {
  private struct Key: Hashable {
    var name: String
    var labels: [MetricFamily.Label]
  }

  private struct State {
    var counters: [Key: (metric: CoreMetrics.Counter, published: Int)] = [:]
    var times: [Key: (metric: FloatingPointCounter, published: Double)] = [:]
    var gauges: [Key: Gauge] = [:]
  }

  private let metrics: @Sendable () -> [MetricFamily]
  private let interval: Duration
  private let factory: any MetricsFactory
  private let state = Locked(State())

  /// Creates a publisher of an engine's metrics.
  /// - Parameters:
  ///   - metrics: the metrics to publish.
  ///   - interval: time between two publications, at least 100 ms.
  ///   - factory: the backend; nil for the one set with `MetricsSystem.bootstrap`.
  public convenience init(
    _ metrics: EngineMetrics, interval: Duration = .seconds(10), factory: (any MetricsFactory)? = nil
  ) {
    self.init(interval: interval, factory: factory) { metrics.families() }
  }

  /// Creates a publisher of any metrics.
  /// - Parameters:
  ///   - interval: time between two publications, at least 100 ms.
  ///   - factory: the backend; nil for the one set with `MetricsSystem.bootstrap`.
  ///   - metrics: returns the metrics to publish.
  public init(
    interval: Duration = .seconds(10), factory: (any MetricsFactory)? = nil,
    metrics: @escaping @Sendable () -> [MetricFamily]
  ) {
    self.metrics = metrics
    self.interval = max(interval, .milliseconds(100))
    self.factory = factory ?? MetricsSystem.factory
  }

  /// Publishes the current metrics. Any thread.
  public func publish() {
    let families = metrics()
    state.withLock { state in
      for family in families { publish(family, &state) }
      removeGauges(notIn: families, &state)
    }
  }

  /// A value that is not measured any more would otherwise remain at its last value.
  private func removeGauges(notIn families: [MetricFamily], _ state: inout State) {
    var present: Set<Key> = []
    for family in families where family.kind == .gauge {
      for sample in family.samples { present.insert(Key(name: family.name, labels: sample.labels)) }
    }
    for (key, gauge) in state.gauges where !present.contains(key) {
      gauge.destroy()
      state.gauges[key] = nil
    }
  }

  private func publish(_ family: MetricFamily, _ state: inout State) {
    for sample in family.samples {
      let key = Key(name: family.name, labels: sample.labels)
      switch (family.kind, sample.value) {
      case (.counter, .count(let count)): add(count, key, &state)
      case (.counter, .number(let value)): add(value, key, &state)
      case (.gauge, .count(let count)): gauge(key, &state).record(count)
      case (.gauge, .number(let value)): gauge(key, &state).record(value)
      case (.histogram, _), (_, .histogram): break
      }
    }
  }

  /// Counters of swift-metrics take increments, not totals.
  private func add(_ count: Int, _ key: Key, _ state: inout State) {
    var entry =
      state.counters[key]
      ?? (CoreMetrics.Counter(label: key.name, dimensions: dimensions(key), factory: factory), 0)
    guard count > entry.published || state.counters[key] == nil else { return }
    entry.metric.increment(by: max(0, count - entry.published))
    entry.published = max(count, entry.published)
    state.counters[key] = entry
  }

  private func add(_ value: Double, _ key: Key, _ state: inout State) {
    var entry = state.times[key] ?? (floatingPointCounter(key), 0)
    guard value > entry.published || state.times[key] == nil else { return }
    entry.metric.increment(by: max(0, value - entry.published))
    entry.published = max(value, entry.published)
    state.times[key] = entry
  }

  private func gauge(_ key: Key, _ state: inout State) -> Gauge {
    if let gauge = state.gauges[key] { return gauge }
    let gauge = Gauge(label: key.name, dimensions: dimensions(key), factory: factory)
    state.gauges[key] = gauge
    return gauge
  }

  private func floatingPointCounter(_ key: Key) -> FloatingPointCounter {
    let dimensions = dimensions(key)
    return FloatingPointCounter(
      label: key.name, dimensions: dimensions,
      handler: factory.makeFloatingPointCounter(label: key.name, dimensions: dimensions), factory: factory)
  }

  private func dimensions(_ key: Key) -> [(String, String)] { key.labels.map { ($0.name, $0.value) } }

  /// Publishes at the interval until the group shuts down or the task is cancelled.
  public func run() async throws {
    do {
      try await cancelWhenGracefulShutdown { [self] in
        while true {
          publish()
          try await Task.sleep(for: interval)
        }
      }
    } catch is CancellationError {
      // The group shuts down.
    }
    publish()
  }
}
