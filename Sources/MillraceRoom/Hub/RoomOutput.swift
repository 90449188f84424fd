internal import MillraceRoomWire

/// The actions of a hub that have not been carried out yet.
struct RoomOutput: Sendable {
  private var actions: [RoomAction] = []

  var count: Int { actions.count }

  mutating func append(_ action: RoomAction) { actions.append(action) }

  mutating func push(_ push: RoomPush, to connection: RoomConnectionID) {
    actions.append(.send(connection, push.bytes))
  }

  /// Writes the message once, for all.
  mutating func push(_ push: RoomPush, to connections: [RoomConnectionID]) {
    guard !connections.isEmpty else { return }
    send(push.bytes, to: connections)
  }

  mutating func send(_ bytes: [UInt8], to connections: [RoomConnectionID]) {
    for connection in connections { actions.append(.send(connection, bytes)) }
  }

  mutating func answer(_ answer: RoomAnswer, to connection: RoomConnectionID) {
    actions.append(.send(connection, answer.bytes))
  }

  /// Puts an answer before what follows from its request.
  mutating func answer(_ answer: RoomAnswer, to connection: RoomConnectionID, before index: Int) {
    actions.insert(.send(connection, answer.bytes), at: index)
  }

  mutating func takeAll() -> [RoomAction] {
    defer { actions.removeAll() }
    return actions
  }
}
