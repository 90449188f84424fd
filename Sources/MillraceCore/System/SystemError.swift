internal import Glibc

/// The operating system's message for an error number (`errno`). Any thread; allocates, so for the control side.
public enum SystemError {
  /// Message and number, such as `No space left on device (errno 28)`.
  public static func text(_ code: Int32) -> String { "\(message(code)) (errno \(code))" }

  /// The message alone, such as `No space left on device`.
  public static func message(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    // The POSIX version of strerror_r returns 0 and writes the message to the buffer.
    guard unsafe strerror_r(code, &buffer, buffer.count) == 0 else { return "unknown error" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
