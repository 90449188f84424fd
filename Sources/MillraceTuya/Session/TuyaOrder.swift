internal import MillraceDialog
internal import MillraceJSON

/// A request under the vendor's own name: the `extra` commands, read and checked.
///
/// What is wrong with one is an error with the vendor's code: 39002 for a member that is missing or has the wrong form, 39007 for a channel,
/// 39008 for data that cannot be sent.
enum TuyaOrder: Sendable, Hashable {
  /// Ask for a token; a new one, or the one that is there.
  case queryToken(isNew: Bool)
  /// Create a session.
  case createSession(TuyaBeginning)
  /// Close the session.
  case closeSession(TuyaStatus)
  /// Begin an event; nil: with an id of the session's own.
  case startEvent(String?, userData: JSONValue?)
  /// Name: nil for the event that is open.
  case endPayloads(String?, TuyaChannelName, userData: JSONValue?)
  case endEvent(String?, userData: JSONValue?)
  case breakEvent(String?, userData: JSONValue?)
  /// An event of its own.
  case event(TuyaEventType, String?, data: JSONValue?, userData: JSONValue?)
  /// Data of the event that is open.
  case text(String, TuyaChannelName, userData: JSONValue?)
  case image([UInt8], TuyaImageFormat, TuyaChannelName, userData: JSONValue?)
  case file(path: String, name: String?, TuyaChannelName, userData: JSONValue?)
  /// The answer to the call of a tool.
  case toolResult(id: JSONValue, JSONValue)

  /// The names of the commands.
  enum Name: String, Sendable, Hashable, CaseIterable {
    case queryAgentToken, createSession, closeSession, sendEventStart, sendEventPayloadsEnd, sendEventEnd,
      sendEventChatBreak, eventTrigger, updateContext, sendText, sendImage, sendFile, mcpResult
  }

  /// The longest id of an event or a session, in bytes. The vendor's clients use up to 45.
  static let mostIDBytes = 128

  /// Reads a command.
  /// - Parameters:
  ///   - name: of the command.
  ///   - payload: its members, under the vendor's names.
  ///   - terms: the channels there are.
  init(_ name: Name, _ payload: JSONValue, _ terms: TuyaTerms) throws(DialogError) {
    let form = TuyaOrderForm(payload.isNull ? .object([]) : payload, name)
    guard form.json.members != nil else { throw form.problem("the payload must be an object") }
    let userData = try form.object("userDatas")
    switch name {
    case .queryAgentToken: self = .queryToken(isNew: try form.bool("new") ?? false)
    case .createSession:
      do throws(JSONFormProblem) {
        self = .createSession(try TuyaBeginning(payload.isNull ? nil : payload, in: nil))
      } catch { throw form.problem("\(error)") }
    case .closeSession:
      let code = try form.integer("code") ?? Int(TuyaStatus.ok.rawValue)
      guard let code = UInt16(exactly: code) else { throw form.problem("\"code\" must be from 0 to 65535") }
      self = .closeSession(TuyaStatus(rawValue: code))
    case .sendEventStart: self = .startEvent(try form.id(), userData: userData)
    case .sendEventPayloadsEnd:
      self = .endPayloads(try form.id(), try form.channel("dataChannel", nil, terms), userData: userData)
    case .sendEventEnd: self = .endEvent(try form.id(), userData: userData)
    case .sendEventChatBreak: self = .breakEvent(try form.id(), userData: userData)
    case .eventTrigger:
      self = .event(.trigger, try form.id(), data: try form.data(), userData: userData)
    case .updateContext:
      self = .event(.updateContext, try form.id(), data: try form.data(), userData: userData)
    case .sendText:
      let text = try form.string("text") ?? ""
      guard !text.isEmpty else { throw form.problem("the \"text\" is empty", .invalidPacket) }
      try TuyaQuestion.check(text)
      self = .text(text, try form.channel("channel", .text, terms), userData: userData)
    case .sendImage: self = try Self.image(form, terms, userData)
    case .sendFile:
      let channel = try form.channel("channel", .file, terms)
      self = .file(path: try form.path(), name: try form.string("name"), channel, userData: userData)
    case .mcpResult:
      guard let id = payload["id"], !id.isNull else { throw form.problem("\"id\" must be that of the call") }
      self = .toolResult(id: id, payload)
    }
  }

