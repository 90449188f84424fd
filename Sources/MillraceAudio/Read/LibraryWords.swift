internal import CFFmpeg
internal import CMediaShim
package import MillraceCore

/// The last line FFmpeg logged on this thread at some moment, kept without heap until somebody asks for it.
@safe
package struct LibraryWords: ~Copyable {
  private static let capacity = 512
  private let bytes: UnsafeMutablePointer<CChar>

  package init() {
    unsafe bytes = .allocate(capacity: Self.capacity)
    unsafe bytes.initialize(repeating: 0, count: Self.capacity)
  }

  deinit { unsafe bytes.deallocate() }

  /// Takes the libraries' log for the whole process: a program's to decide.
  package static func takeLog() { millrace_av_capture_log() }

  /// Copies the library's present line.
  package mutating func keep() {
    let line = unsafe millrace_av_last_log()
    var count = 0
    while unsafe count < Self.capacity - 1 && line[count] != 0 {
      unsafe bytes[count] = line[count]
      count += 1
    }
    unsafe bytes[count] = 0
  }

  /// The line, without the address of the object that logged it; nil when there is none.
  package var text: String? {
    let line = unsafe String(cString: bytes)
    return line.isEmpty ? nil : Self.withoutAddresses(line)
  }

  /// Removes ` @ 0x5581...`, which differs from run to run and says nothing.
  package static func withoutAddresses(_ line: String) -> String {
    var result = ""
    var rest = Substring(line)
    while let mark = rest.firstRange(of: " @ 0x") {
      result += rest[..<mark.lowerBound]
      rest = rest[mark.upperBound...].drop { $0.isHexDigit }
    }
    return result + rest
  }

  /// What to tell of a library that refused on this thread just now: its line, or else its code in words.
  package static func problem(
    _ text: String, _ code: Int32, parameter: String? = "format", cure: String
  ) -> NodeProblem {
    let words = unsafe String(cString: millrace_av_last_log())
    let reason = words.isEmpty ? describe(code) : withoutAddresses(words)
    return NodeProblem("\(text): \(reason)", parameter: parameter, cure: cure)
  }

  /// An error code of the library in words.
  package static func describe(_ code: Int32) -> String {
    unsafe String(cString: millrace_av_error_text(code))
  }
}
