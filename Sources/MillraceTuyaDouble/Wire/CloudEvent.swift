internal import MillraceJSON

/// A type of event.
enum EventType: UInt16, Sendable, Hashable {
  case start, payloadsEnd, end, oneShot, chatBreak, serverVAD, clearDataCache
  case mcpCommand = 1_000
  case serverTimeover, updateContext, eventTrigger, eventSleep
}

/// An event packet.
struct CloudEvent: Sendable, Hashable {
  var type: UInt16
  var session: String
  var id: String
  var time: UInt64?
  var data: [UInt8] = []
  var userData = CloudUserData()

  var known: EventType? { EventType(rawValue: type) }

  init(_ type: EventType, session: String, id: String) {
    self.type = type.rawValue
    self.session = session
    self.id = id
  }

  init(_ packet: CloudPacket, isV1: Bool) throws(WireFault) {
    var cursor = ByteCursor(packet.payload)
    guard let type = cursor.int(2) else { throw WireFault(.eventHead, "an event without its type") }
    if isV1 {
      // A client of the vendor writes the length with its bytes exchanged, which reads as 0 for a short text.
      guard cursor.int(2) != nil else {
        throw WireFault(.eventHead, "an event without the length of its data")
      }
    }
    self.type = UInt16(type)
    session = packet.text(AttributeID.sessionID) ?? ""
    id = packet.text(AttributeID.eventID) ?? ""
    time = packet.number(AttributeID.eventTime)
    data = cursor.rest()
    userData = try CloudUserData(packet, isV1: isV1)
  }

  func packet(isV1: Bool) -> CloudPacket {
    var attributes = [
      CloudAttribute(AttributeID.sessionID, session), CloudAttribute(AttributeID.eventID, id),
    ]
    if let time { attributes.append(CloudAttribute(AttributeID.eventTime, number: time)) }
    attributes += userData.attributes(isV1: isV1)
    var payload: [UInt8] = []
    payload.append(type, bytes: 2)
    if isV1 { payload.append(data.count, bytes: 2) }
    return CloudPacket(PacketType.event, attributes, payload: payload + data)
  }
}

/// User data of a session or event: JSON in v21, a list of attributes in v1.
struct CloudUserData: Sendable, Hashable {
  var session: JSONValue?
  var chat: JSONValue?
  var breaks: JSONValue?
  /// The channel that has ended.
  var payloadsEnd: UInt16?
  /// Members that have another name.
  var others: [String] = []

  init() {}

  init(_ packet: CloudPacket, isV1: Bool) throws(WireFault) {
    payloadsEnd = packet.number(AttributeID.payloadsEnd).flatMap { UInt16(exactly: $0) }
    guard let bytes = packet.bytes(of: AttributeID.userData), !bytes.isEmpty else { return }
    if isV1 { try readList(bytes) } else { try readJSON(bytes) }
  }

  private static func json(_ bytes: [UInt8]) throws(WireFault) -> JSONValue {
    do throws(JSONProblem) { return try JSONValue(parsing: bytes) } catch {
      throw WireFault(.badUserData, "\(error)")
    }
  }

  private mutating func readJSON(_ bytes: [UInt8]) throws(WireFault) {
    guard let members = try Self.json(bytes).members else {
      throw WireFault(.badUserData, "the user data is not an object")
    }
    for member in members {
      // Some clients send the attributes as a text, others as an object.
      let value = try member.value.string.map { text throws(WireFault) in try Self.json(Array(text.utf8)) }
      switch member.name {
      case "sessionAttributes": session = value ?? member.value
      case "chatAttributes": chat = value ?? member.value
      case "breakAttributes": breaks = value ?? member.value
      default: others.append(member.name)
      }
    }
  }

  private mutating func readList(_ bytes: [UInt8]) throws(WireFault) {
    var cursor = ByteCursor(bytes)
    while cursor.left > 0 {
      guard let id = cursor.int(2), let kind = cursor.int(1), let count = cursor.int(4),
        let value = cursor.take(count)
      else { throw WireFault(.badUserData, "an attribute is longer than the user data") }
      switch UInt16(id) {
      case AttributeID.payloadsEnd where count == 2: payloadsEnd = UInt16(value[0]) << 8 | UInt16(value[1])
      case AttributeID.sessionAttributes: session = try Self.json(value)
      // With kind 1 it is a number, whose meaning is not known.
      case AttributeID.chatAttributes where kind == 6: chat = try Self.json(value)
      case AttributeID.breakAttributes: breaks = try Self.json(value)
      default: others.append("\(id)")
      }
    }
  }

  func attributes(isV1: Bool) -> [CloudAttribute] {
    let json = [
      ("sessionAttributes", AttributeID.sessionAttributes, session),
      ("chatAttributes", AttributeID.chatAttributes, chat),
      ("breakAttributes", AttributeID.breakAttributes, breaks),
    ]
    if !isV1 {
      let members = json.compactMap { name, _, value in value.map { JSONValue.Member(name, $0) } }
      let all = members.isEmpty ? [] : [CloudAttribute(AttributeID.userData, JSONValue.object(members).text)]
      return all + (payloadsEnd.map { [CloudAttribute(AttributeID.payloadsEnd, number: $0)] } ?? [])
    }
    var list: [UInt8] = []
    func add(_ id: UInt16, _ kind: UInt8, _ value: [UInt8]) {
      list.append(id, bytes: 2)
      list.append(kind)
      list.append(value.count, bytes: 4)
      list += value
    }
    if let payloadsEnd {
      add(AttributeID.payloadsEnd, 2, [UInt8(payloadsEnd >> 8), UInt8(payloadsEnd & 0xFF)])
    }
    for (_, id, value) in json { if let value { add(id, 6, value.bytes) } }
    return list.isEmpty ? [] : [CloudAttribute(AttributeID.userData, list)]
  }
}
