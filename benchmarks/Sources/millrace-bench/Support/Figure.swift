import Glibc

/// One measured figure: the median of several runs, with the lowest and the highest.
struct Figure {
  var suite: String
  /// What was measured, as words: `push+pop, 32 bytes`.
  var name: String
  /// Whose figure it is: `millrace`, `floor`, or a peer's name.
  var of: String
  var value: Double
  var unit: String
  var low: Double
  var high: Double
  var runs: Int
  /// What was set out to be reached, for the table: `<= 60`.
  var goal: String

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
    value = sorted.isEmpty ? .nan : sorted[sorted.count / 2]
    low = sorted.first ?? .nan
    high = sorted.last ?? .nan
    runs = sorted.count
  }

  /// One line of JSON.
  var json: String {
    func quoted(_ text: String) -> String {
      "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }
    return "{\"suite\":\(quoted(suite)),\"case\":\(quoted(name)),\"of\":\(quoted(of)),\"value\":\(value),"
      + "\"unit\":\(quoted(unit)),\"low\":\(low),\"high\":\(high),\"runs\":\(runs)}"
  }

  /// One row of the table.
  var row: String {
    func pad(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(1, width - text.count))
    }
    return pad(suite, 11) + pad(name, 52) + pad(of, 11) + pad("\(short(value)) \(unit)", 20)
      + pad("\(short(low)) .. \(short(high))", 20) + pad("\(runs)", 6) + goal
  }

  static let header =
    "suite      case                                                of         median              low .. high         runs  goal"
}

/// A number with three significant places or so.
func short(_ value: Double) -> String {
  let magnitude = value.magnitude
  let decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
  var scale = 1.0
  for _ in 0..<decimals { scale *= 10 }
  let rounded = (value * scale).rounded() / scale
  return decimals == 0 ? "\(Int(rounded))" : "\(rounded)"
}

/// Seconds of a monotonic clock.
func seconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}

/// Seconds of processor time of the process.
func processorSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}

/// Keeps a value alive as far as the optimiser can see.
@inline(never)
func use<T>(_ value: T) {}

/// What the figures were measured on.
struct Machine {
  static var description: String {
    let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    let model = firstValue("model name", in: "/proc/cpuinfo") ?? "unknown processor"
    var loads = [Double](repeating: 0, count: 3)
    getloadavg(&loads, 3)
    #if DEBUG
      let build = "DEBUG BUILD: figures mean nothing"
    #else
      let build = "release build"
    #endif
    return "\(model), \(cores) processors, load \(short(loads[0])), \(build)"
  }

  private static func firstValue(_ key: String, in path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 512)
    while fgets(&line, Int32(line.count), file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let parts = text.split(separator: ":", maxSplits: 1)
      if parts.count == 2, parts[0].trimmingSuffix(in: "\t ") == key {
        return String(parts[1].drop { $0 == " " }.prefix { $0 != "\n" })
      }
    }
    return nil
  }
}

extension Substring {
  fileprivate func trimmingSuffix(in characters: String) -> Substring {
    var rest = self
    while let last = rest.last, characters.contains(last) { rest = rest.dropLast() }
    return rest
  }
}
