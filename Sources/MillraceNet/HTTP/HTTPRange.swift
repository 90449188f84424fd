/// The `Range` header of a request for a file, RFC 9110 section 14.2. Several ranges are answered as if none was asked for.
enum HTTPRange: Equatable {
  /// No range that this server understands: the whole file.
  case whole
  /// These bytes, never empty.
  case part(Range<Int>)
  /// No byte of the range is in the file: status 416.
  case unsatisfiable

  /// Reads a header.
  /// - Parameters:
  ///   - header: its value; nil: there is none.
  ///   - size: bytes of the file.
  init(_ header: String?, of size: Int) {
    self = .whole
    guard let header, header.lowercased().hasPrefix("bytes=") else { return }
    let range = header.dropFirst(6).drop { $0 == " " }
    guard let dash = range.firstIndex(of: "-") else { return }
    let (first, last) = (range[..<dash], range[range.index(after: dash)...])
    guard let begin = Self.number(first), let end = Self.number(last) else { return }
    switch (begin, end) {
    case (nil, nil): return
    case (nil, let count?): self = Self.part(from: count == 0 ? size : max(0, size - count), to: size)
    case (let begin?, nil): self = Self.part(from: begin, to: size)
    case (let begin?, let end?):
      guard begin <= end else { return }
      self = Self.part(from: begin, to: end < size ? end + 1 : size)
    }
  }

  private static func part(from begin: Int, to end: Int) -> HTTPRange {
    begin < end ? .part(begin..<end) : .unsatisfiable
  }

  /// A number, nil for an empty text; the outer nil for anything else. A number beyond 64 bits is beyond every file.
  private static func number(_ text: Substring) -> Int?? {
    guard !text.isEmpty else { return .some(nil) }
    guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return .some(Int(text) ?? .max)
  }
}
