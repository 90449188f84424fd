internal import CMillraceSys
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// Shows the progress of runs: a few lines redrawn in place on a terminal, otherwise one line every few seconds.
struct Progress {
  private let output: Output
  private let runs: [GraphRun]
  private let monitor: EventMonitor
  private let title: String
  private let redraws: Bool
  private let isQuiet: Bool
  private let interval: Nanoseconds
  private let startedAt = millrace_monotonic_ns()
  private var shownAt: Nanoseconds?
  /// Start of the interval over which the current rates are measured.
  private var last: (at: Nanoseconds, totals: RunTotals)
  /// Packets per second, CPU load in percent, and graph time per real time over the last interval.
  private var rates = (packets: 0.0, processor: 0.0, speed: 0.0)
  private var drawnLines = 0

  /// Ten times a second on a terminal; less often with many runs.
  private static let redrawInterval: Nanoseconds = .milliseconds(100)
  private static let lineInterval: Nanoseconds = .milliseconds(5_000)
  /// Shortest interval for rates, so that they are readable.
  private static let rateInterval: Nanoseconds = .milliseconds(500)
  /// With more runs, redraw once a second: reading the counters of a run takes some microseconds.
  private static let manyRuns = 32
  /// Most meters shown.
  private static let mostMeters = 8

  /// Create it before the runs start: the first rates are measured from here.
  /// - Parameters:
  ///   - redraws: false when something else writes to the same terminal.
  ///   - isQuiet: true to show only errors.
  init(
    _ runs: [GraphRun], title: String, monitor: EventMonitor, output: Output, redraws: Bool, isQuiet: Bool
  ) {
    self.runs = runs
    self.title = title
    self.monitor = monitor
    self.output = output
    self.isQuiet = isQuiet
    self.redraws = redraws && output.canRedraw && !isQuiet
    last = (startedAt, RunTotals(isQuiet ? [] : runs))
    interval =
      self.redraws
      ? (runs.count > Self.manyRuns ? .milliseconds(1_000) : Self.redrawInterval) : Self.lineInterval
  }

  /// Prints new notices, and the state when it is due.
  mutating func update(now: Nanoseconds) {
    let notices = monitor.takeNotices()
    if !notices.isEmpty { show(notices) }
    guard !isQuiet else { return }
    let due = now - (shownAt ?? (redraws ? startedAt - interval : startedAt)) >= interval
    guard due || (redraws && !notices.isEmpty) else { return }
    shownAt = now
    let totals = RunTotals(runs)
    updateRates(totals, now)
    if redraws { draw(totals) } else { output.write(plainLine(totals) + "\n") }
  }

  /// Prints notices above the meters, where they stay.
  private mutating func show(_ notices: [EventMonitor.Notice]) {
    clear()
    for notice in notices where notice.isError || !isQuiet {
      output.write(output.style.paint("\(title): \(notice.text)", .yellow) + "\n")
    }
  }

  /// Erases the meters.
  mutating func clear() {
    guard drawnLines > 0 else { return }
    output.write("\u{1B}[\(drawnLines)A\r\u{1B}[J")
    drawnLines = 0
  }

  /// Erases the meters and prints the last notices.
  mutating func finish() {
    clear()
    show(monitor.takeNotices())
  }

  private mutating func updateRates(_ totals: RunTotals, _ now: Nanoseconds) {
    let before = last
    let span = now - before.at
    guard span >= Self.rateInterval || (!redraws && span > 0) else { return }
    rates.packets = Double(totals.delivered - before.totals.delivered) * 1e9 / Double(span)
    rates.processor = Double(totals.busy - before.totals.busy) * 100 / Double(span)
    rates.speed = Double(totals.time - before.totals.time) / Double(span)
    last = (now, totals)
  }

  // MARK: Text

  private func state(_ totals: RunTotals) -> String {
    if runs.count == 1 {
      return totals.stopped == 1 ? "stopped" : totals.draining == 1 ? "draining" : "running"
    }
    let parts = [(totals.running, "running"), (totals.draining, "draining"), (totals.stopped, "stopped")]
    return parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }

  private func facts(_ totals: RunTotals) -> [String] {
    var facts = [
      "\(Figures.number(rates.packets, decimals: rates.packets < 10 ? 1 : 0)) packets/s",
      "\(Figures.number(rates.processor)) % CPU",
    ]
    if runs.contains(where: { $0.plan.clock == .virtual }) {
      facts.append("\(Figures.number(rates.speed, decimals: rates.speed < 10 ? 1 : 0)) × real time")
    }
    if totals.worst > 0 { facts.append("worst call \(Figures.duration(totals.worst)) (\(totals.worstNode))") }
    if totals.overBudget > 0 { facts.append("\(totals.overBudget) over budget") }
    facts.append(totals.dropped == 0 ? "nothing dropped" : "\(totals.dropped) dropped")
    return facts
  }

  private func plainLine(_ totals: RunTotals) -> String {
    let levels = monitor.levels.prefix(Self.mostMeters).map {
      "\($0.label) \(Figures.fixed($0.level.rms, decimals: 1)) dBFS"
    }
    let time = Figures.duration(totals.time / 100_000_000 * 100_000_000)
    return "\(title): \(time), \(state(totals)), " + (facts(totals) + levels).joined(separator: ", ")
  }

  // MARK: Drawing

  private mutating func draw(_ totals: RunTotals) {
    let style = output.style
    let room = style.width - 1
    let seconds = Figures.fixed(Double(totals.time) / 1e9, decimals: 1)
    let head = TerminalStyle.cut("\(title)  \(seconds) s  \(state(totals))", to: room)
    var lines = [style.paint(head, .bold)]
    lines.append(
      style.paint(TerminalStyle.cut("  " + facts(totals).joined(separator: " · "), to: room), .dim))
    let levels = monitor.levels.prefix(Self.mostMeters)
    let names = levels.map { TerminalStyle.columns(of: $0.label) }.max() ?? 0
    let cells = min(48, room - names - 30)
    for (label, level) in levels {
      let name = TerminalStyle.padded(label, to: names)
      let rms = TerminalStyle.padded(before: Figures.fixed(level.rms, decimals: 1), to: 6)
      let peak = TerminalStyle.padded(before: Figures.fixed(level.peak, decimals: 1), to: 6)
      if cells >= 8 {
        let bar = LevelBar.draw(rms: level.rms, peak: level.peak, cells: cells, style: style)
        lines.append("  \(name) \(bar) \(rms) dBFS peak\(peak)")
      } else {
        lines.append(TerminalStyle.cut("  \(name) \(rms) dBFS", to: room))
      }
    }
    lines = output.fitted(lines)
    var frame = drawnLines > 0 ? "\u{1B}[\(drawnLines)A\r" : ""
    for line in lines { frame += "\u{1B}[2K\(line)\n" }
    frame += "\u{1B}[J"
    // Fewer than before when the window has become smaller; the other lines have scrolled away.
    drawnLines = lines.count
    output.write(frame)
  }
}
