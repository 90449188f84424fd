internal import MillraceCore
internal import MillraceJSON

/// The input `sei` of a node that encodes pictures: messages that go with the next pictures.
struct UserDataInput {
  /// What the packets hold.
  struct Messages {
    /// The messages, and the time from which on a picture carries each.
    var messages: [(message: UserData, time: Nanoseconds)] = []
    /// What could not be understood.
    var problems: [NodeProblem] = []
  }

  /// True if a link is attached.
  let isLinked: Bool
  private let index: Int
  private let isEvent: Bool

  /// The input with this index of a node.
  init(_ setup: borrowing NodeSetup, input index: Int) {
    isLinked = setup.inputs[index].isLinked
    isEvent = setup.inputs[index].shape?.format == .event
    self.index = index
  }

  /// Takes all packets that wait.
  func take(_ ports: inout Ports) -> Messages {
    var result = Messages()
    while let packet = ports.next(index) {
      let content = packet.samples(of: UInt8.self)
      let bytes = content.indices.map { content[$0] }
      // None waits for a picture that is farther away than the next one.
      let time = min(packet.timestamp, ports.now)
      do throws(NodeProblem) {
        let message = isEvent ? try UserData(event: bytes) : try UserData(payload: bytes)
        if let message { result.messages.append((message, time)) }
      } catch { result.problems.append(error) }
    }
    return result
  }
}

extension UserData {
  /// The kind of messages that name none: an identifier of Millrace's own.
  static let ownUUID: [UInt8] = [
    0x7B, 0x1C, 0x9C, 0x1E, 0x5A, 0x0D, 0x4F, 0x7E, 0x9D, 0x3A, 0x2F, 0x0B, 0x8A, 0x6C, 0x41, 0xD7,
  ]

  /// A message to send.
  init(uuid: [UInt8] = ownUUID, payload: [UInt8]) throws(NodeProblem) {
    guard payload.count <= Self.most else {
      throw NodeProblem(
        "the message for a picture has \(payload.count) bytes", cure: "send \(Self.most) bytes or less")
    }
    self.init(uuid: uuid, payload: payload, byteCount: payload.count)
  }

  /// A message from an event `sei`, as `rtmp.pull` posts it; nil for another event.
  init?(event bytes: [UInt8]) throws(NodeProblem) {
    let cure = #"send {"event":"sei","uuid":"…","text":"…"}, or "base64" in place of "text""#
    guard let event = try? JSONValue(parsing: bytes), event.members != nil else {
      throw NodeProblem("the event is not a JSON object", cure: cure)
    }
    guard event["event"]?.string == "sei" else { return nil }
    var uuid = Self.ownUUID
    if let name = event["uuid"] {
      guard let bytes = name.string.flatMap(Self.uuid) else {
        throw NodeProblem(
          "the event's \"uuid\" is not a UUID", cure: "send 32 hexadecimal digits, with or without hyphens")
      }
      uuid = bytes
    }
    if let text = event["text"]?.string {
      try self.init(uuid: uuid, payload: Array(text.utf8))
    } else if let payload = event["base64"]?.string.flatMap(Base64.decode) {
      try self.init(uuid: uuid, payload: payload)
    } else {
      throw NodeProblem("the event has neither \"text\" nor a valid \"base64\"", cure: cure)
    }
  }

  /// The bytes of a UUID; nil if it is none.
  private static func uuid(_ text: String) -> [UInt8]? {
    let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
    guard digits.count == 32 else { return nil }
    let values = digits.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard values.count == 32 else { return nil }
    return stride(from: 0, to: 32, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) }
  }
}
