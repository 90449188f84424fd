import Foundation
import Glibc
import TestSystem
import Testing

/// The `millrace` program as a process of its own.
struct RunnerProcess {
  /// How it ended.
  struct Result {
    /// The exit status, or 128 and the signal.
    var status: Int32
    var output: String
    var errors: String

    /// What it told on standard error, without the line that counts the problems.
    var problems: [String] {
      errors.split(separator: "\n").map(String.init).filter { $0 != "1 error" }
    }
  }

  /// The program: beside the test bundle, where the build puts both.
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

  /// Starts it in a folder.
  /// - Parameters:
  ///   - shell: a line of shell in which `"$@"` is the program with its arguments; without it the program alone.
  ///   - input: its standard input; without it, empty. The end it reads from is closed here.
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

  /// What it has told on standard output up to now.
  var outputSoFar: String { text("out") }

  /// What it has told on standard error up to now.
  var errorsSoFar: String { text("err") }

  var isRunning: Bool { process.isRunning }

  /// Waits while it runs until something holds, for five minutes at most; what it has told explains why that did not come. Looks
  /// every few milliseconds: what another program has done so far can only be looked at.
  func wait(until condition: () throws -> Bool) throws {
    let deadline = Date(timeIntervalSinceNow: 300)
    while try !condition() {
      try #require(isRunning && Date() < deadline, "\(errorsSoFar)")
      usleep(2_000)
    }
  }

  /// Waits for its end. One that goes on for longer than five minutes is killed, and that is an issue.
  func wait() -> Result {
    let status = process.wait(seconds: 300)
    if process.wasKilled { Issue.record("millrace \(arguments) did not end: \(text("err"))") }
    return Result(status: status, output: text("out"), errors: text("err"))
  }

  /// Runs it from start to end.
  static func run(_ arguments: String..., in scratch: Scratch, shell: String? = nil) throws -> Result {
    try RunnerProcess(arguments, in: scratch, shell: shell).wait()
  }

  private func text(_ ending: String) -> String {
    String(decoding: (try? scratch.bytes("\(name).\(ending)")) ?? [], as: UTF8.self)
  }
}
