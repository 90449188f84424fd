import MillraceGraph

/// A measured figure: the median of several runs, with the lowest and the highest.
struct Figure {
  /// The suite it belongs to.
  var suite: String
  /// What was measured: `push+pop of 32 bytes, one thread`.
  var name: String
  /// The contestant: `millrace`, `floor` (the same work without a framework), or a peer's name.
  var of: String
  var value: Double
  var unit: String
  var low: Double
  var high: Double
  /// The number of runs. 0: not measured, see `skipReason`.
  var runs: Int
  /// The goal as the table shows it: `<= 60`.
  var goal: String
  /// Why it was skipped, and what to do about it; empty when it was measured.
  var skipReason = ""

  /// The median of samples.
  init(
    _ suite: String, _ name: String, of subject: String = "millrace", unit: String, goal: String = "",
    samples: [Double]
  ) {
    let sorted = samples.sorted()
    self.suite = suite
    self.name = name
    of = subject
    self.unit = unit
    self.goal = goal
    value = sorted.median
    low = sorted.first ?? .nan
    high = sorted.last ?? .nan
    runs = sorted.count
  }

  /// A figure that was skipped because a requirement is missing. It keeps its row, so that the gap is visible.
  init(_ suite: String, _ name: String, of subject: String = "millrace", skipped reason: String) {
    self.init(suite, name, of: subject, unit: "", samples: [])
    skipReason = reason
  }

  /// One line of JSON. A skipped figure has no numbers, but its reason in `leftOut`.
  var json: String {
    var writer = JSONWriter()
    writer.object { json in
      json.member("suite", suite)
      json.member("case", name)
      json.member("of", of)
      guard skipReason.isEmpty else {
        json.member("leftOut", skipReason)
        return
      }
      json.member("value", value)
      json.member("unit", unit)
      json.member("low", low)
      json.member("high", high)
      json.member("runs", runs)
    }
    return writer.text
  }

  /// Whether two figures measure the same thing.
  func isSameCase(as other: Figure) -> Bool { suite == other.suite && name == other.name && of == other.of }
}

extension [Double] {
  /// The middle of sorted numbers, the upper one of two; NaN when there are none.
  var median: Double { isEmpty ? .nan : self[count / 2] }

  /// The number that a share of the sorted numbers does not exceed; NaN when there are none.
  func percentile(_ share: Double) -> Double {
    isEmpty ? .nan : self[Swift.min(count - 1, Int((Double(count) * share).rounded(.down)))]
  }
}

/// A number with about three significant digits.
func short(_ value: Double) -> String {
  guard value.isFinite else { return "-" }
  let magnitude = value.magnitude
  let decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
  var scale = 1.0
  for _ in 0..<decimals { scale *= 10 }
  let rounded = (value * scale).rounded() / scale
  return decimals == 0 ? "\(Int(rounded))" : "\(rounded)"
}
