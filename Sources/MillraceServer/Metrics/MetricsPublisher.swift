public import CoreMetrics
internal import MillraceCore
public import ServiceLifecycle

/// Publishes figures through swift-metrics, at an interval, to whatever backend the program has chosen.
///
/// Names and labels are those of the page (`Documentation/servers.md`). Counters become `Counter` and, in seconds, `FloatingPointCounter`;
/// gauges become `Gauge`. Histograms have already been counted, for which swift-metrics has no word: they are on the page only.
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

  private let figures: @Sendable () -> [MetricFamily]
  private let interval: Duration
  private let factory: any MetricsFactory
  private let state = Locked(State())

  /// A publisher of an engine's figures.
  /// - Parameters:
  ///   - figures: what is published.
  ///   - interval: how often, at least 100 ms.
  ///   - factory: where to; nil: what the program has chosen by `MetricsSystem.bootstrap`.
  public convenience init(
    _ figures: RunFigures, interval: Duration = .seconds(10), factory: (any MetricsFactory)? = nil
  ) {
    self.init(interval: interval, factory: factory) { figures.families() }
  }

  /// A publisher of any figures.
  /// - Parameters:
  ///   - interval: how often, at least 100 ms.
  ///   - factory: where to; nil: what the program has chosen by `MetricsSystem.bootstrap`.
  ///   - figures: what is published.
  public init(
    interval: Duration = .seconds(10), factory: (any MetricsFactory)? = nil,
    figures: @escaping @Sendable () -> [MetricFamily]
  ) {
    self.figures = figures
    self.interval = max(interval, .milliseconds(100))
    self.factory = factory ?? MetricsSystem.factory
  }

  /// Publishes the figures as they are now. Any thread.
  public func publish() {
    let families = figures()
    state.withLock { state in
      for family in families { publish(family, &state) }
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

  /// Counters of swift-metrics take what was added, not the sum.
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