  private static func image(
    _ form: TuyaOrderForm, _ terms: TuyaTerms, _ userData: JSONValue?
  ) throws(DialogError) -> TuyaOrder {
    let channel = try form.channel("channel", .image, terms, orKind: .video)
    guard let text = try form.string("base64") else {
      return .file(path: try form.path(), name: nil, channel, userData: userData)
    }
    let (bytes, format) = try TuyaPicture.read(base64: text)
    return .image(bytes, format, channel, userData: userData)
  }

  /// The `id` of an event or a session is fit for the wire.
  static func isID(_ id: String) -> Bool {
    !id.isEmpty && id.utf8.count <= mostIDBytes && id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }
}

/// Reads the members of a command's payload, with the vendor's codes.
private struct TuyaOrderForm {
  let json: JSONValue
  private let name: TuyaOrder.Name

  init(_ json: JSONValue, _ name: TuyaOrder.Name) {
    self.json = json
    self.name = name
  }

  func problem(_ text: String, _ code: TuyaErrorCode = .invalidParameter) -> DialogError {
    .tuya(code, "\"\(name.rawValue)\": \(text)", scope: .command)
  }

  private func value(_ member: String) -> JSONValue? { json[member].flatMap { $0.isNull ? nil : $0 } }

  func string(_ member: String) throws(DialogError) -> String? {
    guard let value = value(member) else { return nil }
    guard let text = value.string else { throw problem("\"\(member)\" must be a string") }
    return text
  }

  func bool(_ member: String) throws(DialogError) -> Bool? {
    guard let value = value(member) else { return nil }
    guard let result = value.bool else { throw problem("\"\(member)\" must be true or false") }
    return result
  }

  func integer(_ member: String) throws(DialogError) -> Int? {
    guard let value = value(member) else { return nil }
    guard let result = value.integer else { throw problem("\"\(member)\" must be an integer") }
    return result
  }

  func object(_ member: String) throws(DialogError) -> JSONValue? {
    guard let value = value(member) else { return nil }
    guard value.members != nil else { throw problem("\"\(member)\" must be an object") }
    return value
  }

  /// The id of the event; nil: none is named.
  func id() throws(DialogError) -> String? {
    guard let id = try string("eventId") else { return nil }
    guard !id.isEmpty else { throw problem("\"eventId\" is empty", .invalidEvent) }
    guard TuyaOrder.isID(id) else {
      throw problem("\"eventId\" must have 1 to 128 visible ASCII characters")
    }
    return id
  }

  func path() throws(DialogError) -> String {
    guard let path = try string("path"), !path.isEmpty else { throw problem("\"path\" must name a file") }
    guard !path.utf8.contains(0) else { throw problem("\"path\" contains a zero byte") }
    return path
  }

  /// The data of an event: `data`, or everything that is not for the node.
  func data() throws(DialogError) -> JSONValue {
    if let data = try object("data") { return data }
    let rest = (json.members ?? []).filter {
      !["data", "eventId", "sessionId", "userDatas"].contains($0.name)
    }
    guard !rest.isEmpty else { throw problem("\"data\" is missing; it must be an object") }
    return .object(rest)
  }

  /// A channel by its name: the kind, and a number from 0 where there are several, such as `image1`.
  /// - Parameters:
  ///   - kind: that it has to have; nil: any.
  ///   - other: another kind that it may have.
  func channel(
    _ member: String, _ kind: TuyaDataKind?, _ terms: TuyaTerms, orKind other: TuyaDataKind? = nil
  ) throws(DialogError) -> TuyaChannelName {
    guard let name = try string(member), !name.isEmpty else {
      guard let kind else { throw problem("\"\(member)\" is missing", .invalidChannel) }
      guard let channel = terms.channel(kind) else { throw problem(Self.noChannel(kind), .invalidChannel) }
      guard channel.index == nil else {
        throw problem("there are several channels for \(kind.rawValue); name one", .invalidChannel)
      }
      return channel
    }
    guard let channel = TuyaChannelName(name), channel.kind == kind ?? channel.kind || channel.kind == other
    else {
      throw problem("\"\(member)\" must be a channel such as \(kind?.rawValue ?? "audio")", .invalidChannel)
    }
    let count = terms.sends.count { $0 == channel.kind }
    guard count > 0 else { throw problem(Self.noChannel(channel.kind), .invalidChannel) }
    guard channel.index ?? 0 < count, count == 1 || channel.index != nil else {
      throw problem(
        "there are \(count) channels for \(channel.kind.rawValue), numbered from 0; name one", .invalidChannel
      )
    }
    return count == 1 ? TuyaChannelName(channel.kind) : channel
  }

