import Glibc
import MillraceDialog

/// Bailian's double as a process of its own, so that what it costs is not counted: `millrace double bailian`, the same program as
/// this one.
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
  init(_ scenario: String, in folder: borrowing Workspace, port: Int = 0) throws {
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
      ], output: outputPath)
    do { self.port = try Self.port(outputPath) } catch {
      // A class that is not whole yet is not deinitialised.
      _ = Glibc.kill(id, SIGKILL)
      _ = waitpid(id, nil, 0)
      throw error
    }
  }

  private static func spawn(_ arguments: [String], output: String) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_APPEND, 0)
    let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { for index in unsafe words.indices { unsafe free(words[index]) } }
    var id = pid_t()
    let status = unsafe posix_spawn(&id, "/proc/self/exe", &actions, nil, words, environ)
    guard status == 0 else { throw MeasurementProblem("the double cannot be started (errno \(status))") }
    return id
  }

  /// It says where it listens in its first line.
  private static func port(_ path: String) throws -> Int {
    for _ in 0..<2_000 {
      let text = String(decoding: try readBytes(path), as: UTF8.self)
      if let line = text.split(separator: "\n").first, text.contains("\n") {
        if let port = line.split(separator: ":").last?.prefix(while: \.isNumber).description,
          let number = Int(port)
        {
          return number
        }
        throw MeasurementProblem("the double says \"\(line)\"; this program has to be millrace")
      }
      pause(0.005)
    }
    throw MeasurementProblem("the double does not listen")
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
