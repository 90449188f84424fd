internal import MillraceCore
internal import MillraceJSON

/// A text with placeholders: `{user}` for a value, `{env:NAME}` for an environment variable, `{{` and `}}` for braces.
struct TemplateText: Sendable, Hashable {
  enum Part: Sendable, Hashable {
    case text(String)
    case value(String)
    case environment(String)
  }

  let parts: [Part]

  /// - Parameters:
  ///   - text: the template.
  ///   - names: the values that may be named.
  ///   - parameter: what the text is part of, for errors.
  init(_ text: String, names: Set<String>, parameter: String) throws(NodeProblem) {
    var parts: [Part] = []
    var plain = String.UnicodeScalarView()
    var rest = Substring(text).unicodeScalars
    while let scalar = rest.popFirst() {
      switch scalar {
      case "{" where rest.first == "{", "}" where rest.first == "}":
        rest.removeFirst()
        plain.append(scalar)
      case "{":
        let name = rest.prefix { $0 != "{" && $0 != "}" }
        rest = rest[name.endIndex...]
        guard rest.popFirst() == "}" else {
          throw NodeProblem(
            "a \"{\" is not closed", parameter: parameter, cure: "close it, or write \"{{\" for a brace")
        }
        if !plain.isEmpty { parts.append(.text(String(plain))) }
        plain.removeAll()
        parts.append(try Self.placeholder(String(name), names, parameter))
      case "}":
        throw NodeProblem(
          "a \"}\" was not opened", parameter: parameter, cure: "remove it, or write \"}}\" for a brace")
      default: plain.append(scalar)
      }
    }
    if !plain.isEmpty { parts.append(.text(String(plain))) }
    self.parts = parts
  }

  private static func placeholder(
    _ name: String, _ names: Set<String>, _ parameter: String
  ) throws(NodeProblem) -> Part {
    if names.contains(name) { return .value(name) }
    let prefix = "env:"
    if name.hasPrefix(prefix), isVariable(name.dropFirst(prefix.count)) {
      return .environment(String(name.dropFirst(prefix.count)))
    }
    let known = names.sorted().map { "{\($0)}" } + ["{env:NAME}"]
    throw NodeProblem(
      isVariable(name[...]) ? "the placeholder {\(name)} is not known" : "a placeholder is not a name",
      parameter: parameter,
      cure: "known are \(known.joined(separator: ", ")); write \"{{\" and \"}}\" for braces")
  }

  /// The names of environment variables in POSIX.1 section 8.1, lower case included.
  private static func isVariable(_ name: Substring) -> Bool {
    guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
      return false
    }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
  }

  /// The environment variables it names.
  var variables: [String] {
    parts.compactMap { if case .environment(let name) = $0 { name } else { nil } }
  }

  /// True when nothing in it is filled in.
  var isFixed: Bool {
    parts.allSatisfy { if case .text = $0 { true } else { false } }
  }

  /// The text with its placeholders filled.
  /// - Parameter escape: applied to what is filled in, not to the template's own text.
  func filled(
    _ values: TemplateValues, _ escape: (String) -> String = { $0 }
  ) throws(NodeProblem) -> String {
    var result = ""
    for part in parts {
      switch part {
      case .text(let text): result += text
      case .value(let name): result += escape(try values.value(name))
      case .environment(let name): result += escape(try values.variable(name))
      }
    }
    return result
  }
}

/// What placeholders are filled with.
struct TemplateValues {
  /// Values by name.
  var values: [String: String]
  /// A variable of the environment; nil where it is not set.
  var environment: (String) -> String?

  func value(_ name: String) throws(NodeProblem) -> String {
    guard let text = values[name], !text.isEmpty else {
      throw NodeProblem(
        "the placeholder {\(name)} has no value",
        cure: "give \"\(name)\" a value, or take {\(name)} out of the template")
    }
    return text
  }

  func variable(_ name: String) throws(NodeProblem) -> String {
    guard let text = environment(name), !text.isEmpty else {
      throw NodeProblem(
        "the environment variable \(name) is not set",
        cure: "set it, or take {env:\(name)} out of the template")
    }
    return text
  }
}

/// A JSON value whose texts are templates. Names of members are not.
indirect enum TemplateJSON: Sendable {
  case fixed(JSONValue)
  case text(TemplateText)
  case array([TemplateJSON])
  case object([(name: String, value: TemplateJSON)])

  init(_ json: JSONValue, names: Set<String>, parameter: String) throws(NodeProblem) {
    switch json {
    case .string(let text): self = .text(try TemplateText(text, names: names, parameter: parameter))
    case .array(let items):
      var templates: [TemplateJSON] = []
      for item in items {
        templates.append(try TemplateJSON(item, names: names, parameter: parameter))
      }
      self = .array(templates)
    case .object(let members):
      var templates: [(name: String, value: TemplateJSON)] = []
      for member in members {
        templates.append(
          (member.name, try TemplateJSON(member.value, names: names, parameter: parameter)))
      }
      self = .object(templates)
    case .null, .bool, .number: self = .fixed(json)
    }
  }

  /// The environment variables it names.
  var variables: [String] {
    switch self {
    case .fixed: []
    case .text(let text): text.variables
    case .array(let items): items.flatMap(\.variables)
    case .object(let members): members.flatMap(\.value.variables)
    }
  }

  /// The value with the placeholders of its texts filled. What is filled in is never more than a text: writing it escapes it.
  func filled(_ values: TemplateValues) throws(NodeProblem) -> JSONValue {
    switch self {
    case .fixed(let json): return json
    case .text(let text): return .string(try text.filled(values))
    case .array(let items):
      var filled: [JSONValue] = []
      for item in items { filled.append(try item.filled(values)) }
      return .array(filled)
    case .object(let members):
      var filled: [JSONValue.Member] = []
      for member in members { filled.append(JSONValue.Member(member.name, try member.value.filled(values))) }
      return .object(filled)
    }
  }
}
