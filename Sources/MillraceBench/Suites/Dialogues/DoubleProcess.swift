import Glibc
import MillraceDialog
import MillraceDoubles
internal import MillraceJSON
import MillraceNet

/// The double of a service in a process of its own, so that its cost is not measured: this program, started again with
/// `double NAME`. Every program built on `MillraceCommand` has that command, even one that only runs `bench`.
final class DoubleProcess {
  /// The port it listens on.
  let port: Int
  private var id: pid_t = 0
  private let reportPath: String

  /// Starts the double and waits until it listens.
  /// - Parameters:
  ///   - service: the service.
  ///   - scenario: its scenario, as JSON.
  ///   - folder: for its files; must exist until `end`.
  ///   - port: the port to listen on; 0: any.
  ///   - identity: its certificate for TLS; nil: plaintext.
  ///   - program: the program to start.
  init(
    of service: any ServiceProgram.Type, _ scenario: String, in folder: borrowing Workspace, port: Int = 0,
    identity: NetIdentity? = nil, program: String = "/proc/self/exe"
  ) throws {
    let scenarioPath = folder.file("scenario.json")
    let outputPath = folder.file("double.txt")
    reportPath = folder.file("double.json")
    try replaceFile(scenarioPath, with: Array(scenario.utf8))
    try replaceFile(outputPath, with: [])
    var arguments = [
      "millrace", "double", service.name, "--quiet", "--port", "\(port)", "--scenario", scenarioPath,
      "--report", reportPath,
    ]
    if let identity { arguments += ["--certificate", identity.certificate, "--key", identity.key] }
    do throws(SpawnProblem) { id = try spawn(program, arguments, output: outputPath) } catch {
      throw MeasurementProblem("cannot start the double (errno \(error.code))")
    }
    do { self.port = try Self.port(outputPath, of: id) } catch {
      // A partially initialised class is not deinitialised.
      _ = Glibc.kill(id, SIGKILL)
      _ = waitpid(id, nil, 0)
      throw error
    }
  }

  /// Seconds; longer than a program takes to start on a busy machine.
  private static let patience = 60.0

  /// Reads the port from the first line of its output.
  private static func port(_ path: String, of id: pid_t) throws -> Int {
    let end = seconds() + patience
    while seconds() < end {
      // Checked before the output is read, so that its last output is included.
      let hasEnded = hasEnded(id)
      let text = String(decoding: try readBytes(path), as: UTF8.self)
      if let line = text.split(separator: "\n").first, text.contains("\n") {
        if let port = line.split(separator: ":").last?.prefix(while: \.isNumber).description,
          let number = Int(port)
        {
          return number
        }
        throw MeasurementProblem(
          "the double printed \"\(line)\" instead of its port; is this program millrace?")
      }
      if hasEnded {
        throw MeasurementProblem("the double ended before it listened; is this program millrace?")
      }
      pause(0.005)
    }
    throw MeasurementProblem("the double is not listening after \(Int(patience)) s")
  }

  /// Whether a process has ended; it is not reaped.
  private static func hasEnded(_ id: pid_t) -> Bool {
    var information = unsafe siginfo_t()
    guard unsafe waitid(P_PID, id_t(id), &information, WEXITED | WNOHANG | WNOWAIT) == 0 else { return true }
    return unsafe information.si_signo == SIGCHLD
  }

  // A measurement that fails must not leave the process running.
  deinit { kill() }

  /// Ends it at once, without closing its connections.
  func kill() { end(by: SIGKILL) }

  /// Suspends it: connections stay open, and nothing is answered.
  func suspend() { _ = Glibc.kill(id, SIGSTOP) }

  /// Resumes it, with everything that has arrived meanwhile.
  func resume() { _ = Glibc.kill(id, SIGCONT) }

  private func end(by signal: Int32) {
    guard id > 0 else { return }
    _ = Glibc.kill(id, signal)
    _ = waitpid(id, nil, 0)
    id = 0
  }

  /// Ends it and returns its report.
  func end() throws -> JSONValue {
    end(by: SIGTERM)
    return try JSONValue(parsing: try readBytes(reportPath))
  }
}
