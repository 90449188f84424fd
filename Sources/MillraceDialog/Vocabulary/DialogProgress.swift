internal import MillraceJSON

/// How far an operation is that takes a while: an upload, a download, a recording.
public struct DialogProgress: Sendable, Hashable {
  /// The operation: `upload`, `download`, `recording`, or a vendor's name.
  public var name: String
  /// The `id` of the command that began it, if it had one.
  public var command: String?
  /// The part that is done, from 0 to 1; nil when the whole is not known.
  public var done: Double?
  /// Bytes so far.
  public var bytes: Int?
  /// Bytes in total.
  public var totalBytes: Int?

  /// Creates a progress report.
  public init(
    _ name: String, command: String? = nil, done: Double? = nil, bytes: Int? = nil, totalBytes: Int? = nil
  ) {
    self.name = name
    self.command = command
    self.done = done
    self.bytes = bytes
    self.totalBytes = totalBytes
  }
}

extension DialogProgress {
  var json: JSONValue {
    .object([
      "name": .string(name), "command": command.map { .string($0) }, "done": done.map { .double($0) },
      "bytes": bytes.map { .integer($0) }, "totalBytes": totalBytes.map { .integer($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      try form.string("name"), command: json["command"]?.string, done: json["done"]?.double,
      bytes: json["bytes"]?.integer, totalBytes: json["totalBytes"]?.integer)
  }
}
