internal import CFFmpeg
internal import CMediaShim
package import MillraceCore

/// The last line FFmpeg logged on this thread, captured without heap until it is read.
@safe
package struct LibraryMessage: ~Copyable {
  private static let capacity = 512
  private let bytes: UnsafeMutablePointer<CChar>

  package init() {
    unsafe bytes = .allocate(capacity: Self.capacity)
    unsafe bytes.initialize(repeating: 0, count: Self.capacity)
  }

  deinit { unsafe bytes.deallocate() }

  /// Redirects the libraries' log for the whole process; only a program may decide that.
  package static func takeLog() { millrace_av_capture_log() }

  /// Captures the library's present line.
  package mutating func keep() {
    let line = unsafe millrace_av_last_log()
    var count = 0
    while unsafe count < Self.capacity - 1 && line[count] != 0 {
      unsafe bytes[count] = line[count]
      count += 1
    }
    unsafe bytes[count] = 0
  }

  /// The line, without the address of the object that logged it; nil if there is none.
  package var text: String? {
    let line = unsafe String(cString: bytes)
    return line.isEmpty ? nil : Self.withoutAddresses(line)
  }

  /// Removes ` @ 0x5581...`, which differs from run to run.
  package static func withoutAddresses(_ line: String) -> String {
    var result = ""
    var rest = Substring(line)
    while let mark = rest.firstRange(of: " @ 0x") {
      result += rest[..<mark.lowerBound]
      rest = rest[mark.upperBound...].drop { $0.isHexDigit }
    }
    return result + rest
  }

  /// A problem for a library error on this thread: its log line, or the description of its code.
  package static func problem(
    _ text: String, _ code: Int32, parameter: String? = "format", cure: String
  ) -> NodeProblem {
    let line = unsafe String(cString: millrace_av_last_log())
    let reason = line.isEmpty ? describe(code) : withoutAddresses(line)
    return NodeProblem("\(text): \(reason)", parameter: parameter, cure: cure)
  }

  /// The library's description of an error code.
  package static func describe(_ code: Int32) -> String {
    unsafe String(cString: millrace_av_error_text(code))
  }
}