  static func noChannel(_ kind: TuyaDataKind) -> String { "the agent takes no \(kind.rawValue)" }
}

extension TuyaChannelName {
  /// Reads a name such as `image` or `image1`.
  init?(_ name: String) {
    let word = name.prefix { !$0.isNumber }
    guard let kind = TuyaDataKind(rawValue: String(word)) else { return nil }
    let digits = name.dropFirst(word.count)
    guard digits.isEmpty || digits.utf8.count <= 3 && digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
    else {
      return nil
    }
    self.init(kind, Int(digits))
  }

  /// As a program names it.
  var text: String { kind.rawValue + (index.map(String.init) ?? "") }
}

extension TuyaTerms {
  /// The first channel for a kind of data; nil: the agent takes none.
  func channel(_ kind: TuyaDataKind) -> TuyaChannelName? {
    switch sends.count(where: { $0 == kind }) {
    case 0: nil
    case 1: TuyaChannelName(kind)
    default: TuyaChannelName(kind, 0)
    }
  }

  /// What a program learns of them.
  var json: JSONValue {
    .object([
      "bizCode": .integer(Int(bizCode)), "bizTag": .number(String(bizTag)),
      "sendData": .array(sends.map { .string($0.rawValue) }),
      "revData": .array(receives.map { .string($0.rawValue) }),
    ])
  }
}

/// Pictures of questions.
enum TuyaPicture {
  /// The largest picture to the agent, in bytes. Source: 1 MB, the limit of the vendor's app.
  static let mostBytes = 1_000_000

  /// Decodes a picture, and tells its format by its first bytes.
  static func read(base64 text: String) throws(DialogError) -> ([UInt8], TuyaImageFormat) {
    guard let bytes = Base64.decode(text), !bytes.isEmpty else {
      throw .tuya(.invalidPacket, "an image must be standard Base64 with padding", scope: .command)
    }
    guard let format = TuyaImageFormat(of: bytes) else {
      throw .tuya(.invalidPacket, "an image must be JPEG or PNG", scope: .command)
    }
    try check(size: bytes.count)
    return (bytes, format)
  }

  /// Checks how large a picture to the agent is.
  /// - Throws: code 39008: it is too large.
  static func check(size count: Int) throws(DialogError) {
    guard count <= mostBytes else {
      throw .tuya(
        .invalidPacket, "the image has \(count) bytes, and may have \(mostBytes); scale it down",
        scope: .command)
    }
  }
}

/// What `begin` and `createSession` say about the next session.
struct TuyaBeginning: Sendable, Hashable {
  /// Its id; nil: as the rules say.
  var session: String?
  /// It shares its channels; nil: as the rules say.
  var isShared: Bool?
  /// Further user data.
  var userData: JSONValue?

  init() {}

  /// Reads the `values` of `begin`, or the payload of `createSession`.
  /// - Parameter member: whose value it is in the command, for messages; nil: the payload, whose members are named alone.
  init(_ values: JSONValue?, in member: String? = "values") throws(JSONFormProblem) {
    guard let values else { return }
    let form = JSONForm(values, at: member ?? "")
    for member in values.members ?? [] {
      switch member.name {
      case "session", "sessionId":
        guard !member.value.isNull else { continue }
        let id = try form.string(member.name)
        guard TuyaOrder.isID(id) else {
          throw form.problem(member.name, "must have 1 to 128 visible ASCII characters")
        }
        session = id
      case "shares", "reuseDataChannel": isShared = try form.bool(member.name)
      case "userDatas": userData = try form.object(member.name).json
      default:
        throw form.problem(
          member.name,
          form.path.isEmpty
            ? "is not known; known are \"sessionId\", \"reuseDataChannel\" and \"userDatas\""
            : "cannot be changed here; \"values\" may have \"session\", \"shares\" and \"userDatas\"")
      }
    }
  }
}
