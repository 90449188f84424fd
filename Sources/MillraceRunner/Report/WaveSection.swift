internal import MillraceCore
internal import MillraceDSP
internal import MillraceGraph

/// The section with the waveforms of the sound that entered and left a graph, on one time scale.
struct WaveSection {
  let strips: [WaveRecorder.Strip]
  /// True when there are other runs, whose sound is not shown.
  let ofSeveral: Bool

  /// Columns of a waveform: about one per pixel.
  private static let columns = 1_100

  func write(to html: inout HTMLWriter) {
    let heard = strips.filter { $0.envelope.end > 0 }
    guard !heard.isEmpty else { return }
    let end = heard.map(\.envelope.end).max() ?? 1
    html.section(
      "Sound",
      "Sound that entered and left the graph" + (ofSeveral ? ", in the first instance" : "")
        + ". Full height is full scale."
    ) { html in
      html.element("div", class: "r-card") { html in
        for strip in heard { write(strip, end, to: &html) }
        html.element("div", class: "r-axis") { html in
          for step in 0...4 { html.element("span", Self.time(end * Int64(step) / 4)) }
        }
      }
    }
  }

  private func write(_ strip: WaveRecorder.Strip, _ end: Nanoseconds, to html: inout HTMLWriter) {
    let peak = strip.envelope.largest > 0 ? Self.decibels(strip.envelope.largest) : "silence"
    html.element("div", class: "r-between") { html in
      html.element("h3", strip.name)
      html.element("div", class: "r-key") { html in
        html.element("span", strip.format.description)
        html.element("span", peak)
        if strip.envelope.clippedCount > 0 {
          html.element(
            "span", "\(Figures.counted(strip.envelope.clippedCount, "sample")) at full scale", class: "r-bad")
        }
        if strip.droppedCount > 0 { html.element("span", "\(strip.droppedCount) packets not shown") }
      }
    }
    html.raw(
      Charts.waveform(
        strip.envelope, from: 0, to: end, columns: Self.columns, class: strip.isEnd ? "r-wave-end" : "r-wave")
    )
  }

  private static func decibels(_ level: Float) -> String {
    "peak \(Figures.fixed(Decibels.decibels(amplitude: Double(level)), decimals: 1)) dBFS"
  }

  private static func time(_ time: Nanoseconds) -> String {
    "\(Figures.number(Double(time) / 1e9, decimals: time < 10_000_000_000 ? 2 : 1)) s"
  }
}
