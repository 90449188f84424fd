internal import Glibc
internal import MillraceAudio

/// Whether a file is complete, for containers that declare how they end. FFmpeg's libraries accept any end of data as the end of the file, and
/// do not report it if it lies between two packets.
///
/// Supports AVI (RIFF), Matroska and WebM, GIF, Ogg. Other containers declare nothing that could be checked against the file's bytes:
/// MPEG-TS and MPEG-PS, FLV, fragmented MP4, raw streams; or, like ASF, only values that players ignore. The declared duration is checked
/// elsewhere, if this check is inconclusive.
enum FileCompleteness: Equatable {
  /// The file is complete.
  case complete
  /// The file is truncated; the evidence for it.
  case truncated(String)
  /// The container does not tell.
  case unknown

  /// Checks the end of a file. A file that cannot be read is `unknown`: its reader reports the reason. Reads little of a file, except for GIF,
  /// which is read completely. Blocks.
  ///
  /// - Parameter container: libavformat's name of the container.
  init(_ path: String, container: String) {
    if container == "ogg" {
      self = OggTail.isTruncated(path) ? .truncated("it has no last page") : .complete
      return
    }
    self = .unknown
    guard ["avi", "gif", "matroska,webm"].contains(container), var bytes = FileBytes(path) else { return }
    switch container {
    case "avi": self = Self.ofAVI(&bytes)
    case "gif": self = Self.ofGIF(&bytes)
    default: self = Self.ofMatroska(&bytes)
    }
  }

  // MARK: AVI

  /// Bit 4 of `dwFlags` in the main header: the file has an index (Microsoft, AVIMAINHEADER).
  private static let hasIndex: UInt8 = 0x10

  /// Every RIFF chunk (the first one, and the OpenDML ones after it) declares its size. A program that was killed has written neither these
  /// sizes nor the index announced in the header.
  private static func ofAVI(_ bytes: inout FileBytes) -> FileCompleteness {
    var place = 0
    while bytes.hasMark("RIFF", at: place), let size = bytes.word(at: place + 4) {
      if size == 0 || size >= 0xFFFF_FFF0 {
        return place == 0 ? ofUnfinishedAVI(&bytes) : .truncated("it was not finished")
      }
      // The padding byte of an odd size may be missing.
      if place + 8 + size > bytes.count { return .truncated("it is shorter than its header says") }
      place += 8 + size + size & 1
    }
    return place > 0 ? .complete : .unknown
  }

  /// A file without a declared size: complete if it was written to a pipe, where nothing can be patched afterwards, and therefore announces no
  /// index.
  private static func ofUnfinishedAVI(_ bytes: inout FileBytes) -> FileCompleteness {
    // RIFF size AVI, LIST size hdrl, avih size: the header's fields start at 32, and the flags are the fourth.
    guard bytes.hasMark("avih", at: 24), let flags = bytes.byte(at: 44), flags & hasIndex != 0 else {
      return .unknown
    }
    var place = 12
    while let size = bytes.word(at: place + 4) {
      if bytes.hasMark("idx1", at: place) { return .complete }
      // An unfinished list has no size either: its children follow.
      let isOpen = bytes.hasMark("LIST", at: place) && (size == 0 || size >= 0xFFFF_FFF0)
      place += isOpen ? 12 : 8 + size + size & 1
    }
    return .truncated("its index is missing")
  }

  // MARK: GIF

  /// Blocks up to the trailer (CompuServe, GIF89a specification, sections 17 to 27).
  private static func ofGIF(_ bytes: inout FileBytes) -> FileCompleteness {
    /// Size of a colour table, by the preceding flags field.
    func table(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }
    guard let flags = bytes.byte(at: 10) else { return .unknown }
    var place = 13 + table(flags)
    while let kind = bytes.byte(at: place) {
      switch kind {
      case 0x3B: return .complete
      case 0x21: place += 2
      case 0x2C:
        guard let flags = bytes.byte(at: place + 9) else { return .truncated("its end is missing") }
        place += 11 + table(flags)
      // Not GIF data; the decoder has reported it too.
      default: return .unknown
      }
      while let length = bytes.byte(at: place), length > 0 { place += 1 + Int(length) }
      place += 1
    }
    return .truncated("its end is missing")
  }

  // MARK: Matroska

  /// The segment, which contains everything but the file's first elements, declares its size once it is finished (RFC 9559 section 5, RFC 8794
  /// sections 4 to 6).
  private static func ofMatroska(_ bytes: inout FileBytes) -> FileCompleteness {
    let segment: [UInt8] = [0x18, 0x53, 0x80, 0x67]
    guard let header = bytes.elementSize(at: 4), let size = header.size else { return .unknown }
    let place = 4 + header.length + size
    guard bytes.hasBytes(segment, at: place), let whole = bytes.elementSize(at: place + 4),
      let stated = whole.size
    else { return .unknown }
    let isShort = place + 4 + whole.length + stated > bytes.count
    return isShort ? .truncated("it is shorter than its header says") : .complete
  }
}

/// Random access to the bytes of a file, read in blocks on demand.
private struct FileBytes: ~Copyable {
  let count: Int
  private let file: Int32
  private var piece: [UInt8]
  private var start = 0
  private var filled = 0
  private static let pieceBytes = 1 << 16

  init?(_ path: String) {
    file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    count = Int(lseek(file, 0, SEEK_END))
    piece = [UInt8](repeating: 0, count: Self.pieceBytes)
  }

  deinit { if file >= 0 { close(file) } }

  /// A byte; nil beyond the end.
  mutating func byte(at place: Int) -> UInt8? {
    guard place >= 0, place < count else { return nil }
    if place < start || place >= start + filled {
      start = place
      filled = max(0, unsafe pread(file, &piece, piece.count, off_t(place)))
      guard filled > 0 else { return nil }
    }
    return piece[place - start]
  }

  mutating func hasBytes(_ wanted: [UInt8], at place: Int) -> Bool {
    for (index, value) in wanted.enumerated() where byte(at: place + index) != value { return false }
    return true
  }

  mutating func hasMark(_ mark: StaticString, at place: Int) -> Bool {
    for index in 0..<mark.utf8CodeUnitCount
    where unsafe byte(at: place + index) != mark.utf8Start[index] { return false }
    return true
  }

  /// Four bytes, little-endian.
  mutating func word(at place: Int) -> Int? {
    guard let highest = byte(at: place + 3) else { return nil }
    var value = Int(highest)
    for index in (0..<3).reversed() { value = value << 8 | Int(byte(at: place + index) ?? 0) }
    return value
  }

  /// The size of an EBML element and the length of the size field; a size of nil means unknown. nil if there is no element.
  mutating func elementSize(at place: Int) -> (size: Int?, length: Int)? {
    guard let first = byte(at: place), first > 0, byte(at: place + first.leadingZeroBitCount) != nil else {
      return nil
    }
    let length = first.leadingZeroBitCount + 1
    var value = Int(first) & (0xFF >> length)
    for index in 1..<length { value = value << 8 | Int(byte(at: place + index) ?? 0) }
    return (value == 1 << (7 * length) - 1 ? nil : value, length)
  }
}
