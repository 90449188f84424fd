internal import MillraceJSON

/// What happened to a device of this machine that a service or a node uses.
public struct DialogDevice: Sendable, Hashable {
  /// The kind of device.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Audio in, audio out.
    case microphone, loudspeaker
    /// Video in.
    case camera, screen
  }

  /// What happened.
  public enum Change: String, Sendable, Hashable, CaseIterable {
    /// Disconnected, and connected again.
    case lost, restored
    /// In use by another program; not permitted to this one.
    case busy, denied
    /// It does not work, for another reason.
    case failed
    /// Another device of this kind is used from now on: see `name`.
    case switched
  }

  /// The kind of device.
  public var kind: Kind
  /// What happened.
  public var change: Change
  /// The system's name of the device.
  public var name: String?
  /// The vendor's code.
  public var code: Int?
  /// The message of the vendor or the system.
  public var text: String?

  /// Creates a change of a device.
  public init(_ kind: Kind, _ change: Change, name: String? = nil, code: Int? = nil, text: String? = nil) {
    self.kind = kind
    self.change = change
    self.name = name
    self.code = code
    self.text = text
  }
}

extension DialogDevice {
  var json: JSONValue {
    .object([
      "kind": .string(kind.rawValue), "change": .string(change.rawValue), "name": name.map { .string($0) },
      "code": code.map { .integer($0) }, "text": text.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      try form.word("kind"), try form.word("change"), name: json["name"]?.string,
      code: json["code"]?.integer, text: json["text"]?.string)
  }
}
