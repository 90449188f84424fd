extension JSONScanner {
  /// Refuses what is not plain UTF-8, before anything is read: afterwards every string can be taken as it is.
  func checkEncoding() throws(Problem) {
    if bytes.count > SourceFile.sizeLimit {
      throw problem(
        0..<0, "the text is larger than \(SourceFile.sizeLimit >> 20) MiB",
        hint: "check that it is the file you meant")
    }
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
      throw problem(0..<3, "the \(whole) starts with a byte order mark", hint: Self.plainText(source.extent))
    }
    if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
      throw problem(0..<2, "the \(whole) is in UTF-16", hint: Self.plainText(source.extent))
    }
    do {
      _ = try UTF8Span(validating: bytes.span)
    } catch {
      throw notUTF8(error)
    }
  }

  private static func plainText(_ extent: SourceFile.Extent) -> String {
    "\(extent == .file ? "save it as" : "send") UTF-8 without BOM"
  }

  private func notUTF8(_ error: UTF8.ValidationError) -> Problem {
    let range = error.byteOffsets
    let reason =
      switch error.kind {
      case .unexpectedContinuationByte: "is the middle of a character without its start"
      case .surrogateCodePointByte: "starts half of a surrogate pair, which UTF-8 does not allow"
      case .overlongEncodingByte: "starts a character that is encoded longer than needed"
      case .truncatedScalar: "starts a character that is cut short"
      default: "is not part of any character"
      }
    let byte = String(bytes[range.lowerBound], radix: 16, uppercase: true)
    return problem(
      range, "the \(whole) is not UTF-8: byte 0x\(byte) \(reason)",
      hint: source.extent == .file ? "save the file as UTF-8" : "send UTF-8")
  }
}
