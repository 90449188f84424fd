internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// Charts of the HTML report: SVG that stretches to the available width. Text is placed beside them in HTML, so that it is not stretched.
enum Charts {
  /// A histogram with one bar per bucket, on a logarithmic scale.
  /// - Parameters:
  ///   - range: the range shown, on the scale of `place(of:)`.
  ///   - limit: bars from here on are red; nil for none.
  static func histogram(
    _ histogram: Histogram, _ range: ClosedRange<Int>, limit: Nanoseconds?, class classes: String
  )
    -> String
  {
    let (step, height) = (4.0, 64.0)
    let width = Double(range.count) * step
    let most = Double(histogram.buckets.map(\.count).max() ?? 1)
    var svg = head(classes, width: width, height: height)
    svg.path("r-base", "M0 \(SVGWriter.number(height - 0.5))H\(SVGWriter.number(width))")
    for bucket in histogram.buckets {
      let x = Double(place(of: bucket.range.lowerBound) - range.lowerBound) * step
      // The least height keeps a single packet among a million visible.
      let size = max(1.5, Double(bucket.count) / most * (height - 2))
      let isOver = limit.map { bucket.range.lowerBound >= $0 } ?? false
      svg.rectangle(isOver ? "r-over" : "r-bar", x: x, y: height - size, width: step - 0.8, height: size)
    }
    if let limit, limit > 0 {
      let x = Double(place(of: limit) - range.lowerBound) * step
      if x > 0 && x < width { svg.path("r-limit", "M\(SVGWriter.number(x)) 0V\(SVGWriter.number(height))") }
    }
    svg.line("</svg>")
    return svg.text
  }

  /// The scale of histograms: eight places per octave.
  static func place(of value: Nanoseconds) -> Int {
    guard value >= 8 else { return 0 }
    let exponent = 63 - value.leadingZeroBitCount
    return (exponent - 3) * 8 + Int(value >> Int64(exponent - 3)) & 7
  }

  /// The range of a histogram, with some space at both ends.
  static func places(of histogram: Histogram, and limit: Nanoseconds? = nil) -> ClosedRange<Int> {
    let values = histogram.buckets.map(\.range.lowerBound) + (limit.map { [$0] } ?? [])
    let places = values.map(place(of:))
    let (least, most) = (places.min() ?? 0, places.max() ?? 0)
    let middle = (least + most) / 2
    // At least two octaves, so that a single bar does not fill the chart.
    return min(least - 2, middle - 8)...max(most + 3, middle + 8)
  }

  /// A waveform: the area between the maxima and the minima of the envelope.
  static func waveform(
    _ envelope: Envelope, from: Nanoseconds, to: Nanoseconds, columns: Int, class classes: String
  )
    -> String
  {
    let peaks = envelope.columns(columns, from: from, to: to)
    let height = 100.0
    func y(_ value: Float) -> Double { height / 2 - Double(min(max(value, -1), 1)) * (height / 2 - 1) }
    var upper = ""
    var lower = ""
    for (column, peak) in peaks.enumerated() {
      // Silence is drawn as a thin line.
      let high = min(y(peak.high), height / 2 - 0.6)
      let low = max(y(peak.low), height / 2 + 0.6)
      upper += "\(column == 0 ? "M" : "L")\(column) \(SVGWriter.number(high))"
      lower = "L\(column) \(SVGWriter.number(low))" + lower
    }
    var svg = head("r-chart", width: Double(max(1, peaks.count - 1)), height: height, shown: 56)
    svg.path(classes, upper + lower + "Z")
    svg.line("</svg>")
    return svg.text
  }

  private static func head(_ classes: String, width: Double, height: Double, shown: Int? = nil) -> SVGWriter {
    var svg = SVGWriter()
    let size = shown.map { " height=\"\($0)\"" } ?? ""
    svg.line(
      "<svg class=\"\(classes)\" viewBox=\"0 0 \(SVGWriter.number(width)) \(SVGWriter.number(height))\"\(size) preserveAspectRatio=\"none\" aria-hidden=\"true\">"
    )
    return svg
  }
}
