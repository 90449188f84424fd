internal import Glibc
internal import MillraceCore

/// Writes a short file for other programs: they see the old one or the whole new one. Blocks for the disk.
enum PlainFile {
  /// Why it was not written: an `errno`.
  struct Refusal: Error, Equatable, CustomStringConvertible {
    var number: Int32
    var description: String { SystemError.text(number) }
  }

  /// - Parameter isSecret: only its owner may read it, from its first byte on.
  static func write(_ text: String, to path: String, isSecret: Bool) throws(Refusal) {
    // Of its own for each writer: two nodes with one path do not mix their texts.
    let temporary = "\(path).\(String(UInt64.random(in: 0...(.max)), radix: 36)).part"
    let mode: mode_t = isSecret ? 0o600 : 0o644
    let file = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
    guard file >= 0 else { throw Refusal(number: errno) }
    var number = fill(file, Array(text.utf8))
    if close(file) != 0 && number == 0 { number = errno }
    if number == 0, unsafe rename(temporary, path) != 0 { number = errno }
    guard number != 0 else { return }
    _ = unsafe unlink(temporary)
    throw Refusal(number: number)
  }

  /// Returns 0 or an `errno`.
  private static func fill(_ file: Int32, _ bytes: [UInt8]) -> Int32 {
    var done = 0
    while done < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { bytes -> Int in
        guard let start = bytes.baseAddress else { return 0 }
        return unsafe Glibc.write(file, start + done, bytes.count - done)
      }
      if count < 0 && errno != EINTR { return errno }
      done += max(0, count)
    }
    // Renamed before its data is on disk, the file may be empty after a power loss.
    return fdatasync(file) == 0 || errno == EINVAL ? 0 : errno
  }
}
