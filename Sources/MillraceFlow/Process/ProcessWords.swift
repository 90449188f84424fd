internal import Glibc
internal import MillraceCore

/// The faults of a program in words. Control side.
enum ProcessWords {
  /// The code of a stall of a program whose input is over.
  static let atItsEnd: Int32 = 1

  /// nil for a fault that is not the program's.
  static func text(_ fault: NodeFault, program: String) -> String? {
    switch fault.reason {
    case .gone: "the program \"\(program)\" ended \(ending(fault.code))"
    case .stalled where fault.code == atItsEnd:
      "the program \"\(program)\" has neither read nor written anything for \(fault.detail / 1_000_000) ms, and holds the end of the graph; it must read its input to the end and then end itself, or be given longer with \"endStall\""
    case .stalled:
      "the program \"\(program)\" answered nothing for \(fault.detail / 1_000_000) ms; look why it waits, or raise \"stall\""
    case .badInput:
      "the program \"\(program)\" wrote \(garbage(fault.code)) at byte \(fault.detail)\(cure(fault.code))"
    default: nil
    }
  }

  /// A status as waitpid(2) gives it: the low seven bits are the signal, or 0 and the exit status above.
  private static func ending(_ status: Int32) -> String {
    let signal = status & 0x7f
    return signal == 0 ? "with status \(status >> 8 & 0xff)" : "by \(name(ofSignal: signal))"
  }

  /// Such as `SIGKILL (9)`.
  private static func name(ofSignal number: Int32) -> String {
    guard let name = signals[number] else { return "signal \(number)" }
    return "\(name) (\(number))"
  }

  /// The signals that end programs, signal(7).
  private static let signals: [Int32: String] = [
    SIGHUP: "SIGHUP", SIGINT: "SIGINT", SIGQUIT: "SIGQUIT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
    SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGKILL: "SIGKILL", SIGUSR1: "SIGUSR1",
    SIGSEGV: "SIGSEGV", SIGUSR2: "SIGUSR2", SIGPIPE: "SIGPIPE", SIGALRM: "SIGALRM", SIGTERM: "SIGTERM",
    SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ", SIGSYS: "SIGSYS",
  ]

  private static func garbage(_ code: Int32) -> String {
    switch ProcessExchange.Garbage(rawValue: code) {
    case .cutSample: "sound that ends inside a sample"
    case .badText: "a line that is not UTF-8"
    case .longLine: "a line longer than \(OutputIntake.longestLine) bytes"
    case nil: "garbage"
    }
  }

  private static func cure(_ code: Int32) -> String {
    switch ProcessExchange.Garbage(rawValue: code) {
    case .cutSample: "; it must write 16-bit samples, all channels of each"
    case .badText: "; set \"mode\" to \"pcm\" if it writes sound"
    case .longLine: "; it must end its lines, or set \"mode\" to \"pcm\" if it writes sound"
    case nil: ""
    }
  }
}
