public import MillraceJSON

/// A file that a member shares: what the request `file` announces, and the push `file` says to the others.
public struct RoomFile: Sendable, Hashable {
  /// What it is called: 1 to 255 characters of any content. Shown as text, never as markup, and never taken for a path.
  public var name: String
  /// How many bytes it has.
  public var bytes: Int
  /// Its media type, as whoever shares it says, not checked here; nil: not said.
  public var type: String?

  /// Creates a file.
  public init(_ name: String, bytes: Int, type: String? = nil) {
    self.name = name
    self.bytes = bytes
    self.type = type
  }
}

extension RoomFile {
  var members: [JSONValue.Member] {
    var members = [JSONValue.Member("name", .string(name)), JSONValue.Member("bytes", .integer(bytes))]
    if let type { members.append(JSONValue.Member("type", .string(type))) }
    return members
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.fileName("name"), bytes: try form.integer("bytes", in: RoomLimits.fileSizes),
      type: try form.optionalMediaType("type"))
  }
}

/// The answer to `file`: how the content is sent, and where it will be.
public struct RoomFileTicket: RoomPayload {
  /// The id of the file, given by the hub.
  public var id: RoomName
  /// What lets the member send the content once, within a short time; a secret.
  public var ticket: String
  /// The path at which the file can be read.
  public var path: String

  /// Creates an answer.
  public init(_ id: RoomName, ticket: String, path: String) {
    self.id = id
    self.ticket = ticket
    self.path = path
  }

  public init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.name("id"), ticket: try form.token("ticket"), path: try form.text("path"))
  }

  public var json: JSONValue {
    ["id": .string(id.rawValue), "ticket": .string(ticket), "path": .string(path)]
  }
}

extension RoomFileTicket: CustomStringConvertible {
  /// The file; the ticket is secret.
  public var description: String { "ticket for \(path)" }
}
