import Glibc
import MillraceCore
internal import MillraceJSON

/// aiortc, which has a program of its own: `benchmarks/rtc-aiortc.py`. It is measured from a checkout whose Python has aiortc.
enum PythonPeer {
  private static let name = "aiortc"
  private static let script = "benchmarks/rtc-aiortc.py"
  /// Seconds after which its program has hung.
  private static let patience = 120.0

  /// From the request to the first decoded sound, in a pair of its peers; skipped when it is missing.
  static func figure(_ what: String, rounds: Int) -> Figure {
    func skipped(_ reason: String) -> Figure { Figure(RTCSuite.name, what, of: name, skipped: reason) }
    do {
      guard unsafe access(script, R_OK) == 0 else { return skipped("run it in a checkout: make bench") }
      let text = try output(rounds)
      let json = try JSONValue(parsing: text)
      if let reason = json["leftOut"]?.string { return skipped(reason) }
      guard let values = json["ms"]?.array else { return skipped("its program printed no times") }
      return Figure(RTCSuite.name, what, of: name, unit: "ms", samples: values.compactMap(\.double))
    } catch {
      return skipped("\(error)")
    }
  }

  /// What its program prints.
  private static func output(_ rounds: Int) throws -> [UInt8] {
    let folder = try Workspace()
    let path = folder.file("aiortc.json")
    try replaceFile(path, with: [])
    let python = DialogueStage.text("MILLRACE_PYTHON") ?? "python3"
    let id: pid_t
    do throws(SpawnProblem) {
      id = try spawn(python, [python, script, "--rounds", "\(rounds)"], output: path)
    } catch {
      throw MeasurementProblem("\(python) cannot be started (errno \(error.code))")
    }
    var status: Int32 = 0
    let end = seconds() + patience
    while unsafe waitpid(id, &status, WNOHANG) == 0 {
      guard seconds() < end else {
        _ = kill(id, SIGKILL)
        _ = waitpid(id, nil, 0)
        throw MeasurementProblem("its program did not end within two minutes")
      }
      pause(0.05)
    }
    return try readBytes(path)
  }
}
