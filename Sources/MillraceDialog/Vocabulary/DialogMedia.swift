public import MillraceJSON

/// Something to display or to offer during a reply: content beside its text and audio.
public struct DialogMedia: Sendable, Hashable {
  /// The kind of content.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An image, a video, a window with text, a choice, suggested questions.
    case image, video, popup, options, suggestions
    /// A sound that is no part of the reply's audio, such as a piece of music; any other file.
    case audio, file
  }

  /// The kind of content.
  public var kind: Kind
  /// Where an image, a video, a sound or a file is; `file:` for one that the node has stored on this machine.
  public var url: String?
  /// The name of a file.
  public var name: String?
  /// A title.
  public var title: String?
  /// The text to display.
  public var text: String?
  /// The choices or suggested questions.
  public var options: [String]
  /// The vendor's message, for what the members above do not cover (a style, a button label).
  public var detail: JSONValue?
  /// The vendor's id of the reply it belongs to.
  public var round: String?

  /// Creates content to display.
  public init(
    _ kind: Kind, url: String? = nil, name: String? = nil, title: String? = nil, text: String? = nil,
    options: [String] = [], detail: JSONValue? = nil, round: String? = nil
  ) {
    self.kind = kind
    self.url = url
    self.name = name
    self.title = title
    self.text = text
    self.options = options
    self.detail = detail
    self.round = round
  }
}

extension DialogMedia {
  var json: JSONValue {
    .object([
      "kind": .string(kind.rawValue), "url": url.map { .string($0) }, "name": name.map { .string($0) },
      "title": title.map { .string($0) }, "text": text.map { .string($0) },
      "options": options.isEmpty ? nil : .array(options.map { .string($0) }), "detail": detail,
      "round": round.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      try form.word("kind"), url: json["url"]?.string, name: json["name"]?.string,
      title: json["title"]?.string, text: json["text"]?.string,
      options: json["options"]?.array?.compactMap(\.string) ?? [], detail: json["detail"],
      round: json["round"]?.string)
  }
}
