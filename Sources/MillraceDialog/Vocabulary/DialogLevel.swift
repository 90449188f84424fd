internal import MillraceJSON

/// How loud a participant is.
public struct DialogLevel: Sendable, Hashable {
  /// The vendor's id of the participant; nil: this client.
  public var peer: String?
  /// In dBov: 0 is the loudest the format can express, silence is -127 (RFC 6464). The vendors' scales are converted to it. Nil only in
  /// `speaking`, from a service that says who speaks and not how loud.
  public var decibels: Double?

  /// Creates a level.
  public init(peer: String? = nil, decibels: Double?) {
    self.peer = peer
    self.decibels = decibels
  }
}

extension DialogLevel {
  var json: JSONValue {
    .object(["peer": peer.map { .string($0) }, "dBov": decibels.map { .double($0) }])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(peer: form.json["peer"]?.string, decibels: try form.number("dBov"))
  }

  static func list(_ form: JSONForm) throws(JSONFormProblem) -> [DialogLevel] {
    var result: [DialogLevel] = []
    for entry in try form.array("peers") {
      guard entry.json.members != nil else { throw JSONFormProblem(entry.path, "must be an object") }
      result.append(DialogLevel(peer: entry.json["peer"]?.string, decibels: entry.json["dBov"]?.double))
    }
    return result
  }
}
