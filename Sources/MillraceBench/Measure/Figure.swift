import MillraceGraph

/// One measured figure: the median of several runs, with the lowest and the highest.
struct Figure {
  /// The suite it belongs to.
  var suite: String
  /// What was measured, as words: `push+pop of 32 bytes, one thread`.
  var name: String
  /// Whose figure it is: `millrace`, `floor` (the same work by hand, without a framework), or a peer's name.
  var of: String
  var value: Double
  var unit: String
  var low: Double
  var high: Double
  /// How many runs the median is of. 0: not measured, see `leftOut`.
  var runs: Int
  /// What was set out to be reached, for the table: `<= 60`.
  var goal: String
  /// Why it was left out, and what to do about it; empty when it was measured.
  var leftOut = ""

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

  /// A figure that was left out because something it needs is not here. It keeps its row, so that nobody takes silence for a result.
  init(_ suite: String, _ name: String, of subject: String = "millrace", leftOut reason: String) {
    self.init(suite, name, of: subject, unit: "", samples: [])
    leftOut = reason
  }

  /// One line of JSON. A figure that was left out has no numbers and says why in `leftOut`.
  var json: String {
    var writer = JSONWriter()
    writer.object { json in
      json.member("suite", suite)
      json.member("case", name)
      json.member("of", of)
      guard leftOut.isEmpty else {
        json.member("leftOut", leftOut)
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
  /// The middle one of sorted numbers, the upper one of two; not a number when there are none.
  var median: Double { isEmpty ? .nan : self[count / 2] }

  /// The number that a share of the sorted numbers does not exceed; not a number when there are none.
  func percentile(_ share: Double) -> Double {
    isEmpty ? .nan : self[Swift.min(count - 1, Int((Double(count) * share).rounded(.down)))]
  }
}

/// A number with three significant places or so.
func short(_ value: Double) -> String {
  guard value.isFinite else { return "-" }
  let magnitude = value.magnitude
  let decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
  var scale = 1.0
  for _ in 0..<decimals { scale *= 10 }
  let rounded = (value * scale).rounded() / scale
  return decimals == 0 ? "\(Int(rounded))" : "\(rounded)"
}
