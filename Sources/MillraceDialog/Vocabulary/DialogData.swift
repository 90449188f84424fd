internal import MillraceJSON

/// A message from or to a participant, beside audio and video: of a data channel, a room, or in the video stream (SEI).
public struct DialogData: Sendable, Hashable {
  /// What the message holds.
  public enum Content: Sendable, Hashable {
    /// Text; bytes, as Base64 in JSON.
    case text(String), bytes([UInt8])
  }

  /// The participant it is from or to, by the vendor's id; nil: everybody, or the only other one.
  public var peer: String?
  /// The name of the channel.
  public var label: String?
  /// The message itself.
  public var content: Content

  /// Creates a message.
  public init(_ content: Content, peer: String? = nil, label: String? = nil) {
    self.content = content
    self.peer = peer
    self.label = label
  }
}

extension DialogData {
  var json: JSONValue { .object(members) }

  var members: KeyValuePairs<String, JSONValue?> {
    var text: String?
    var base64: String?
    switch content {
    case .text(let value): text = value
    case .bytes(let value): base64 = Base64.encode(value)
    }
    return [
      "peer": peer.map { .string($0) }, "label": label.map { .string($0) }, "text": text.map { .string($0) },
      "base64": base64.map { .string($0) },
    ]
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    guard (form["text"] == nil) != (form["base64"] == nil) else {
      throw JSONFormProblem(form.path, "must have a \"text\" or a \"base64\", and not both")
    }
    let content: Content
    if form["text"] != nil {
      content = .text(try form.string("text"))
    } else {
      guard let bytes = Base64.decode(try form.string("base64")) else {
        throw form.problem("base64", "must be standard Base64 with padding")
      }
      content = .bytes(bytes)
    }
    self.init(content, peer: form.json["peer"]?.string, label: form.json["label"]?.string)
  }
}
