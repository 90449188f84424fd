/// Scans JSON text and hides values by the names of their members.
///
/// Lenient: it also gets text that a node may refuse later, and hides what it cannot parse rather than show it.
struct SecretJSON {
  /// The hidden texts, each with the text in front of it.
  private(set) var hidden: [(text: String, lead: String)] = []
  /// Texts whose member name does not make them secret.
  private(set) var plain: [String] = []
  /// The text with a mark in place of each hidden value.
  private(set) var shown = ""

  private let text: Substring
  private let hidesNumbers: Bool
  private let isSecret: (Substring) -> Bool
  /// For every open array and object: whether all its values are secret.
  private var levels: [Bool] = []
  /// The name of the member whose value is next.
  private var name: Substring?

  /// - Parameters:
  ///   - numbers: true to hide numbers as well as texts.
  ///   - isSecret: whether the value of a member with this name is secret.
  init(_ text: String, numbers: Bool, _ isSecret: @escaping (Substring) -> Bool) {
    self.text = text[...]
    hidesNumbers = numbers
    self.isSecret = isSecret
  }

  private var hides: Bool { levels.last == true || name.map { isSecret($0) } == true }

  mutating func read() {
    var index = text.startIndex
    while index < text.endIndex {
      let byte = text.utf8[index]
      let start = index
      text.utf8.formIndex(after: &index)
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        levels.append(hides)
        name = nil
        shown += text[start..<index]
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        _ = levels.popLast()
        name = nil
        shown += text[start..<index]
      case UInt8(ascii: ","):
        name = nil
        shown += text[start..<index]
      case UInt8(ascii: "\""):
        index = end(ofStringFrom: index)
        take(string: text[start..<index], isName: isName(before: index))
      case _ where Self.space.contains(byte) || byte == UInt8(ascii: ":"): shown += text[start..<index]
      default:
        index = text.utf8[index...].firstIndex { Self.ends.contains($0) } ?? text.endIndex
        // A name without quotes is invalid JSON, but still a name.
        if isName(before: index) {
          name = text[start..<index]
          shown += text[start..<index]
        } else {
          take(bare: text[start..<index])
        }
      }
    }
  }

  private static let space = Array(" \n\r\t".utf8)
  /// The characters that end an unquoted word.
  private static let ends = Array(" \n\r\t,:]}\"".utf8)

  /// The index after the closing quote.
  private func end(ofStringFrom start: Substring.Index) -> Substring.Index {
    var index = start
    while index < text.endIndex {
      let byte = text.utf8[index]
      text.utf8.formIndex(after: &index)
      if byte == UInt8(ascii: "\"") { return index }
      if byte == UInt8(ascii: "\\") && index < text.endIndex { text.utf8.formIndex(after: &index) }
    }
    return index
  }

  private func isName(before index: Substring.Index) -> Bool {
    text.utf8[index...].first { !Self.space.contains($0) } == UInt8(ascii: ":")
  }

  private mutating func take(string: Substring, isName: Bool) {
    let isClosed = string.utf8.count > 1 && string.utf8.last == UInt8(ascii: "\"")
    let inner = string[string.utf8.index(after: string.startIndex)...].dropLast(isClosed ? 1 : 0)
    if isName {
      name = inner
      shown += string
      return
    }
    guard hides else {
      plain.append(Self.unescaped(inner))
      shown += string
      return
    }
    hidden.append((Self.unescaped(inner), "\(name ?? "")\":\""))
    shown += inner.isEmpty ? "\"\"" : "\"\(Secrets.mark)\""
  }

  private mutating func take(bare: Substring) {
    guard hides && hidesNumbers, !["true", "false", "null"].contains(bare) else {
      shown += bare
      return
    }
    hidden.append((String(bare), "\(name ?? "")\":"))
    shown += "\"\(Secrets.mark)\""
  }

  private static func unescaped(_ text: Substring) -> String {
    guard text.utf8.contains(UInt8(ascii: "\\")) else { return String(text) }
    var result = String.UnicodeScalarView()
    var rest = text.unicodeScalars
    while let scalar = rest.popFirst() {
      guard scalar == "\\", let next = rest.popFirst() else {
        result.append(scalar)
        continue
      }
      switch next {
      case "b": result.append("\u{08}")
      case "f": result.append("\u{0C}")
      case "n": result.append("\n")
      case "r": result.append("\r")
      case "t": result.append("\t")
      case "u":
        var unit = UInt32(String(rest.prefix(4)), radix: 16) ?? 0xFFFD
        rest = rest.dropFirst(4)
        if (0xD800..<0xDC00).contains(unit), rest.starts(with: "\\u".unicodeScalars),
          let low = UInt32(String(rest.dropFirst(2).prefix(4)), radix: 16), (0xDC00...0xDFFF).contains(low)
        {
          unit = 0x10000 + ((unit - 0xD800) << 10) + low - 0xDC00
          rest = rest.dropFirst(6)
        }
        result.append(Unicode.Scalar(unit) ?? "\u{FFFD}")
      default: result.append(next)
      }
    }
    return String(result)
  }
}

extension Secrets {
  /// The credentials in a JSON message to a node, found by the names of its members, such as
  /// `{"command":"refreshAuth","token":"…"}`. Numbers and short words are not credentials.
  public static func credentials(inMessage text: String) -> Set<String> {
    guard text.first(where: { $0 != " " && $0 != "\n" && $0 != "\t" }) == "{" else { return [] }
    // `{"key":"volume","value":3}` is not a credential.
    return SecretParts(text, .credentials).hidden.filter { !isWord($0) }
  }
}
