internal import MillraceCore
public import MillraceJSON

/// Tools that an agent may call by the Model Context Protocol, and what is answered to its requests.
///
/// A file of tools is an object with `tools`, and optionally `name` and `version` of the server, or the array of tools alone. A tool has a
/// `name`, a `description` and an `inputSchema`, as in the protocol's `tools/list`. Source: modelcontextprotocol.io, specification 2024-11-05.
public struct TuyaTools: Sendable, Hashable {
  /// The version of the protocol that is spoken when the agent names none.
  static let version = "2024-11-05"

  /// The names of the tools.
  public let names: [String]
  private let list: JSONValue
  private let server: JSONValue

  /// Reads the content of a file of tools. Throws what is wrong with it, and where.
  public init(_ json: JSONValue) throws(JSONFormProblem) {
    let form = JSONForm(json.array == nil ? json : .object([JSONValue.Member("tools", json)]))
    var names: [String] = []
    var tools: [JSONValue] = []
    for tool in try form.array("tools") {
      let name = try tool.string("name")
      guard !name.isEmpty, !names.contains(name) else {
        throw tool.problem("name", "must be there once, and must not be empty")
      }
      if tool["inputSchema"] != nil { _ = try tool.object("inputSchema") }
      names.append(name)
      // The protocol requires a schema.
      tools.append(
        tool["inputSchema"] == nil ? tool.json.merging(["inputSchema": ["type": "object"]]) : tool.json)
    }
    self.names = names
    list = .array(tools)
    server = .object([
      "name": form["name"] == nil ? "millrace" : .string(try form.string("name")),
      "version": form["version"] == nil ? "1" : .string(try form.string("version")),
    ])
  }

  /// What to do with a request.
  enum Reply: Sendable, Hashable {
    /// Answer with this JSON.
    case answer(JSONValue)
    /// A tool is called: the program answers.
    case call(id: JSONValue, tool: String, arguments: JSONValue)
    /// A notification, or the answer to a request of this side: nothing.
    case none
  }

  /// What a request of the agent comes to.
  /// - Parameters:
  ///   - request: JSON-RPC 2.0; nil: it was no JSON.
  ///   - tools: nil: there are none, and every request is refused.
  static func reply(to request: JSONValue?, _ tools: TuyaTools?) -> Reply {
    guard let request else { return .answer(error(.null, -32_700, "the request is not JSON")) }
    let id = request["id"].flatMap { isID($0) ? $0 : nil }
    guard let method = request["method"]?.string else {
      let isAnswer = request["result"] != nil || request["error"] != nil
      return isAnswer ? .none : .answer(error(id ?? .null, -32_600, "the request has no \"method\""))
    }
    // A notification is never answered.
    guard request["id"] != nil else { return .none }
    guard let id else { return .answer(error(.null, -32_600, "\"id\" must be a string or a number")) }
    guard let tools else { return .answer(error(id, -32_601, "\"\(printable(method))\" is not supported")) }
    let parameters = request["params"]
    switch method {
    case "initialize":
      let result: JSONValue = [
        "protocolVersion": .string(parameters?["protocolVersion"]?.string ?? version),
        "capabilities": ["tools": .object([])], "serverInfo": tools.server,
      ]
      return .answer(response(id, result))
    case "ping": return .answer(response(id, .object([])))
    case "tools/list": return .answer(response(id, ["tools": tools.list]))
    case "tools/call":
      guard let name = parameters?["name"]?.string, tools.names.contains(name) else {
        return .answer(error(id, -32_602, "there is no such tool"))
      }
      return .call(id: id, tool: name, arguments: parameters?["arguments"] ?? .object([]))
    default: return .answer(error(id, -32_601, "\"\(printable(method))\" is not supported"))
    }
  }

  /// The answer to a call, from what a program says: the protocol's `result` or `error`, or only the `text` of a result.
  static func answer(_ id: JSONValue, _ payload: JSONValue) -> JSONValue? {
    if let failure = payload["error"], !failure.isNull {
      if let text = failure.string { return error(id, -32_000, text) }
      guard failure["code"]?.integer != nil, failure["message"]?.string != nil else { return nil }
      return message(id, "error", failure)
    }
    if let result = payload["result"], !result.isNull {
      return response(id, result["content"]?.array == nil ? content(result.string ?? result.text) : result)
    }
    return payload["text"]?.string.map { response(id, content($0)) }
  }

  /// A refusal in the protocol's form.
  static func error(_ id: JSONValue, _ code: Int, _ text: String) -> JSONValue {
    message(id, "error", ["code": .integer(code), "message": .string(text)])
  }

  private static func content(_ text: String) -> JSONValue {
    ["content": [["type": "text", "text": .string(text)]], "isError": false]
  }

  private static func response(_ id: JSONValue, _ result: JSONValue) -> JSONValue {
    message(id, "result", result)
  }

  private static func message(_ id: JSONValue, _ name: String, _ value: JSONValue) -> JSONValue {
    .object([
      JSONValue.Member("jsonrpc", "2.0"), JSONValue.Member("id", id), JSONValue.Member(name, value),
    ])
  }

  private static func isID(_ value: JSONValue) -> Bool {
    if case .number = value { true } else { value.string != nil }
  }

  /// A name of the cloud, fit for a message.
  private static func printable(_ text: String) -> String {
    String(text.prefix(64).map { $0.isASCII && !$0.isNewline && $0 != "\"" ? $0 : "?" })
  }
}

/// Calls of tools that a program has not answered yet.
struct TuyaToolCalls: Sendable {
  /// The most that wait; further ones are refused.
  static let most = 32

  private struct Call: Sendable {
    var id: JSONValue
    var dueAt: Nanoseconds
  }

  private var calls: [Call] = []

  /// When the first is no longer waited for; nil: none waits.
  var dueAt: Nanoseconds? { calls.map(\.dueAt).min() }

  /// False when too many wait, or one with this id.
  mutating func add(_ id: JSONValue, until time: Nanoseconds) -> Bool {
    guard calls.count < Self.most, !calls.contains(where: { $0.id == id }) else { return false }
    calls.append(Call(id: id, dueAt: time))
    return true
  }

  /// The id of the call that waits under it; nil: none does. A program may write a number as a string.
  mutating func take(_ id: JSONValue) -> JSONValue? {
    let key = id.string ?? id.text
    let index = calls.firstIndex { $0.id == id } ?? calls.firstIndex { ($0.id.string ?? $0.id.text) == key }
    return index.map { calls.remove(at: $0).id }
  }

  /// Those that were waited for too long.
  mutating func takeDue(at now: Nanoseconds) -> [JSONValue] {
    let due = calls.filter { $0.dueAt <= now }
    calls.removeAll { $0.dueAt <= now }
    return due.map(\.id)
  }

  mutating func removeAll() { calls = [] }
}
