internal import Glibc

/// The system's words for an `errno`.
enum ErrorNumber {
  static func text(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    // The POSIX form of strerror_r: 0 and the words in the buffer.
    guard unsafe strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return "\(String(decoding: bytes, as: UTF8.self)) (errno \(code))"
  }
}
