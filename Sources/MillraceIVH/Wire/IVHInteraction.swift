internal import MillraceDialog
internal import MillraceJSON

/// What is shown beside a sentence: `InteractionType` and `InteractionContent`, a text that holds JSON.
///
/// The vendor documents the names of the kinds and not their content, so that every form that was seen is read: `button` or `buttonText`,
/// `contents`, `tips` or a bare array, a bare URL, a style as number or text.
enum IVHInteraction {
  /// The content in the common form; nil for none, and for a kind or a content that is not known.
  static func media(_ kind: String, _ content: String, title: String?, round: String?) -> DialogMedia? {
    let json = try? JSONValue(parsing: content)
    var media: DialogMedia
    switch kind {
    case "Image", "Video":
      guard let url = json?["url"]?.string ?? json?.string ?? bareURL(content) else { return nil }
      media = DialogMedia(kind == "Image" ? .image : .video, url: url)
      media.detail = rest(of: json, without: ["url"])
    case "OptionInfo", "ImageOption":
      guard let options = texts(json?["options"]) else { return nil }
      media = DialogMedia(.options, url: json?["url"]?.string, options: options)
      media.title = json?["title"]?.string ?? title
      media.detail = rest(of: json, without: ["options", "title", "url"])
    case "Popup":
      guard let json, json.members != nil else { return nil }
      media = DialogMedia(.popup, title: json["title"]?.string, text: json["content"]?.string)
      if let button = json["button"]?.string ?? json["buttonText"]?.string {
        media.detail = ["button": .string(button)]
      }
    case "BubbleInfo":
      guard let tips = texts(json) ?? texts(json?["contents"]) ?? texts(json?["tips"]) else { return nil }
      media = DialogMedia(.suggestions, options: tips)
    default: return nil
    }
    media.round = round
    return media
  }

  private static func bareURL(_ text: String) -> String? {
    let text = text.trimmingPrefix { $0.isWhitespace }
    return text.hasPrefix("http://") || text.hasPrefix("https://") ? String(text) : nil
  }

  private static func texts(_ value: JSONValue?) -> [String]? {
    guard let array = value?.array else { return nil }
    let texts = array.compactMap(\.string)
    return texts.count == array.count ? texts : nil
  }

  /// Members without a common form, unchanged, but a style that is written as a text is a number.
  private static func rest(of json: JSONValue?, without names: Set<String>) -> JSONValue? {
    let members = (json?.members ?? []).filter { !names.contains($0.name) && !$0.value.isNull }.map {
      member in
      guard member.name == "style", let style = IVHNumber.read(member.value) else { return member }
      return JSONValue.Member("style", .integer(style))
    }
    return members.isEmpty ? nil : .object(members)
  }
}
