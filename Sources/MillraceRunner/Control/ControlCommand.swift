internal import MillraceCore
internal import MillraceGraph

/// One line of a control input: what to do, to which runs, when.
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

  let action: Action
  /// Which graph; nil: every one the command can mean.
  var graph: String?
  /// Which instance of it, from 1; nil: all.
  var instance: Int?
  /// Graph time to wait for; nil: now.
  var time: Nanoseconds?
}

/// A command that was not carried out, in words.
struct ControlRefusal: Error, Sendable, Equatable {
  /// What is wrong and what to do.
  var text: String
  /// Where in the line, from 1; nil when it is not about its text.
  var column: Int?

  init(_ text: String, hint: String? = nil, column: Int? = nil) {
    self.text = hint.map { "\(text); \($0)" } ?? text
    self.column = column
  }
}

// MARK: - Reading

/// Takes one line apart. Everything wrong about its shape is told with its column; what the graph has to say comes later.
struct ControlLine {
  /// What the sender calls the command, to be repeated in the answer; nil when it gave nothing.
  private(set) var id: JSONNode?
  private let source: SourceFile

  /// A word that may stand in front of a colon, and for which commands.
  private static let commonKeys = ["command", "id", "graph", "instance", "at"]
  private static let ownKeys: KeyValuePairs = [
    "set": ["node", "parameter", "value", "over"], "get": ["node", "parameter"], "send": ["node", "text"],
    "interrupt": [], "duck": [],
    "resume": [],
    "tap": ["link", "file"], "untap": ["file"],
    "add": ["part", "file", "set", "type", "parameters", "links", "unlink"],
    "remove": ["part", "links", "unlink"],
    "relink": ["links", "unlink"], "report": [], "drain": [], "stop": [],
  ]
  /// Every command, in the order of the documentation.
  static let commands = ownKeys.map(\.key)

  init(_ bytes: [UInt8]) { source = SourceFile(name: "control", bytes: bytes, extent: .line) }

