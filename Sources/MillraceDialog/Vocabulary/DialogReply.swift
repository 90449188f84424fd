internal import MillraceJSON

/// Part of the text of a reply.
public struct DialogReply: Sendable, Hashable {
  /// How it combines with the text before it in the same round.
  public enum Mode: String, Sendable, Hashable, CaseIterable {
    /// Appended to it.
    case append
    /// Replaces it.
    case replace
  }

  /// The text to display.
  public var text: String
  /// The text that is spoken, where it differs.
  public var spoken: String?
  /// True: the text will not change.
  public var isFinal: Bool
  /// How it combines with the text before it.
  public var mode: Mode
  /// The vendor's id of the reply; groups its parts.
  public var round: String?

  /// Creates a part of a reply.
  public init(text: String, spoken: String? = nil, isFinal: Bool, mode: Mode, round: String? = nil) {
    self.text = text
    self.spoken = spoken
    self.isFinal = isFinal
    self.mode = mode
    self.round = round
  }
}

extension DialogReply {
  var json: JSONValue {
    .object([
      "text": .string(text), "spoken": spoken.map { .string($0) }, "final": .bool(isFinal),
      "mode": .string(mode.rawValue), "round": round.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      text: try form.string("text"), spoken: form.json["spoken"]?.string, isFinal: try form.bool("final"),
      mode: try form.word("mode"), round: form.json["round"]?.string)
  }
}
