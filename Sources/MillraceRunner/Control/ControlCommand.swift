internal import MillraceCore
internal import MillraceGraph

/// A control command: what to do, for which runs, and when.
///
/// ```json
/// { "command": "set", "node": "gain", "parameter": "gain", "value": -6, "instance": 2, "at": "1.5s", "id": 7 }
/// ```
struct ControlCommand: Sendable {
  enum Action: Sendable {
    case set(node: String, parameter: String, ParameterValue)
    case ramp(node: String, parameter: String, to: Double, over: Nanoseconds)
    case get(node: String, parameter: String)
    case send(node: String, text: String)
    case interrupt
    case duck
    case resume
    case tap(link: String, file: String)
    case untap(file: String)
    case change(ControlChange)
    case drain
    case stop
    case report
  }

  var action: Action
  /// Name of the graph; nil for every graph that the command applies to.
  var graph: String?
  /// Number of the instance, from 1; nil for all.
  var instance: Int?
  /// Graph time at which to execute the command; nil for now.
  var time: Nanoseconds?
}

/// The reason why a command was not executed.
struct ControlError: Error, Sendable, Equatable {
  /// What is wrong and how to fix it.
  var text: String
  /// Position in the line, from 1; nil when the error does not concern the text of the line.
  var column: Int?

  init(_ text: String, hint: String? = nil, column: Int? = nil) {
    self.text = hint.map { "\(text); \($0)" } ?? text
    self.column = column
  }
}

// MARK: - Parsing

/// Parses one line. Reports syntax errors with their column; whether the graph accepts the command is not checked here.
struct ControlLine {
  /// The sender's identifier for the command, repeated in the answer; nil when the line has none.
  private(set) var id: JSONNode?
  private let source: SourceFile

  /// Members that all commands may have.
  private static let commonKeys = ["command", "id", "graph", "instance", "at"]
  /// Members of each command beside the common ones.
  private static let ownKeys: KeyValuePairs = [
    "set": ["node", "parameter", "value", "over"], "get": ["node", "parameter"], "send": ["node", "text"],
    "interrupt": [], "duck": [], "resume": [], "tap": ["link", "file"], "untap": ["file"],
    "add": ["part", "file", "set", "type", "parameters", "links", "unlink"],
    "remove": ["part", "links", "unlink"],
    "relink": ["links", "unlink"], "report": [], "drain": [], "stop": [],
  ]
  /// All commands, in the order of the documentation.
  static let commands = ownKeys.map(\.key)

  init(_ bytes: [UInt8]) { source = SourceFile(name: "control", bytes: bytes, extent: .line) }

