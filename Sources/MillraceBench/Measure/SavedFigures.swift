import MillraceGraph

/// The figures of an earlier run, read from the file that `--save` wrote.
struct SavedFigures {
  /// The processor's name, from the first line of the file.
  let machine: String
  let figures: [Figure]

  /// Reads a file of JSON lines, one figure each, with the machine in the first.
  init(path: String) throws(MeasurementProblem) {
    let bytes: [UInt8]
    do throws(FileProblem) {
      bytes = try SourceFile.read(path: path).bytes
    } catch {
      throw MeasurementProblem("\(error.description)")
    }
    try self.init(bytes, name: path)
  }

  init(_ bytes: [UInt8], name: String) throws(MeasurementProblem) {
    var machine = ""
    var figures: [Figure] = []
    for (number, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
      guard let root = try? JSONDocument.scan(SourceFile(name: name, bytes: Array(line))).root else {
        throw MeasurementProblem(
          "\"\(name)\" line \(number + 1) is not JSON; compare with a file that --save wrote")
      }
      if let model = root["machine"]?.string {
        machine = model
      } else if let figure = Figure(root) {
        figures.append(figure)
      } else {
        throw MeasurementProblem(
          "\"\(name)\" line \(number + 1) is not a figure; compare with a file that --save wrote")
      }
    }
    // A measurement that was aborted before its first figure leaves such a file.
    guard !figures.isEmpty else {
      throw MeasurementProblem(
        "\"\(name)\" has no figures; compare with a file that --save wrote completely")
    }
    self.machine = machine
    self.figures = figures
  }

  /// The earlier value beside the present one: `47.1 -> 45.0 ns, 0.96 x`. It is called lower or higher only if the spreads do
  /// not touch; everything else may be chance.
  func change(to now: Figure) -> String {
    guard let then = figures.first(where: { $0.isSameCase(as: now) }), then.runs > 0 else { return "new" }
    let ratio = short(now.value / then.value)
    let verdict = then.high < now.low ? ", higher" : now.high < then.low ? ", lower" : ""
    return "\(short(then.value)) -> \(short(now.value)) \(now.unit), \(ratio) x\(verdict)"
  }
}

extension Figure {
  /// Reads a figure from its JSON line; nil when the line is something else.
  init?(_ root: JSONNode) {
    guard let suite = root["suite"]?.string, let name = root["case"]?.string, let of = root["of"]?.string
    else { return nil }
    if let reason = root["leftOut"]?.string {
      self.init(suite, name, of: of, skipped: reason)
      return
    }
    guard let unit = root["unit"]?.string, let runs = root["runs"]?.integer else { return nil }
    self.init(suite, name, of: of, unit: unit, samples: [])
    value = root["value"]?.double ?? .nan
    low = root["low"]?.double ?? .nan
    high = root["high"]?.double ?? .nan
    self.runs = Int(runs)
  }
}
