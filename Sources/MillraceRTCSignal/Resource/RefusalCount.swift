internal import MillraceJSON

/// Clients that a server has refused and not reported yet: at most one report in `interval`, so that a flood of requests does not become
/// a flood of events. A pure value.
struct RefusalCount: Sendable {
  /// Milliseconds between two reports.
  static let interval: Int64 = 1_000

  private var count = 0
  private var code = 0
  private var text = ""
  /// A report was made less than `interval` ago.
  private var isHeld = false

  /// Clients were refused.
  /// - Parameters:
  ///   - code: the status that the latest got; 0: none.
  ///   - text: its address, and why.
  /// - Returns: what is to be reported now, after which `next` is due; nil: nothing yet.
  mutating func add(_ count: Int, code: Int, text: String) -> JSONValue? {
    self.count += count
    (self.code, self.text) = (code, text)
    return isHeld ? nil : take()
  }

  /// `interval` has passed since a report. Returns what was held back, after which `next` is due again; nil: nothing.
  mutating func next() -> JSONValue? {
    isHeld = false
    return count > 0 ? take() : nil
  }

  private mutating func take() -> JSONValue {
    isHeld = true
    defer { count = 0 }
    return .object([
      "count": .integer(count), "code": .integer(code), "text": .string(ServerText.shown(text)),
    ])
  }
}
