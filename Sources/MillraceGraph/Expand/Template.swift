/// A string with placeholders, parsed.
///
/// `${name}` is a parameter of the graph, `${env:NAME}` an environment variable, `${env:NAME:-text}` one with a default for when it
/// is unset or empty. `$${` is a literal `${`. Any other dollar sign is literal.
struct Template {
  enum Piece: Hashable {
    case text(String)
    case parameter(String)
    case environment(String, fallback: String?)
  }

  /// Why a string is not a template, with the text between the braces.
  enum Fault: Error, Hashable {
    case unclosed
    case emptyName
    case badVariable(String)
    case badName(String)
  }

  private(set) var pieces: [Piece] = []

  init(_ text: String) throws(Fault) {
    guard text.utf8.contains(UInt8(ascii: "$")) else {
      pieces = [.text(text)]
      return
    }
    var plain = ""
    var rest = Substring(text)
    while !rest.isEmpty {
      if rest.hasPrefix("$${") {
        plain += "${"
        rest = rest.dropFirst(3)
      } else if rest.hasPrefix("${") {
        guard let close = rest.firstIndex(of: "}") else { throw .unclosed }
        if !plain.isEmpty { pieces.append(.text(plain)) }
        plain = ""
        pieces.append(try Self.reference(rest[rest.index(rest.startIndex, offsetBy: 2)..<close]))
        rest = rest[rest.index(after: close)...]
      } else {
        plain.append(rest.removeFirst())
      }
    }
    if !plain.isEmpty || pieces.isEmpty { pieces.append(.text(plain)) }
  }

  private static func reference(_ text: Substring) throws(Fault) -> Piece {
    let prefix = "env:"
    guard text.hasPrefix(prefix) else {
      if text.isEmpty { throw .emptyName }
      let name = String(text)
      guard Names.objection(to: name, of: "") == nil else { throw .badName(name) }
      return .parameter(name)
    }
    let variable = text.dropFirst(prefix.count)
    let name = variable.prefix { $0 != ":" }
    let tail = variable[name.endIndex...]
    guard isVariable(name), tail.isEmpty || tail.hasPrefix(":-") else { throw .badVariable(String(text)) }
    return .environment(String(name), fallback: tail.isEmpty ? nil : String(tail.dropFirst(2)))
  }

  /// Whether a name is valid for an environment variable (POSIX, IEEE 1003.1, 3.216), in either case.
  private static func isVariable(_ name: Substring) -> Bool {
    guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
    return name.utf8.allSatisfy { byte in
      byte == UInt8(ascii: "_") || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }
  }
}

extension Template.Fault {
  /// What is wrong.
  var text: String {
    switch self {
    case .unclosed: "unterminated \"${\""
    case .emptyName: "\"${}\" has no name"
    case .badName(let name): "\(Problem.quoted("${" + name + "}")) does not name a parameter"
    case .badVariable(let name): "\(Problem.quoted("${" + name + "}")) does not name an environment variable"
    }
  }

  /// How to fix it.
  var hint: String {
    switch self {
    case .unclosed, .emptyName: "write \"${name}\", or \"$${\" for a literal \"${\""
    case .badName: "\(Names.rule), or write \"$${\" for a literal \"${\""
    case .badVariable: "write \"${env:NAME}\" or \"${env:NAME:-default}\""
    }
  }
}

extension WrittenValue {
  /// Names of the graph's parameters that it refers to.
  var references: Set<String> {
    switch self {
    case .list(let items): return items.reduce(into: []) { $0.formUnion($1.value.references) }
    case .text(let text):
      guard let template = try? Template(text) else { return [] }
      return template.pieces.reduce(into: []) { names, piece in
        if case .parameter(let name) = piece { names.insert(name) }
      }
    default: return []
    }
  }
}
