internal import Glibc

/// The operating system's words for an error number (`errno`). Any thread; allocates, so for the control side.
public enum SystemError {
  /// Words and number, such as `No space left on device (errno 28)`.
  public static func text(_ code: Int32) -> String { "\(words(code)) (errno \(code))" }

  /// The words alone, such as `No space left on device`.
  public static func words(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    // The POSIX form of strerror_r: 0, and the words in the buffer.
    guard unsafe strerror_r(code, &buffer, buffer.count) == 0 else { return "unknown error" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