  /// Parses the command.
  mutating func command() throws(ControlError) -> ControlCommand {
    let document: JSONDocument
    do throws(Problem) { document = try JSONDocument.scan(source) } catch {
      throw ControlError(error.text, hint: error.hint, column: error.position?.column)
    }
    guard let object = document.root.object else {
      throw error(
        document.root, "a command must be an object, found \(document.root.kind)",
        hint: #"write { "command": "report" }"#)
    }
    id = object["id"]?.value
    let word = try word(object, document.root)
    try rejectUnknownKeys(object, of: word)
    var command = ControlCommand(action: try action(word, object, document.root))
    command.graph = try text(object, "graph")
    command.instance = try instance(object)
    command.time = try time(object, "at", #""500ms", "1.5s" or "2min""#)
    return command
  }

  private func word(_ object: JSONObject, _ root: JSONNode) throws(ControlError) -> String {
    guard let member = object["command"] else {
      let near = Spelling.nearest(to: "command", among: object.keys)
      throw error(
        root, "missing member \"command\"",
        hint: near.map { "write \"command\" instead of \(Problem.quoted($0))" }
          ?? "add it; the commands are \(Self.commands.joined(separator: ", "))")
    }
    let word = try text(object, "command") ?? ""
    guard Self.commands.contains(word) else {
      throw error(
        member.value, "unknown command \(Problem.quoted(word))",
        hint: Spelling.hint(for: word, among: Self.commands)
          ?? "the commands are \(Self.commands.joined(separator: ", "))")
    }
    return word
  }

  private func rejectUnknownKeys(_ object: JSONObject, of word: String) throws(ControlError) {
    let own = Self.ownKeys.first { $0.key == word }?.value ?? []
    for member in object.members where !(Self.commonKeys + own).contains(member.key) {
      throw ControlError(
        "unknown member \(Problem.quoted(member.key)) in command \"\(word)\"",
        hint: Spelling.hint(for: member.key, among: own + Self.commonKeys)
          ?? "its members are \((own + Self.commonKeys.dropFirst()).joined(separator: ", "))",
        column: column(member.keyRange))
    }
  }

  private func action(
    _ word: String, _ object: JSONObject, _ root: JSONNode
  ) throws(ControlError) -> ControlCommand.Action {
    switch word {
    case "set":
      let node = try required(object, "node", root)
      let parameter = try required(object, "parameter", root)
      guard let member = object["value"] else { throw missing("value", root) }
      guard let time = try time(object, "over", #""300ms", "1.5s" or "2min""#) else {
        return .set(node: node, parameter: parameter, try value(member.value))
      }
      guard let target = member.value.double else {
        throw error(
          member.value, "\"value\" must be a number in a ramp (\"over\"), found \(member.value.kind)")
      }
      return .ramp(node: node, parameter: parameter, to: target, over: time)
    case "get":
      return .get(
        node: try required(object, "node", root), parameter: try required(object, "parameter", root))
    case "send":
      let node = try required(object, "node", root)
      guard let member = object["text"] else { throw missing("text", root) }
      return .send(node: node, text: try message(member.value))
    case "interrupt": return .interrupt
    case "tap":
      return .tap(link: try required(object, "link", root), file: try required(object, "file", root))
    case "untap": return .untap(file: try required(object, "file", root))
    case "add": return .change(try addition(object, root))
    case "remove": return .change(try change(.remove(part: try required(object, "part", root)), object))
    case "relink":
      guard object["links"] != nil || object["unlink"] != nil else { throw missing("links", root) }
      return .change(try change(.relink, object))
    case "duck": return .duck
    case "resume": return .resume
    case "drain": return .drain
    case "stop": return .stop
    default: return .report
    }
  }

  private func addition(_ object: JSONObject, _ root: JSONNode) throws(ControlError) -> ControlChange {
    let part = try required(object, "part", root)
    switch (try text(object, "file"), try text(object, "type")) {
    case (let file?, nil):
      if let other = object["parameters"]?.value {
        throw error(other, "\"parameters\" needs \"type\"", hint: "use \"set\" with \"file\"")
      }
      var set: [String: String] = [:]
      for member in try members(object, "set") {
        guard let text = member.value.string ?? member.value.number?.literal else {
          throw error(
            member.value, "a value in \"set\" must be a string or a number, found \(member.value.kind)")
        }
        set[member.key] = text
      }
      return try change(.addFile(part: part, path: file, set: set), object)
    case (nil, let type?):
      if let other = object["set"]?.value {
        throw error(other, "\"set\" needs \"file\"", hint: "use \"parameters\" with \"type\"")
      }
      var parameters: [String: ParameterValue] = [:]
      for member in try members(object, "parameters") { parameters[member.key] = try value(member.value) }
      return try change(.addNode(part: part, type: type, parameters: parameters), object)
    case (nil, nil):
      throw error(
        root, "missing member \"file\" or \"type\"",
        hint: "name the graph file of the part, or the type of its only node")
    case (_?, _?):
      throw error(root, "a part has either \"file\" or \"type\"", hint: "remove one of them")
    }
  }

  private func change(_ kind: ControlChange.Kind, _ object: JSONObject) throws(ControlError)
    -> ControlChange
  {
    ControlChange(kind: kind, links: try texts(object, "links"), unlink: try texts(object, "unlink"))
  }

  private func members(_ object: JSONObject, _ key: String) throws(ControlError) -> [JSONMember] {
    guard let node = object[key]?.value else { return [] }
    guard let found = node.object else {
      throw error(node, "\"\(key)\" must be an object, found \(node.kind)")
    }
    return found.members
  }

  private func texts(_ object: JSONObject, _ key: String) throws(ControlError) -> [String] {
    guard let node = object[key]?.value else { return [] }
    guard case .array(let items) = node.value else {
      throw error(
        node, "\"\(key)\" must be an array of links, found \(node.kind)", hint: #"write ["mic -> enc"]"#)
    }
    var texts: [String] = []
    for item in items {
      guard let text = item.string else { throw error(item, "a link must be a string, found \(item.kind)") }
      texts.append(text)
    }
    return texts
  }

  // MARK: Values

  private func value(_ node: JSONNode) throws(ControlError) -> ParameterValue {
    switch node.value {
    case .bool(let value): return .bool(value)
    case .string(let value): return .string(value)
    case .number(let number): return number.integer.map { .integer(Int($0)) } ?? .number(number.double)
    case .array(let items):
      var values: [ParameterValue] = []
      for item in items { values.append(try value(item)) }
      return .list(values)
    case .null, .object:
      throw error(
        node, "\"value\" must be a Boolean, a number, a string or an array, found \(node.kind)")
    }
  }

  /// A string as it is; an object or an array as JSON on one line.
  private func message(_ node: JSONNode) throws(ControlError) -> String {
    switch node.value {
    case .string(let text): return text
    case .object, .array:
      var json = JSONWriter()
      json.value(node)
      return json.text
    default: throw error(node, "\"text\" must be a string, an object or an array, found \(node.kind)")
    }
  }

  private func instance(_ object: JSONObject) throws(ControlError) -> Int? {
    guard let node = object["instance"]?.value else { return nil }
    if let number = node.integer, number >= 1 { return Int(number) }
    throw error(node, "\"instance\" must be a positive integer, found \(Self.shown(node))")
  }

  private func time(
    _ object: JSONObject, _ key: String, _ examples: String
  ) throws(ControlError) -> Nanoseconds? {
    guard let node = object[key]?.value else { return nil }
    if let text = node.string, let time = TimeSpan.time(text) { return time }
    if let text = node.string, TimeSpan.isTooLong(text) {
      throw error(node, "\"\(key)\" must be at most \(TimeSpan.limit), found \(Self.shown(node))")
    }
    throw error(
      node,
      "\"\(key)\" must be a \(key == "at" ? "graph time" : "time") with a unit, found \(Self.shown(node))",
      hint: "write \(examples)")
  }

  private func text(_ object: JSONObject, _ key: String) throws(ControlError) -> String? {
    guard let node = object[key]?.value else { return nil }
    if let text = node.string { return text }
    throw error(node, "\"\(key)\" must be a string, found \(node.kind)")
  }

  private func required(_ object: JSONObject, _ key: String, _ root: JSONNode) throws(ControlError) -> String
  {
    guard let text = try text(object, key) else { throw missing(key, root) }
    return text
  }

  // MARK: Errors

  private func missing(_ key: String, _ root: JSONNode) -> ControlError {
    error(root, "missing member \"\(key)\"", hint: "add it")
  }

  private static func shown(_ node: JSONNode) -> String {
    node.number?.literal ?? node.string.map(Problem.quoted) ?? node.kind
  }

  private func error(_ node: JSONNode, _ text: String, hint: String? = nil) -> ControlError {
    ControlError(text, hint: hint, column: column(node.range))
  }

  private func column(_ range: Range<Int>) -> Int { source.position(of: range.lowerBound).column }
}
