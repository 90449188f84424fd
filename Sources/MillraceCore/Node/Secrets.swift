/// Texts that must never be shown, and how they are taken out of what is.
///
/// The secrets of a graph are the values that came from the environment and those of parameters marked as secret. Whatever a
/// node says in words of its own passes through here before it leaves the graph: its events on the way to the program, its
/// faults, and the lines of `text.print` and `event.log`, whoever wrote them. A value of the form `true` or `null` is none.
///
/// Not done: a secret that a node has changed (encoded, cut in two, put in capitals) is not found, and media are not searched.
/// What a value leads to is shown, such as the format of a link whose rate came from the environment.
///
/// Values; any thread. Searching takes no heap, and time in the length of the text times the number of secrets.
public struct Secrets: Sendable {
  /// What stands in place of a secret.
  public static let mark = "•••"
  /// A secret of fewer bytes is taken out only where it stands alone, with no letter or digit beside it: `1` or `en` would
  /// tear up half of what is said.
  public static let leastBytes = 4

  /// How a text is to be read.
  public enum Form: Sendable {
    case text
    /// JSON, which stays JSON: a number that is a secret becomes a string.
    case json
  }

  /// One way of writing a secret.
  private struct Spelling {
    let bytes: [UInt8]
    /// As it stands inside a JSON string.
    let isEscaped: Bool
    let isNumber: Bool
    var isShort: Bool { bytes.count < Secrets.leastBytes }
  }
  /// The longest first: one secret may be part of another.
  private let spellings: [Spelling]

  /// No secrets.
  public init() { spellings = [] }

  /// The secrets among these texts: all but empty ones and JSON's words.
  public init(_ texts: Set<String>) {
    let words: Set = ["", "true", "false", "null"]
    spellings = texts.subtracting(words).flatMap { text in
      let isNumber = Double(text) != nil
      let escaped = Set([
        Self.escaped(text, .short), Self.escaped(text, .control), Self.escaped(text, .ascii),
      ])
      return
        (escaped.contains(text) ? [] : [Spelling(bytes: Array(text.utf8), isEscaped: false, isNumber: false)])
        + escaped.map { Spelling(bytes: Array($0.utf8), isEscaped: true, isNumber: isNumber) }
    }.sorted { $0.bytes.count > $1.bytes.count }
  }

  /// True when there is nothing to be taken out.
  public var isEmpty: Bool { spellings.isEmpty }

  /// A text without its secrets.
  public func removed(from text: String) -> String { removed(from: text, .text) }

  /// JSON without its secrets; JSON still.
  public func removed(fromJSON text: String) -> String { removed(from: text, .json) }

  /// A problem of a node, its text and its cure without secrets.
  public func removed(from problem: NodeProblem) -> NodeProblem {
    NodeProblem(
      removed(from: problem.text), parameter: problem.parameter, cure: problem.cure.map { removed(from: $0) })
  }

  private func removed(from text: String, _ form: Form) -> String {
    guard !isEmpty else { return text }
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    hide(in: bytes.span, form) { result.append($0) }
    return String(decoding: result, as: UTF8.self)
  }

  // MARK: Searching

  /// Bytes that a text of one byte may become.
  public static var growth: Int { mark.utf8.count + 2 }

  /// Hands a text on byte by byte, secrets replaced. No heap.
  public func hide(in text: Span<UInt8>, _ form: Form, to emit: (UInt8) -> Void) {
    var index = 0
    var isQuoted = false
    while index < text.count {
      let isBare = form == .json && !isQuoted
      if let length = length(ofSecretAt: index, text, form, isBare: isBare) {
        if isBare { emit(UInt8(ascii: "\"")) }
        for byte in Self.mark.utf8 { emit(byte) }
        if isBare { emit(UInt8(ascii: "\"")) }
        index += length
        continue
      }
      var step = 1
      if form == .json && text[index] == UInt8(ascii: "\"") { isQuoted.toggle() }
      // An escape is one thing: nothing begins inside it.
      if isQuoted && text[index] == UInt8(ascii: "\\") && index + 1 < text.count {
        step = text[index + 1] == UInt8(ascii: "u") ? 6 : 2
      }
      for place in index..<min(index + step, text.count) { emit(text[place]) }
      index += step
    }
  }

  private func length(ofSecretAt index: Int, _ text: Span<UInt8>, _ form: Form, isBare: Bool) -> Int? {
    for spelling in spellings where spelling.isEscaped || form == .text {
      let bytes = spelling.bytes
      guard index + bytes.count <= text.count, text[index] == bytes[0] else { continue }
      guard bytes.indices.allSatisfy({ text[index + $0] == bytes[$0] }) else { continue }
      // Outside of strings a short number is likelier to be a count or a level than the secret.
      if isBare && spelling.isShort { continue }
      let mustStandAlone = spelling.isShort || (isBare && spelling.isNumber)
      if mustStandAlone && !standsAlone(index..<index + bytes.count, text) { continue }
      return bytes.count
    }
    return nil
  }

  /// True when no letter, digit, sign or point touches a part of a text.
  private func standsAlone(_ part: Range<Int>, _ text: Span<UInt8>) -> Bool {
    func belongs(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), 0x80...0xFF:
        true
      default: false
      }
    }
    /// A decimal point, not the end of a sentence.
    func continues(_ point: Int, _ next: Int) -> Bool {
      text[point] == UInt8(ascii: ".") && next >= 0 && next < text.count
        && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[next])
    }
    if part.lowerBound > 0 {
      let before = part.lowerBound - 1
      if belongs(text[before]) || continues(before, before - 1) { return false }
    }
    guard part.upperBound < text.count else { return true }
    return !belongs(text[part.upperBound]) && !continues(part.upperBound, part.upperBound + 1)
  }

  // MARK: Spellings

  /// The ways JSON is written: by `JSONWriter` of `MillraceGraph`, by `EventWriter`, and by programs that keep to ASCII.
  private enum Escapes { case short, control, ascii }

  private static func escaped(_ text: String, _ escapes: Escapes) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case "\u{08}" where escapes != .control: result += "\\b"
      case "\t" where escapes != .control: result += "\\t"
      case "\n" where escapes != .control: result += "\\n"
      case "\u{0C}" where escapes != .control: result += "\\f"
      case "\r" where escapes != .control: result += "\\r"
      case "\0"..<" ": result += unit(UInt16(scalar.value))
      case _ where escapes == .ascii && !scalar.isASCII:
        for code in String(scalar).utf16 { result += unit(code) }
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static func unit(_ code: UInt16) -> String {
    let digits = String(code, radix: 16)
    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
  }
}
