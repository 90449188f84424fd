public import MillraceDialog
public import MillraceJSON

/// Why a text of the cloud is no document. The text contains nothing of it.
public struct TuyaTextProblem: Error, Sendable, Hashable {
  /// What is wrong.
  public var text: String

  /// Creates a problem.
  public init(_ text: String) { self.text = text }
}

/// A text document of the cloud: words of the user, of the reply, or a skill. Source: "JSON formats" of the vendor's document of the AI stream.
public struct TuyaText: Sendable, Hashable {
  /// What it says.
  public enum Content: Sendable, Hashable {
    /// `ASR`: what the user said so far.
    case speech(String)
    /// `NLG`: part of the reply.
    case reply(Reply)
    /// `SKILL` with the code `llm_emo`: a step of an emotion, and its number, from 1; nil: none, which ends the list.
    case emotion(DialogEmotion?, sequence: Int?)
    /// Any other `SKILL`: its code, and its data.
    case skill(code: String, JSONValue)
    /// Any other type, `CloudEvent` among them, or data of another shape.
    case unknown
  }

  /// Part of the text of a reply.
  public struct Reply: Sendable, Hashable {
    /// The text; empty: none.
    public var text: String
    /// What the model thinks; empty: nothing.
    public var reasoning: String
    /// `append`: it continues the message. Otherwise it begins another.
    public var isAppended: Bool
    /// Addresses of images.
    public var images: [String]

    /// True where nothing is said or shown.
    public var isEmpty: Bool { text.isEmpty && reasoning.isEmpty && images.isEmpty }
  }

  /// The id that groups what belongs to one interaction; nil: there is none.
  public var bizID: String?
  /// `bizType`.
  public var type: String
  /// `eof` is 1: it is the last of its kind.
  public var isFinal: Bool
  /// What it says.
  public var content: Content
  /// The whole document.
  public var raw: JSONValue

  /// Reads a document.
  /// - Throws: where it is no UTF-8, no JSON or no object.
  public init(parsing bytes: [UInt8]) throws(TuyaTextProblem) {
    guard bytes.count <= TuyaTextAssembler.mostBytes else {
      throw TuyaTextProblem("the text has \(bytes.count) bytes; \(TuyaTextAssembler.mostBytes) are read")
    }
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      throw TuyaTextProblem("the text is \(error)")
    }
    guard json.members != nil else { throw TuyaTextProblem("the text is JSON, and no object") }
    raw = json
    bizID = json["bizId"].flatMap { $0.string ?? $0.integer.map { String($0) } }
    type = json["bizType"]?.string ?? ""
    isFinal = Self.flag(json["eof"])
    content = Self.content(type, json["data"] ?? .null)
  }

  /// A number that some senders write as a text or as true.
  private static func flag(_ value: JSONValue?) -> Bool {
    value?.bool ?? (number(value) == 1)
  }

  private static func number(_ value: JSONValue?) -> Int? {
    value?.integer ?? value?.double.flatMap { Int(exactly: $0.rounded()) }
      ?? value?.string.flatMap { Int($0) }
  }

  private static func content(_ type: String, _ data: JSONValue) -> Content {
    switch type {
    case "ASR":
      guard let text = data["text"]?.string else { return .unknown }
      return .speech(text)
    case "NLG":
      guard data.members != nil else { return .unknown }
      return .reply(reply(data))
    case "SKILL":
      guard let code = data["code"]?.string else { return .unknown }
      return code == "llm_emo" ? emotion(data) : .skill(code: code, data)
    default: return .unknown
    }
  }

  private static func reply(_ data: JSONValue) -> Reply {
    Reply(
      text: data["content"]?.string ?? "", reasoning: data["reasoningContent"]?.string ?? "",
      isAppended: data["appendMode"]?.string == "append", images: images(data["images"]))
  }

  /// A list of objects with an address, or an object with a list of addresses: senders differ.
  private static func images(_ value: JSONValue?) -> [String] {
    let list = value?.array ?? value?["url"]?.array ?? [value?["url"]].compactMap { $0 }
    return list.compactMap { $0.string ?? $0["url"]?.string }.filter { !$0.isEmpty }
  }

  private static func emotion(_ data: JSONValue) -> Content {
    guard let step = data["skillContent"], step.members != nil else {
      return .emotion(nil, sequence: nil)
    }
    let sequence = number(step["sequence"])
    guard let sign = step["text"]?.string, !sign.isEmpty else { return .emotion(nil, sequence: sequence) }
    let emotion = DialogEmotion(
      emotions[sign] ?? sign, startMilliseconds: max(0, number(step["startTime"]) ?? 0),
      endMilliseconds: number(step["endTime"]))
    return .emotion(emotion, sequence: sequence)
  }

  /// The vendor's table of emotions.
  private static let emotions: [String: String] = [
    "\u{1F622}": "SAD", "\u{1F620}": "ANGRY", "\u{1F610}": "NEUTRAL", "\u{1F628}": "FEARFUL",
    "\u{1F632}": "SURPRISE", "\u{1F615}": "CONFUSED", "\u{1F61E}": "DISAPPOINTED", "\u{1F621}": "ANNOYED",
    "\u{1F914}": "THINKING", "\u{1F600}": "HAPPY",
  ]
}
