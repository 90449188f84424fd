/// Texts that must never be shown, and how to redact them.
///
/// The secrets of a graph are values from the environment, values of parameters that are secret by their contract or on the program's
/// request, such values set while the graph runs, and what nodes learn meanwhile: an address or a token that a service hands out. Text from
/// nodes is redacted before it leaves the graph: events for the program, faults, and all lines of `text.print` and `event.log`.
///
/// A secret is found verbatim, with the escapes of JSON strings (also nested ones) and of URLs, in Base64, and as a fragment where a text
/// was truncated. The values `true`, `false` and `null` are never secrets. A secret of fewer than four bytes, or a word of fewer than
/// eight letters, is redacted only where it stands alone.
///
/// What it does *not* do: it does not find a secret that a node has transformed in another way (upper case, hexadecimal, split over two
/// events), and does not search media. Consequences of a value are shown, such as the format of a link whose rate came from the
/// environment.
///
/// Copies share secrets that are added later, and so do a running graph and its parts. Any thread. Searching uses neither heap nor lock;
/// its time is proportional to the length of the text times the number of secrets.
public struct Secrets: Sendable {
  /// The replacement for a secret.
  public static let mark = "•••"
  /// A secret of fewer bytes is redacted only where it stands alone, without an adjacent letter or digit: `1` or `en` occurs in most
  /// texts.
  public static let minBytes = 4
  /// A secret that consists of fewer letters than this is treated likewise: it may be an ordinary word.
  static let minLetters = 8

  /// How to read a text.
  public enum Form: Sendable {
    /// Plain text.
    case text
    /// JSON, which remains JSON: a number that is a secret becomes a string.
    case json
  }

  private let store: SecretStore

  /// Creates an empty set of secrets.
  public init() { self.init([]) }

  /// Creates a set from texts, except the empty text, `true`, `false` and `null`.
  public init(_ texts: Set<String>) {
    // The longest first, because one secret may be part of another.
    store = SecretStore(Self.patterns(of: texts))
  }

  /// Creates the set of a part of a running graph: its own secrets and those of the graph, which hides the part's from now on.
  public init(_ texts: Set<String>, within graph: Secrets) {
    store = SecretStore(Self.patterns(of: texts), within: graph.store)
    graph.add(texts)
  }

  /// Adds secrets, for all copies, while a graph runs.
  ///
  /// Add first, then post: what is shown after this call returns is shown without them, also what was posted before it and waits to be
  /// shown. The last 256 additions are remembered; adding one of them again costs a comparison.
  ///
  /// Any thread, but no call on the voice lane: it allocates, and waits for other additions, though never for a search.
  public func add(_ texts: Set<String>) {
    store.add(texts, patternsOf: Self.patterns)
  }

  /// Adds the secret parts of a text, as `add` does: for a node to which a service hands an address or a token.
  /// - Parameter secrecy: what kind of secret the text is, as a parameter would declare it; `address` for the address of a stream.
  public func learn(_ text: String, as secrecy: ParameterContract.Secrecy) {
    add(secrecy.hiddenTexts(of: text))
  }

  private static func patterns(of texts: Set<String>) -> [SecretPattern] {
    texts.subtracting(["", "true", "false", "null"]).flatMap(SecretPattern.all)
      .sorted { $0.bytes.count > $1.bytes.count }
  }

  /// True when there is no secret.
  public var isEmpty: Bool { store.isEmpty }

  /// Returns the text with its secrets replaced.
  public func redacting(_ text: String) -> String { redacting(text, .text) }

  /// Returns JSON with its secrets replaced; the result is JSON.
  public func redacting(json text: String) -> String { redacting(text, .json) }

  /// Returns the problem with the secrets in its text and cure replaced.
  public func redacting(_ problem: NodeProblem) -> NodeProblem {
    NodeProblem(
      redacting(problem.text), parameter: problem.parameter, cure: problem.cure.map { redacting($0) })
  }

  private func redacting(_ text: String, _ form: Form) -> String {
    guard !isEmpty else { return text }
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    redact(bytes.span, form) { result.append($0) }
    return String(decoding: result, as: UTF8.self)
  }

  // MARK: Searching

  /// Largest number of bytes that one byte may grow to.
  public static var growth: Int { mark.utf8.count + 2 }

  /// Passes the text on byte by byte, with its secrets replaced. No heap.
  public func redact(_ text: Span<UInt8>, _ form: Form, to emit: (UInt8) -> Void) {
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

  /// The byte ranges of the secrets in a text.
  public func ranges(in text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    search(text, .text) { part, isSecret, _ in if isSecret { found.append(part) } }
    return found
  }

  /// Splits the text into secrets and single characters.
  private func search(
    _ text: Span<UInt8>, _ form: Form, _ take: (Range<Int>, _ isSecret: Bool, _ isBare: Bool) -> Void
  ) {
    var index = 0
    var place = SecretPattern.Place()
    while index < text.count {
      place.isBare = form == .json && !place.isQuoted
      if let length = store.length(at: index, text, place) {
        take(index..<index + length, true, place.isBare)
        index += length
        place.lastEnd = index
        continue
      }
      var step = 1
      if form == .json && text[index] == UInt8(ascii: "\"") { place.isQuoted.toggle() }
      // An escape is one unit: no secret starts inside it.
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

  /// True for a few letters that may be an ordinary word.
  static func isWord(_ text: String) -> Bool {
    text.utf8.count < minLetters && text.utf8.allSatisfy(isLetter)
  }
}
