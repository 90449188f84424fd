/// Writes metrics in Prometheus' text format 0.0.4. Pure: no clock, no lock, no socket.
///
/// Families are sorted by name and samples by labels, so two pages of the same metrics are equal. In names, characters that the format
/// does not allow are replaced by `_`.
/// See https://prometheus.io/docs/instrumenting/exposition_formats.
public enum PrometheusPage {
  /// The `Content-Type` of a response with such a page.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"
  /// Largest page, in bytes: many scrapers reject larger ones.
  public static let defaultLimit = 8 << 20

  private static let omitted = "millrace_metrics_omitted_families"

  /// The page of some metrics. Takes about a microsecond per line.
  /// - Parameters:
  ///   - families: in any order; when several have the same name, only the first is written.
  ///   - limit: largest size of the page in bytes. Families that do not fit are omitted entirely, and
  ///     `millrace_metrics_omitted_families` counts them.
  public static func text(_ families: [MetricFamily], limit: Int = defaultLimit) -> String {
    var page = ""
    var seen: Set<String> = []
    var omittedCount = 0
    for family in families.sorted(by: { $0.name < $1.name }) {
      guard !family.samples.isEmpty, seen.insert(name(family.name)).inserted else { continue }
      let text = self.text(family)
      if page.utf8.count + text.utf8.count <= limit { page += text } else { omittedCount += 1 }
    }
    guard omittedCount > 0 else { return page }
    let note = MetricFamily(
      omitted, "Families omitted because the page would be too large.", .gauge,
      [MetricFamily.Sample([], .count(omittedCount))])
    return page + text(note)
  }

  private static func text(_ family: MetricFamily) -> String {
    let name = name(family.name)
    var text = "# HELP \(name) \(escaped(family.help, quotes: false))\n"
    text += "# TYPE \(name) \(family.kind.rawValue)\n"
    let samples = family.samples.sorted { first, second in
      first.labels.lexicographicallyPrecedes(second.labels) { ($0.name, $0.value) < ($1.name, $1.value) }
    }
    for sample in samples { write(sample, name, to: &text) }
    return text
  }

  private static func write(_ sample: MetricFamily.Sample, _ name: String, to text: inout String) {
    switch sample.value {
    case .count(let count): text += "\(name)\(labels(sample.labels)) \(count)\n"
    case .number(let value): text += "\(name)\(labels(sample.labels)) \(number(value))\n"
    case .histogram(let histogram):
      for (bound, count) in zip(histogram.bounds, histogram.cumulative) {
        let labels = labels(sample.labels + [MetricFamily.Label("le", number(bound))])
        text += "\(name)_bucket\(labels) \(count)\n"
      }
      text +=
        "\(name)_bucket\(labels(sample.labels + [MetricFamily.Label("le", "+Inf")])) \(histogram.count)\n"
      text += "\(name)_sum\(labels(sample.labels)) \(number(histogram.sum))\n"
      text += "\(name)_count\(labels(sample.labels)) \(histogram.count)\n"
    }
  }

  private static func labels(_ labels: [MetricFamily.Label]) -> String {
    guard !labels.isEmpty else { return "" }
    let pairs = labels.map {
      "\(name($0.name).replacing(":", with: "_"))=\"\(escaped($0.value, quotes: true))\""
    }
    return "{\(pairs.joined(separator: ","))}"
  }

  /// A floating-point number as Go parses it.
  static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return "\(value)"
  }

  private static func escaped(_ text: String, quotes: Bool) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      case "\"" where quotes: escaped += "\\\""
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// A name as the format allows it: `[a-zA-Z_:][a-zA-Z0-9_:]*`.
  private static func name(_ name: String) -> String {
    var text = ""
    for scalar in name.unicodeScalars {
      switch scalar {
      case "a"..."z", "A"..."Z", "_", ":": text.unicodeScalars.append(scalar)
      case "0"..."9" where !text.isEmpty: text.unicodeScalars.append(scalar)
      default: text += "_"
      }
    }
    return text.isEmpty ? "_" : text
  }
}
