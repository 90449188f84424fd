public import MillraceJSON

/// What came of a command that had an `id`: it was carried out, with a result or without one, or it failed.
///
/// A service node answers every such command exactly once, also when the dialogue ends before the service has answered.
public struct DialogAnswer: Sendable, Hashable {
  /// The outcome of a command.
  public enum Result: Sendable, Hashable {
    /// Carried out; the payload is what the service returned, under the vendor's names, or nil.
    case done(JSONValue?)
    /// Refused or failed; the scope is `command`.
    case failed(DialogError)
  }

  /// The `id` of the command.
  public var id: String
  /// The outcome.
  public var result: Result

  /// Creates an answer.
  public init(_ id: String, _ result: Result) {
    self.id = id
    self.result = result
  }
}

extension DialogAnswer {
  var json: JSONValue {
    switch result {
    case .done(let payload): .object(["id": .string(id), "ok": true, "payload": payload])
    case .failed(let error):
      .object(
        [JSONValue.Member("id", .string(id)), JSONValue.Member("ok", false)]
          + error.members.compactMap { name, value in value.map { JSONValue.Member(name, $0) } })
    }
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let isDone = try form.bool("ok")
    let id = try form.string("id")
    if isDone {
      self.init(id, .done(form.json["payload"]))
    } else {
      var error = try DialogError(form)
      error.scope = .command
      self.init(id, .failed(error))
    }
  }
}
