internal import Glibc

/// Checks how an Ogg file ends. FFmpeg's libraries accept any last page as the end, and take the length from it.
package enum OggTail {
  /// Bytes in the longest page: a header of 27, 255 lacing values, and their segments (RFC 3533 section 6).
  private static let longestPage = 27 + 255 + 255 * 255
  private static let headerBytes = 27
  /// The end-of-stream flag in a page header.
  private static let endOfStream: UInt8 = 4

  /// True when the file does not end with a complete page that is marked as its stream's last. An unreadable file counts as complete:
  /// its reader reports the error.
  package static func isTruncated(_ path: String) -> Bool {
    let bytes = tail(path)
    // The last page begins at the last capture pattern that is not part of another page's content.
    var start = bytes.count - headerBytes
    while start >= 0 {
      if let flags = flags(of: bytes, at: start) { return flags & endOfStream == 0 }
      start -= 1
    }
    return !bytes.isEmpty
  }

  /// Flags of the page at an offset, if there is one that reaches exactly to the end; 0 if it is truncated.
  private static func flags(of bytes: [UInt8], at start: Int) -> UInt8? {
    // Capture pattern and version 0.
    guard bytes[start...].starts(with: [0x4F, 0x67, 0x67, 0x53, 0]) else { return nil }
    let segments = start + headerBytes + Int(bytes[start + 26])
    guard segments <= bytes.count else { return 0 }
    let length = bytes[start + headerBytes..<segments].reduce(0) { $0 + Int($1) }
    return segments + length <= bytes.count ? bytes[start + 5] : 0
  }

  /// The last bytes of the file, enough for a whole page.
  private static func tail(_ path: String) -> [UInt8] {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return [] }
    defer { close(file) }
    let end = Int(lseek(file, 0, SEEK_END))
    var bytes = [UInt8](repeating: 0, count: min(max(0, end), longestPage))
    let count = unsafe pread(file, &bytes, bytes.count, end - bytes.count)
    return count == bytes.count ? bytes : []
  }
}
