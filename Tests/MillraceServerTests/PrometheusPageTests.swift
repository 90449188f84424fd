import MillraceEngine
import Testing

@testable import MillraceServer

@Suite("Prometheus page")
struct PrometheusPageTests {
  private typealias Sample = MetricFamily.Sample
  private typealias Label = MetricFamily.Label

  @Test("a family has its help, its type and one line per sample, sorted by labels")
  func counter() {
    let family = MetricFamily(
      "calls_total", "Calls.", .counter,
      [Sample([Label("node", "b")], .count(2)), Sample([Label("node", "a")], .number(0.5))])
    #expect(
      PrometheusPage.text([family]) == """
        # HELP calls_total Calls.
        # TYPE calls_total counter
        calls_total{node="a"} 0.5
        calls_total{node="b"} 2

        """)
  }

  @Test("families are sorted by name, and those without samples are omitted")
  func order() {
    let page = PrometheusPage.text([
      MetricFamily("b", "B.", .gauge, [Sample([], .count(1))]), MetricFamily("c", "C.", .gauge, []),
      MetricFamily("a", "A.", .gauge, [Sample([], .count(2))]),
    ])
    #expect(page == "# HELP a A.\n# TYPE a gauge\na 2\n# HELP b B.\n# TYPE b gauge\nb 1\n")
  }

  @Test("a histogram has its buckets, its sum and its count")
  func histogram() {
    let counted = Histogram(
      buckets: [
        .init(range: 1_000..<2_000, count: 3), .init(range: 9_000..<11_000, count: 2),
        .init(range: 2_000_000_000..<Int64.max, count: 1),
      ], largest: 2_500_000_000)
    let histogram = MetricHistogram(counted, bounds: [10_000, 1_000_000], sum: 2_600_000_000)
    let page = PrometheusPage.text([
      MetricFamily(
        "call_seconds", "Calls.", .histogram, [Sample([Label("node", "a")], .histogram(histogram))])
    ])
    // The bucket that contains 10 µs counts as above it.
    #expect(
      page == """
        # HELP call_seconds Calls.
        # TYPE call_seconds histogram
        call_seconds_bucket{node="a",le="1e-05"} 3
        call_seconds_bucket{node="a",le="0.001"} 5
        call_seconds_bucket{node="a",le="+Inf"} 6
        call_seconds_sum{node="a"} 2.6
        call_seconds_count{node="a"} 6

        """)
  }

  @Test("label values and help texts are escaped, and invalid characters in names are replaced")
  func escaping() {
    let family = MetricFamily(
      "1 bad-name", "Of \\ and\nlines.", .gauge,
      [Sample([Label("a:b", "quote \" back \\ line\nend")], .number(.infinity))])
    #expect(
      PrometheusPage.text([family])
        == "# HELP __bad_name Of \\\\ and\\nlines.\n# TYPE __bad_name gauge\n"
        + "__bad_name{a_b=\"quote \\\" back \\\\ line\\nend\"} +Inf\n")
    #expect(PrometheusPage.number(.nan) == "NaN" && PrometheusPage.number(-.infinity) == "-Inf")
  }

  @Test("a page that is too large omits whole families, and counts them")
  func bounded() {
    let large = MetricFamily(
      "large", "Large.", .gauge, (0..<100).map { Sample([Label("n", "\($0)")], .count($0)) })
    let small = MetricFamily("small", "Small.", .gauge, [Sample([], .count(1))])
    let page = PrometheusPage.text([large, small], limit: 500)
    #expect(!page.contains("large{") && page.contains("\nsmall 1\n"))
    #expect(page.hasSuffix("\nmillrace_metrics_omitted_families 1\n"))
    #expect(!PrometheusPage.text([large, small]).contains("omitted"))
  }
}
