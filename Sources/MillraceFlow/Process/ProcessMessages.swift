internal import Glibc
internal import MillraceCore

/// Error messages for a program's faults. Control side.
enum ProcessMessages {
  /// Fault code of a stall after the end of the program's input.
  static let afterInputEnd: Int32 = 1

  /// nil for a fault that the program did not cause.
  static func text(_ fault: NodeFault, program: String) -> String? {
    switch fault.reason {
    case .gone: "the program \"\(program)\" \(ending(fault.code))"
    case .stalled where fault.code == afterInputEnd:
      "the program \"\(program)\" neither read nor wrote anything for \(fault.detail / 1_000_000) ms while the graph was ending; make it exit at the end of its input, or raise \"endStall\""
    case .stalled:
      "the program \"\(program)\" did not respond for \(fault.detail / 1_000_000) ms; check what it is waiting for, or raise \"stall\""
    case .badInput:
      "the program \"\(program)\" wrote \(outputError(fault.code)) at byte \(fault.detail)\(cure(fault.code))"
    default: nil
    }
  }

  /// A status as waitpid(2) returns it: the low seven bits are the signal; if they are 0, the exit status is above them.
  private static func ending(_ status: Int32) -> String {
    let signal = status & 0x7f
    return signal == 0
      ? "exited with status \(status >> 8 & 0xff)" : "was killed by \(name(ofSignal: signal))"
  }

  /// Such as `SIGKILL (9)`.
  private static func name(ofSignal number: Int32) -> String {
    guard let name = signals[number] else { return "signal \(number)" }
    return "\(name) (\(number))"
  }

  /// Signals that end a program (signal(7)).
  private static let signals: [Int32: String] = [
    SIGHUP: "SIGHUP", SIGINT: "SIGINT", SIGQUIT: "SIGQUIT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
    SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGKILL: "SIGKILL", SIGUSR1: "SIGUSR1",
    SIGSEGV: "SIGSEGV", SIGUSR2: "SIGUSR2", SIGPIPE: "SIGPIPE", SIGALRM: "SIGALRM", SIGTERM: "SIGTERM",
    SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ", SIGSYS: "SIGSYS",
  ]

  private static func outputError(_ code: Int32) -> String {
    switch ProcessExchange.OutputError(rawValue: code) {
    case .partialSample: "audio that ends inside a sample"
    case .invalidUTF8: "a line that is not UTF-8"
    case .lineTooLong: "a line longer than \(OutputReader.longestLine) bytes"
    case nil: "invalid output"
    }
  }

  private static func cure(_ code: Int32) -> String {
    switch ProcessExchange.OutputError(rawValue: code) {
    case .partialSample: "; it must write 16-bit samples, complete for all channels"
    case .invalidUTF8: "; set \"mode\" to \"pcm\" if it writes audio"
    case .lineTooLong: "; end lines with a line break, or set \"mode\" to \"pcm\" if it writes audio"
    case nil: ""
    }
  }
}
