internal import MillraceDoubles
internal import MillraceJSON

/// What a client creates a session with.
struct SessionOpening: Sendable {
  var id: String
  var token: String?
  var bizCode: UInt64?
  var bizTag: UInt64?
  var lists: ChannelLists
  var userData: CloudUserData

  init(_ packet: CloudPacket, isV1: Bool) throws(WireFault) {
    id = packet.text(AttributeID.sessionID) ?? ""
    token = packet.text(AttributeID.agentToken)
    bizCode = packet.number(AttributeID.bizCode)
    bizTag = packet.number(AttributeID.bizTag)
    lists = try ChannelLists(packet.payload)
    userData = try CloudUserData(packet, isV1: isV1)
  }

  /// As the report keeps it, without the token.
  var json: JSONValue {
    .object([
      "session": .string(id), "bizCode": bizCode.map { .integer(Int($0)) },
      "sends": .array(lists.sends.map { .integer(Int($0)) }),
      "receives": .array(lists.receives.map { .integer(Int($0)) }), "sessionAttributes": userData.session,
    ])
  }

  /// Why the session cannot be created; nil: it can.
  func problem(_ others: [DoubleSession], _ scenario: TuyaMembers) -> Violation? {
    if id.isEmpty { return Violation("missingAttribute", "SessionNew has no attribute 43 (session id)") }
    if others.contains(where: { $0.id == id }) {
      return Violation("sameSession", "a session with this id exists on the connection")
    }
    guard bizCode == UInt64(scenario.bizCode) else {
      return Violation("wrongBizCode", "attribute 41 is not the business code of the token")
    }
    return listProblem(scenario) ?? conflict(others)
  }

  private func listProblem(_ scenario: TuyaMembers) -> Violation? {
    let (sends, receives) = (lists.sends, lists.receives)
    guard !sends.isEmpty, !receives.isEmpty else {
      return Violation("channelIDs", "a session lists what it sends and what it receives")
    }
    guard Set(sends + receives).count == sends.count + receives.count else {
      return Violation("channelIDs", "a data id is listed twice")
    }
    guard sends.count <= scenario.sendData.count, receives.count <= scenario.revData.count else {
      return Violation("channelIDs", "more data ids than the token names")
    }
    for id in sends where id % 2 == 0 {
      return Violation("channelIDs", "data id \(id) cannot be sent on: those are odd")
    }
    for id in receives where id % 2 != 0 || id == 0 {
      return Violation("channelIDs", "data id \(id) cannot be received on: those are even")
    }
    for (id, word) in zip(sends, scenario.sendData)
    where DataKind.reserved[id].map({ $0.rawValue != word }) ?? false {
      return Violation("channelIDs", "data id \(id) is reserved for another kind of data than \(word)")
    }
    return nil
  }

  /// Down packets name no session: their data id has to tell.
  private func conflict(_ others: [DoubleSession]) -> Violation? {
    let taken = Set(others.flatMap { $0.channels.receives.values })
    for id in lists.receives where taken.contains(id) {
      return Violation("channelTaken", "another session of the connection receives on data id \(id)")
    }
    let sending = Set(others.flatMap { $0.channels.sends.keys })
    for id in lists.sends where DataKind.reserved[id] == nil && sending.contains(id) {
      return Violation(
        "channelTaken", "another session sends on data id \(id), which is not reserved for sharing")
    }
    return nil
  }
}

/// The data ids of a session, with their kinds.
struct SessionChannels: Sendable {
  var sends: [UInt16: DataKind] = [:]
  var receives: [DataKind: UInt16] = [:]

  init(_ lists: ChannelLists, _ scenario: TuyaMembers) {
    for (id, word) in zip(lists.sends, scenario.sendData) { sends[id] = DataKind(rawValue: word) }
    for (id, word) in zip(lists.receives, scenario.revData) {
      if let kind = DataKind(rawValue: word), receives[kind] == nil { receives[kind] = id }
    }
  }
}
