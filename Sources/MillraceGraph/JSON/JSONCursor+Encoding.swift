extension JSONCursor {
  /// Refuses anything but plain UTF-8 before the first value is read, so that strings need no check of their own.
  func checkEncoding() throws(JSONSyntaxError) {
    let bytes = source.bytes
    if bytes.count > SourceFile.sizeLimit { throw JSONSyntaxError(.tooLarge, 0..<0) }
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { throw JSONSyntaxError(.byteOrderMark, 0..<3) }
    if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
      throw JSONSyntaxError(.utf16, 0..<2)
    }
    do {
      _ = try UTF8Span(validating: bytes.span)
    } catch {
      throw JSONSyntaxError(.invalidByte(bytes[error.byteOffsets.lowerBound], error.kind), error.byteOffsets)
    }
  }
}
