/// Texts that must never be shown, and how they are taken out of what is.
///
/// The secrets of a graph are the values that came from the environment, those of parameters that are secret by their contract
/// or by the program's wish, and what a running graph is given of such. Whatever a node says in words of its own passes through here
/// before it leaves the graph: its events on the way to the program, its faults, and the lines of `text.print` and `event.log`,
/// whoever wrote them.
///
/// A secret is found as it is, with the escapes of JSON strings (also of one inside another) and of addresses, in Base64, and as the
/// remainder where a text was cut. A value of the form `true` or `null` is none. One of fewer than four bytes, and a word of fewer than
/// eight letters, is taken out only where it stands alone.
///
/// Not done: a secret that a node has changed otherwise (in capitals, in hexadecimal digits, in two events) is not found, and media are
/// not searched. What a value leads to is shown, such as the format of a link whose rate came from the environment.
///
/// Copies share what is added later. Any thread. Searching takes no heap and no lock, and time in the length of the text times the
/// number of secrets.
public struct Secrets: Sendable {
  /// What stands in place of a secret.
  public static let mark = "•••"
  /// A secret of fewer bytes is taken out only where it stands alone, with no letter or digit beside it: `1` or `en` would
  /// tear up half of what is said.
  public static let leastBytes = 4
  /// A secret of letters alone with fewer bytes than this is treated the same: it may be an ordinary word.
  static let leastLetters = 8

  /// How a text is to be read.
  public enum Form: Sendable {
    case text
    /// JSON, which stays JSON: a number that is a secret becomes a string.
    case json
  }

  private let ledger: SecretLedger

  /// No secrets yet.
  public init() { self.init([]) }

  /// The secrets among these texts: all but empty ones and JSON's words.
  public init(_ texts: Set<String>) {
    // The longest first: one secret may be part of another.
    ledger = SecretLedger(Self.spellings(of: texts))
  }

  /// Adds secrets, for all copies: what a graph is given while it runs. Control side.
  public func add(_ texts: Set<String>) {
    ledger.add(texts, spelled: Self.spellings)
  }

  private static func spellings(of texts: Set<String>) -> [SecretSpelling] {
    texts.subtracting(["", "true", "false", "null"]).flatMap(SecretSpelling.all)
      .sorted { $0.bytes.count > $1.bytes.count }
  }

  /// True when there is nothing to be taken out.
  public var isEmpty: Bool { ledger.isEmpty }

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
    search(text, form) { part, isSecret, isBare in
      guard isSecret else {
        for index in part { emit(text[index]) }
        return
      }
      if isBare { emit(UInt8(ascii: "\"")) }
      for byte in Self.mark.utf8 { emit(byte) }
      if isBare { emit(UInt8(ascii: "\"")) }
    }
  }

  /// Where the secrets of a text stand, in bytes.
  public func ranges(in text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    search(text, .text) { part, isSecret, _ in if isSecret { found.append(part) } }
    return found
  }

  /// Goes through a text part by part.
  private func search(
    _ text: Span<UInt8>, _ form: Form, _ take: (Range<Int>, _ isSecret: Bool, _ isBare: Bool) -> Void
  ) {
    var index = 0
    var place = SecretSpelling.Place()
    while index < text.count {
      place.isBare = form == .json && !place.isQuoted
      if let length = ledger.length(at: index, text, place) {
        take(index..<index + length, true, place.isBare)
        index += length
        place.lastEnd = index
        continue
      }
      var step = 1
      if form == .json && text[index] == UInt8(ascii: "\"") { place.isQuoted.toggle() }
      // An escape is one thing: nothing begins inside it.
      if place.isQuoted && text[index] == UInt8(ascii: "\\") && index + 1 < text.count {
        step = text[index + 1] == UInt8(ascii: "u") ? 6 : 2
      }
      let end = min(index + step, text.count)
      take(index..<end, false, false)
      index = end
    }
  }

  // MARK: Words

  static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  /// True for letters alone, so few that they may be a word that is meant otherwise.
  static func isWord(_ text: String) -> Bool {
    text.utf8.count < leastLetters && text.utf8.allSatisfy(isLetter)
  }
}
