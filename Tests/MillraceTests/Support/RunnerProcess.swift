import Foundation
import Glibc
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

  private let process = Process()
  private let scratch: Scratch
  private let name = UUID().uuidString

  /// Starts it in a folder.
  /// - Parameters:
  ///   - shell: a line of shell in which `"$@"` is the program with its arguments; without it the program alone.
  ///   - input: its standard input; without it, empty.
  init(_ arguments: [String], in scratch: Scratch, shell: String? = nil, input: Pipe? = nil) throws {
    self.scratch = scratch
    process.currentDirectoryURL = URL(fileURLWithPath: scratch.path)
    if let shell {
      process.executableURL = URL(fileURLWithPath: "/bin/bash")
      process.arguments = ["-c", shell, "bash", Self.program] + arguments
    } else {
      process.executableURL = URL(fileURLWithPath: Self.program)
      process.arguments = arguments
    }
    if let input { process.standardInput = input } else { process.standardInput = FileHandle.nullDevice }
    for (ending, isError) in [("out", false), ("err", true)] {
      _ = try scratch.write([], to: "\(name).\(ending)")
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: scratch.file("\(name).\(ending)")))
      if isError { process.standardError = handle } else { process.standardOutput = handle }
    }
    try process.run()
  }

  /// Sends a signal.
  func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// What it has told on standard error up to now.
  var errorsSoFar: String { text("err") }

  var isRunning: Bool { process.isRunning }

  /// Waits while it runs until something holds, for half a minute at most; what it has told explains why that did not come.
  func wait(until condition: () throws -> Bool) throws {
    let deadline = Date(timeIntervalSinceNow: 30)
    while try !condition() {
      try #require(isRunning && Date() < deadline, "\(errorsSoFar)")
      usleep(2_000)
    }
  }

  /// Waits for its end. One that goes on for longer than a minute is killed, and that is an issue.
  func wait() -> Result {
    let deadline = Date(timeIntervalSinceNow: 60)
    while process.isRunning && Date() < deadline { usleep(2_000) }
    if process.isRunning {
      Issue.record("millrace \(process.arguments ?? []) did not end: \(text("err"))")
      send(SIGKILL)
    }
    process.waitUntilExit()
    let status = process.terminationStatus
    return Result(
      status: process.terminationReason == .exit ? status : 128 + status, output: text("out"),
      errors: text("err"))
  }

  /// Runs it from start to end.
  static func run(_ arguments: String..., in scratch: Scratch, shell: String? = nil) throws -> Result {
    try RunnerProcess(arguments, in: scratch, shell: shell).wait()
  }

  private func text(_ ending: String) -> String {
    String(decoding: (try? scratch.bytes("\(name).\(ending)")) ?? [], as: UTF8.self)
  }
}
