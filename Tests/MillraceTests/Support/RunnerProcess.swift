import Foundation
import Glibc
import TestSystem
import Testing

/// The `millrace` program in a separate process.
struct RunnerProcess {
  /// The result of a process.
  struct Result {
    /// The exit status, or 128 and the signal.
    var status: Int32
    var output: String
    var errors: String

    /// The lines on standard error, without the line that counts the problems.
    var problems: [String] {
      errors.split(separator: "\n").map(String.init).filter { $0 != "1 error" }
    }
  }

  /// The path of the program: beside the test bundle, where the build puts both.
  static let program: String = {
    let bundle = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let beside = (bundle as NSString).deletingLastPathComponent + "/millrace"
    return FileManager.default.isExecutableFile(atPath: beside)
      ? beside : Package.root + "/.build/debug/millrace"
  }()

  private let process: TestProgram
  private let arguments: [String]
  private let scratch: Scratch
  private let name = UUID().uuidString

  /// Starts the program in a directory.
  /// - Parameters:
  ///   - shell: a shell command line in which `"$@"` is the program with its arguments; nil to start the program directly.
  ///   - input: standard input; nil for none. The end for reading is closed in this process.
  init(_ arguments: [String], in scratch: Scratch, shell: String? = nil, input: Pipe? = nil) throws {
    self.arguments = arguments
    self.scratch = scratch
    let call = shell.map { ("/bin/bash", ["-c", $0, "bash", Self.program] + arguments) }
    let (path, words) = call ?? (Self.program, arguments)
    process = try TestProgram(
      path, words, in: scratch.path,
      input: input.map { .descriptor($0.fileHandleForReading.fileDescriptor) } ?? .nothing,
      output: .file(scratch.file("\(name).out")), errors: .file(scratch.file("\(name).err")))
    try input?.fileHandleForReading.close()
  }

  /// Sends a signal.
  func send(_ signal: Int32) { process.send(signal) }

  /// Standard output so far.
  var outputSoFar: String { text("out") }

  /// Standard error so far.
  var errorsSoFar: String { text("err") }

  var isRunning: Bool { process.isRunning }

  /// Waits until a condition holds, while the process runs and for five minutes at most. Otherwise fails with the process's standard error.
  /// Polls every few milliseconds.
  func wait(until condition: () throws -> Bool) throws {
    let deadline = Date(timeIntervalSinceNow: 300)
    while try !condition() {
      guard isRunning, Date() < deadline else {
        // The process may have ended after the condition was read, and because of what it waits for.
        try #require(try condition(), "\(errorsSoFar)")
        return
      }
      usleep(2_000)
    }
  }

  /// Waits until the process ends. After five minutes it is killed and an issue is recorded.
  func wait() -> Result {
    let status = process.wait(seconds: 300)
    if process.wasKilled { Issue.record("millrace \(arguments) did not end: \(text("err"))") }
    return Result(status: status, output: text("out"), errors: text("err"))
  }

  /// Runs the program to its end.
  static func run(_ arguments: String..., in scratch: Scratch, shell: String? = nil) throws -> Result {
    try RunnerProcess(arguments, in: scratch, shell: shell).wait()
  }

  private func text(_ ending: String) -> String {
    String(decoding: (try? scratch.bytes("\(name).\(ending)")) ?? [], as: UTF8.self)
  }
}
