internal import Glibc
package import MillraceCore

/// Where the sound of an MP3 file begins, found without decoding it.
package struct MP3File: Sendable {
  /// Byte of the first frame.
  package let start: Int64
  /// Its header.
  package let header: MP3Header

  /// Bytes read at a time.
  private static let piece = 65_536

  /// Looks for the first frame that others confirm. Reads a file without sound to its end. Control side.
  ///
  /// - Throws: a problem in words when no frame follows another in the whole file, or it cannot be read.
  package init(_ path: String) throws(NodeProblem) {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw FileWords.problem(errno, path, for: .reading) }
    defer { close(file) }
    var framer = MP3Framer()
    var bytes = [UInt8](repeating: 0, count: Self.piece)
    var head: [UInt8] = []
    var total = 0
    while true {
      let count = unsafe read(file, &bytes, bytes.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw FileWords.problem(errno, path, for: .reading)
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

  /// True when a file ends inside a frame. Reads all of it, jumping from frame to frame; one that cannot be read counts as whole, since
  /// its reader fails with the reason.
  package static func isCut(_ path: String) -> Bool {
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

  /// The first frame among what was fed and `bytes`; no bytes: the file is over.
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

  /// The words for a file, or several that make one, in which no frame follows another. `head`: its first bytes.
  package static func noSound(_ path: String, bytes: Int, head: [UInt8]) -> NodeProblem {
    let kind = FileKind.name(head).map { "; it begins like \($0)" } ?? ""
    return NodeProblem(
      "\"\(path)\" holds no sound that can be decoded: nowhere in its \(bytes) bytes do frames of MP3 follow each other\(kind)",
      parameter: "path", cure: "check that it plays, or convert it again")
  }
}
