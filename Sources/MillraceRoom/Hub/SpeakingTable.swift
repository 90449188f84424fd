internal import MillraceCore
internal import MillraceRoomWire

/// Who speaks in each room, told when it changes, but not more often than members are told.
struct SpeakingTable: Sendable {
  private struct State: Sendable {
    var told: [RoomLevel]
    var toldAt: Nanoseconds
    /// What has changed since then.
    var waiting: [RoomLevel]?
  }

  /// Documentation/room.md, push `speaking`: at most every 200 ms.
  static let interval: Nanoseconds = 200_000_000

  private var states: [RoomName: State] = [:]
  private var due = Deadlines<RoomName>()

  var count: Int { states.count }
  var deadline: Nanoseconds? { due.next }

  /// Takes who speaks in a room; returns it if it is to be told now.
  mutating func take(_ levels: [RoomLevel], in room: RoomName, at now: Nanoseconds) -> [RoomLevel]? {
    guard var state = states[room] else {
      guard !levels.isEmpty else { return nil }
      states[room] = State(told: levels, toldAt: now)
      return levels
    }
    if levels == state.told {
      state.waiting = nil
      states[room] = state
      due.remove(room)
      return nil
    }
    guard now - state.toldAt < Self.interval else {
      states[room] = State(told: levels, toldAt: now)
      due.remove(room)
      return levels
    }
    state.waiting = levels
    states[room] = state
    due.set(room, state.toldAt + Self.interval)
    return nil
  }

  /// What is to be told by now.
  mutating func popDue(at now: Nanoseconds) -> (room: RoomName, levels: [RoomLevel])? {
    guard let room = due.popDue(at: now), let levels = states[room]?.waiting else { return nil }
    states[room] = State(told: levels, toldAt: now)
    return (room, levels)
  }

  /// Forgets a room that has ended.
  mutating func remove(_ room: RoomName) {
    states[room] = nil
    due.remove(room)
  }
}
