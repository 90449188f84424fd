internal import MillraceJSON

/// A message between programs, beside audio and video.
public struct RoomData: Sendable, Hashable {
  /// What the message holds.
  public enum Content: Sendable, Hashable {
    /// Text; bytes, as Base64 in JSON.
    case text(String), bytes([UInt8])
  }

  /// The name of the channel: at most 64 bytes, may be empty.
  public var label: String
  /// The message itself: at most `RoomLimits.contentBytes` in JSON.
  public var content: Content

  /// Creates a message.
  public init(_ label: String, _ content: Content) {
    self.label = label
    self.content = content
  }
}

extension RoomData {
  var members: [JSONValue.Member] {
    switch content {
    case .text(let text): [.init("label", .string(label)), .init("text", .string(text))]
    case .bytes(let bytes): [.init("label", .string(label)), .init("base64", .string(Base64.encode(bytes)))]
    }
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let label = try form.label("label")
    guard (form["text"] == nil) != (form["base64"] == nil) else {
      throw JSONFormProblem(form.path, "must have a \"text\" or a \"base64\", and not both")
    }
    guard form["base64"] != nil else {
      self.init(label, .text(try form.content("text")))
      return
    }
    guard let bytes = Base64.decode(try form.content("base64")) else {
      throw form.problem("base64", "must be standard Base64 with padding")
    }
    self.init(label, .bytes(bytes))
  }
}
