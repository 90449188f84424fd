internal import Glibc
package import MillraceCore

/// Finds where the audio of an MP3 file begins, without decoding it.
package struct MP3File: Sendable {
  /// Offset of the first frame in bytes.
  package let start: Int64
  /// Header of the first frame.
  package let header: MP3Header

  /// Bytes per read.
  private static let piece = 65_536

  /// Looks for the first confirmed frame. Reads the whole file if there is none. Control side.
  ///
  /// - Throws: a `NodeProblem` when the file has no two consecutive frames, or cannot be read.
  package init(_ path: String) throws(NodeProblem) {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw FileMessages.problem(errno, path, for: .reading) }
    defer { close(file) }
    var framer = MP3Framer()
    var bytes = [UInt8](repeating: 0, count: Self.piece)
    var head: [UInt8] = []
    var total = 0
    while true {
      let count = unsafe read(file, &bytes, bytes.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw FileMessages.problem(errno, path, for: .reading)
      }
      if total == 0 { head = Array(bytes.prefix(min(count, 64))) }
      total += count
      if let found = Self.first(in: bytes.span.extracting(first: count), &framer) {
        (start, header) = found
        return
      }
      if count == 0 { throw Self.noSound(path, bytes: total, head: head) }
    }
  }

  /// True when a file ends inside a frame. Reads the whole file frame by frame. An unreadable file counts as complete: its reader
  /// reports the error.
  package static func isTruncated(_ path: String) -> Bool {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    var framer = MP3Framer()
    var bytes = [UInt8](repeating: 0, count: piece)
    while true {
      let count = unsafe read(file, &bytes, bytes.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return count == 0 && endsCut(&framer) }
      var fed = 0
      while fed < count {
        fed += framer.feed(bytes.span.extracting(fed..<count))
        while framer.next(isEnding: false) != .needsMore {}
      }
    }
  }

  private static func endsCut(_ framer: inout MP3Framer) -> Bool {
    while true {
      switch framer.next(isEnding: true) {
      case .cut: return true
      case .frame, .damaged: break
      case .needsMore: return false
      }
    }
  }

  /// The first frame among the bytes fed so far and `bytes`; no bytes mark the end of the file.
  private static func first(in bytes: Span<UInt8>, _ framer: inout MP3Framer) -> (Int64, MP3Header)? {
    var fed = 0
    while true {
      switch framer.next(isEnding: bytes.isEmpty) {
      case .frame(let offset, _):
        if let header = framer.header { return (offset, header) }
      case .damaged, .cut: break
      case .needsMore:
        if fed == bytes.count { return nil }
        fed += framer.feed(bytes.extracting(fed..<bytes.count))
      }
    }
  }

  /// The message for a file, or several files that form one stream, without two consecutive frames. `head` holds its first bytes.
  package static func noSound(_ path: String, bytes: Int, head: [UInt8]) -> NodeProblem {
    let kind = FileKind.name(head).map { "; it begins like \($0)" } ?? ""
    return NodeProblem(
      "\"\(path)\" holds no audio: no two consecutive MP3 frames in its \(bytes) bytes\(kind)",
      parameter: "path", cure: "check that it plays, or re-encode it")
  }
}
