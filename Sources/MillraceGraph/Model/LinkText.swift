/// Parses links written as text: `mic -> enc.in -> out`.
enum LinkText {
  /// The links of a chain, each with the bytes from its first name to its second.
  static func hops(
    of chain: Located<String>, capacity: Located<WrittenValue>? = nil, whenFull: Located<WrittenValue>? = nil
  ) throws(Problem) -> [LinkDeclaration] {
    let text = chain.value
    let spans = spans(of: text)
    guard spans.count > 1 else {
      throw chain.place.error(
        .invalidLink, "link \(Problem.quoted(text)) names only one node", hint: "write \"from -> to\"")
    }
    if spans.contains(where: \.isEmpty) {
      throw chain.place.error(
        .invalidLink, "link \(Problem.quoted(text)) has no node name next to an arrow",
        hint: "write \"from -> to\"")
    }
    var names: [Located<String>] = []
    for span in spans {
      names.append(try end(Located(slice(text, span), chain.place.part(of: text, span))))
    }
    return (1..<spans.count).map { index in
      LinkDeclaration(
        from: .init(text: names[index - 1], isBetween: index > 1),
        to: .init(text: names[index], isBetween: index < spans.count - 1),
        place: chain.place.part(of: text, spans[index - 1].lowerBound..<spans[index].upperBound),
        capacity: capacity, whenFull: whenFull)
    }
  }

  /// One end: the name of a node, optionally with a dot and a port.
  static func end(_ text: Located<String>) throws(Problem) -> Located<String> {
    let dots = text.value.utf8.count { $0 == UInt8(ascii: ".") }
    let isWhole = !text.value.isEmpty && !text.value.hasPrefix(".") && !text.value.hasSuffix(".")
    if isWhole && dots <= 1 && !text.value.contains(where: \.isWhitespace) { return text }
    let hint =
      text.value.contains("..")
      ? "write one dot between node and port"
      : dots > 1
        ? "link to a port the included graph exposes"
        : "write \"node\" or \"node.port\", and \"->\" between nodes"
    throw text.place.error(.invalidLink, "invalid link end \(Problem.quoted(text.value))", hint: hint)
  }

  /// The node and port of an end.
  static func parts(of end: String) -> (node: String, port: String?) {
    guard let dot = end.firstIndex(of: ".") else { return (end, nil) }
    return (String(end[..<dot]), String(end[end.index(after: dot)...]))
  }

  /// The byte ranges of the names between the arrows, without the spaces around them.
  private static func spans(of text: String) -> [Range<Int>] {
    let bytes = Array(text.utf8)
    var spans: [Range<Int>] = []
    var start = 0
    var index = 0
    while index <= bytes.count {
      let isArrow =
        index + 1 < bytes.count && bytes[index] == UInt8(ascii: "-") && bytes[index + 1] == UInt8(ascii: ">")
      if isArrow || index == bytes.count {
        spans.append(trimmed(start..<index, bytes))
        start = index + 2
        index += 1
      }
      index += 1
    }
    return spans
  }

  private static func trimmed(_ span: Range<Int>, _ bytes: [UInt8]) -> Range<Int> {
    var low = span.lowerBound
    var high = span.upperBound
    while low < high, bytes[low] <= 0x20 { low += 1 }
    while high > low, bytes[high - 1] <= 0x20 { high -= 1 }
    return low..<high
  }

  private static func slice(_ text: String, _ range: Range<Int>) -> String {
    let start = text.utf8.index(text.startIndex, offsetBy: range.lowerBound)
    let end = text.utf8.index(text.startIndex, offsetBy: range.upperBound)
    return String(text[start..<end])
  }
}
