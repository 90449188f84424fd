import Glibc
import MillraceDialog

/// Bailian's double as a process of its own, so that what it costs is not counted: this very program, started once more with
/// `double bailian`. Every program made with `MillraceCommand` takes that, also one that only runs `bench`.
final class DoubleProcess {
  /// Where it listens.
  let port: Int
  private var id: pid_t = 0
  private let reportPath: String

  /// Starts one and waits until it listens.
  /// - Parameters:
  ///   - scenario: what it plays, JSON.
  ///   - folder: for its files; has to be there until `end`.
  ///   - port: 0: any.
  ///   - program: what is started.
  init(
    _ scenario: String, in folder: borrowing Workspace, port: Int = 0, program: String = "/proc/self/exe"
  ) throws {
    let scenarioPath = folder.file("scenario.json")
    let outputPath = folder.file("double.txt")
    reportPath = folder.file("double.json")
    try replaceFile(scenarioPath, with: Array(scenario.utf8))
    try replaceFile(outputPath, with: [])
    id = try Self.spawn(
      [
        "millrace", "double", "bailian", "--quiet", "--port", "\(port)", "--scenario", scenarioPath,
        "--report",
        reportPath,
      ], program: program, output: outputPath)
    do { self.port = try Self.port(outputPath, of: id) } catch {
      // A class that is not whole yet is not deinitialised.
      _ = Glibc.kill(id, SIGKILL)
      _ = waitpid(id, nil, 0)
      throw error
    }
  }

  private static func spawn(_ arguments: [String], program: String, output: String) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_APPEND, 0)
    let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { for index in unsafe words.indices { unsafe free(words[index]) } }
    var id = pid_t()
    let status = unsafe posix_spawn(&id, program, &actions, nil, words, environ)
    guard status == 0 else { throw MeasurementProblem("the double cannot be started (errno \(status))") }
    return id
  }

  /// Longer than a program takes to start on a machine that is busy with other things.
  private static let patience = 60.0

  /// It says where it listens in its first line.
  private static func port(_ path: String, of id: pid_t) throws -> Int {
    let end = seconds() + patience
    while seconds() < end {
      // Before its words are read: what it said last is among them.
      let hasEnded = hasEnded(id)
      let text = String(decoding: try readBytes(path), as: UTF8.self)
      if let line = text.split(separator: "\n").first, text.contains("\n") {
        if let port = line.split(separator: ":").last?.prefix(while: \.isNumber).description,
          let number = Int(port)
        {
          return number
        }
        throw MeasurementProblem(
          "the double says \"\(line)\" in place of where it listens; is this program millrace?")
      }
      if hasEnded {
        throw MeasurementProblem("the double ended before it listened; is this program millrace?")
      }
      pause(0.005)
    }
    throw MeasurementProblem("the double does not listen after \(Int(patience)) s")
  }

  /// Whether a process has ended; it is still to be waited for.
  private static func hasEnded(_ id: pid_t) -> Bool {
    var information = unsafe siginfo_t()
    guard unsafe waitid(P_PID, id_t(id), &information, WEXITED | WNOHANG | WNOWAIT) == 0 else { return true }
    return unsafe information.si_signo == SIGCHLD
  }

  // Whoever gives up leaves nobody behind.
  deinit { kill() }

  /// It is gone at once, without a word to anybody.
  func kill() { end(by: SIGKILL) }

  /// It stands still: connections stay, and nothing comes back.
  func freeze() { _ = Glibc.kill(id, SIGSTOP) }

  /// It goes on, with all that came meanwhile.
  func thaw() { _ = Glibc.kill(id, SIGCONT) }

  private func end(by signal: Int32) {
    guard id > 0 else { return }
    _ = Glibc.kill(id, signal)
    _ = waitpid(id, nil, 0)
    id = 0
  }

  /// Ends it and answers what it has seen.
  func end() throws -> JSONValue {
    end(by: SIGTERM)
    return try JSONValue(parsing: try readBytes(reportPath))
  }
}