  /// The command the line holds.
  mutating func command() throws(ControlRefusal) -> ControlCommand {
    let document: JSONDocument
    do throws(Problem) { document = try JSONDocument.scan(source) } catch {
      throw ControlRefusal(error.text, hint: error.hint, column: error.position?.column)
    }
    guard let object = document.root.object else {
      throw refusal(
        document.root, "a command is an object, found \(document.root.kind)",
        hint: #"write { "command": "report" }"#)
    }
    id = object["id"]?.value
    let word = try word(object, document.root)
    try refuseUnknownKeys(object, of: word)
    var command = ControlCommand(action: try action(word, object, document.root))
    command.graph = try text(object, "graph")
    command.instance = try instance(object)
    command.time = try time(object, "at", #""500ms", "1.5s" or "2min""#)
    return command
  }

  private func word(_ object: JSONObject, _ root: JSONNode) throws(ControlRefusal) -> String {
    guard let member = object["command"] else {
      let near = Spelling.nearest(to: "command", among: object.keys)
      throw refusal(
        root, "the line has no \"command\"",
        hint: near.map { "write \"command\" in place of \(Problem.quoted($0))" }
          ?? "add \"command\": one of \(Self.commands.joined(separator: ", "))")
    }
    let word = try text(object, "command") ?? ""
    guard Self.commands.contains(word) else {
      throw refusal(
        member.value, "there is no command \(Problem.quoted(word))",
        hint: Spelling.hint(for: word, among: Self.commands)
          ?? "there are \(Self.commands.joined(separator: ", "))")
    }
    return word
  }

  private func refuseUnknownKeys(_ object: JSONObject, of word: String) throws(ControlRefusal) {
    let own = Self.ownKeys.first { $0.key == word }?.value ?? []
    for member in object.members where !(Self.commonKeys + own).contains(member.key) {
      throw ControlRefusal(
        "\"\(word)\" has no key \(Problem.quoted(member.key))",
        hint: Spelling.hint(for: member.key, among: own + Self.commonKeys)
          ?? "its keys are \((own + Self.commonKeys.dropFirst()).joined(separator: ", "))",
        column: column(member.keyRange))
    }
  }

  private func action(
    _ word: String, _ object: JSONObject, _ root: JSONNode
  ) throws(ControlRefusal) -> ControlCommand.Action {
    switch word {
    case "set":
      let node = try needed(object, "node", root)
      let parameter = try needed(object, "parameter", root)
      guard let member = object["value"] else { throw missing("value", root) }
      guard let time = try time(object, "over", #""300ms", "1.5s" or "2min""#) else {
        return .set(node: node, parameter: parameter, try value(member.value))
      }
      guard let target = member.value.double else {
        throw refusal(
          member.value, "\"value\" is a number when there is \"over\", found \(member.value.kind)")
      }
      return .ramp(node: node, parameter: parameter, to: target, over: time)
    case "get":
      return .get(node: try needed(object, "node", root), parameter: try needed(object, "parameter", root))
    case "send":
      let node = try needed(object, "node", root)
      guard let member = object["text"] else { throw missing("text", root) }
      return .send(node: node, text: try message(member.value))
    case "interrupt": return .interrupt
    case "tap":
      return .tap(link: try needed(object, "link", root), file: try needed(object, "file", root))
    case "untap": return .untap(file: try needed(object, "file", root))
    case "add": return .change(try addition(object, root))
    case "remove": return .change(try change(.remove(part: try needed(object, "part", root)), object))
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

  private func addition(_ object: JSONObject, _ root: JSONNode) throws(ControlRefusal) -> ControlChange {
    let part = try needed(object, "part", root)
    switch (try text(object, "file"), try text(object, "type")) {
    case (let file?, nil):
      var set: [String: String] = [:]
      for member in try members(object, "set") {
        guard let text = member.value.string ?? member.value.number?.literal else {
          throw refusal(member.value, "a value in \"set\" is text or a number, found \(member.value.kind)")
        }
        set[member.key] = text
      }
      return try change(.addFile(part: part, path: file, set: set), object)
    case (nil, let type?):
      var parameters: [String: ParameterValue] = [:]
      for member in try members(object, "parameters") { parameters[member.key] = try value(member.value) }
      return try change(.addNode(part: part, type: type, parameters: parameters), object)
    case (nil, nil): throw missing("file", root)
    case (_?, _?):
      throw refusal(root, "a part has either \"file\" or \"type\"", hint: "take one of them out")
    }
  }

  private func change(_ kind: ControlChange.Kind, _ object: JSONObject) throws(ControlRefusal)
    -> ControlChange
  {
    ControlChange(kind: kind, links: try texts(object, "links"), unlink: try texts(object, "unlink"))
  }

  private func members(_ object: JSONObject, _ key: String) throws(ControlRefusal) -> [JSONMember] {
    guard let node = object[key]?.value else { return [] }
    guard let found = node.object else { throw refusal(node, "\"\(key)\" is an object, found \(node.kind)") }
    return found.members
  }

  private func texts(_ object: JSONObject, _ key: String) throws(ControlRefusal) -> [String] {
    guard let node = object[key]?.value else { return [] }
    guard case .array(let items) = node.value else {
      throw refusal(node, "\"\(key)\" is a list of links, found \(node.kind)", hint: #"write ["mic -> enc"]"#)
    }
    var texts: [String] = []
    for item in items {
      guard let text = item.string else { throw refusal(item, "a link is text, found \(item.kind)") }
      texts.append(text)
    }
    return texts
  }

  // MARK: Values

  private func value(_ node: JSONNode) throws(ControlRefusal) -> ParameterValue {
    switch node.value {
    case .bool(let value): return .bool(value)
    case .string(let value): return .string(value)
    case .number(let number): return number.integer.map { .integer(Int($0)) } ?? .number(number.double)
    case .array(let items):
      var values: [ParameterValue] = []
      for item in items { values.append(try value(item)) }
      return .list(values)
    case .null, .object:
      throw refusal(node, "\"value\" is true or false, a number, text or a list, found \(node.kind)")
    }
  }

  /// Text as it is; an object or a list as JSON on one line.
  private func message(_ node: JSONNode) throws(ControlRefusal) -> String {
    switch node.value {
    case .string(let text): return text
    case .object, .array:
      var json = JSONWriter()
      json.value(node)
      return json.text
    default: throw refusal(node, "\"text\" is text, an object or a list, found \(node.kind)")
    }
  }

  private func instance(_ object: JSONObject) throws(ControlRefusal) -> Int? {
    guard let node = object["instance"]?.value else { return nil }
    if let number = node.integer, number >= 1 { return Int(number) }
    throw refusal(node, "\"instance\" is a whole number from 1, found \(Self.shown(node))")
  }

  private func time(
    _ object: JSONObject, _ key: String, _ examples: String
  ) throws(ControlRefusal) -> Nanoseconds? {
    guard let node = object[key]?.value else { return nil }
    if let text = node.string, let time = TimeSpan.time(text) { return time }
    throw refusal(
      node, "\"\(key)\" is a \(key == "at" ? "graph time" : "time") with its unit, found \(Self.shown(node))",
      hint: "write it as \(examples)")
  }

  private func text(_ object: JSONObject, _ key: String) throws(ControlRefusal) -> String? {
    guard let node = object[key]?.value else { return nil }
    if let text = node.string { return text }
    throw refusal(node, "\"\(key)\" is text, found \(node.kind)")
  }

  private func needed(_ object: JSONObject, _ key: String, _ root: JSONNode) throws(ControlRefusal) -> String
  {
    guard let text = try text(object, key) else { throw missing(key, root) }
    return text
  }

  // MARK: Words

  private func missing(_ key: String, _ root: JSONNode) -> ControlRefusal {
    refusal(root, "the command has no \"\(key)\"", hint: "add it")
  }

  private static func shown(_ node: JSONNode) -> String {
    node.number?.literal ?? node.string.map(Problem.quoted) ?? node.kind
  }

  private func refusal(_ node: JSONNode, _ text: String, hint: String? = nil) -> ControlRefusal {
    ControlRefusal(text, hint: hint, column: column(node.range))
  }

  private func column(_ range: Range<Int>) -> Int { source.position(of: range.lowerBound).column }
}
