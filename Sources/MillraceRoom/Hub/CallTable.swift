internal import MillraceCore
internal import MillraceRoomWire

/// One end of a call: a connection, and who is there.
struct RoomCallEnd: Sendable, Hashable {
  let connection: RoomConnectionID
  let user: RoomName
  let displayName: String
}

/// The calls of a hub, from the first ring to the end.
///
/// ```
/// call ─▸ ringing ─▸ accepted ─▸ ended
///   │        └▸ rejected, ended (hung up, nobody left, nobody answered)
///   └▸ busy
/// ```
///
/// A user is in one call at a time. A call rings at all connections of a user: the first that answers has it, and for the others it ends
/// with the reason `elsewhere`. A user who is in a room can be called all the same.
struct CallTable: Sendable {
  private struct Call: Sendable {
    let id: RoomName
    let caller: RoomCallEnd
    let callee: RoomName
    /// Where it rings; empty when it was answered.
    var ringing: [RoomConnectionID]
    /// Who has accepted it.
    var answerer: RoomCallEnd?

    /// All connections that know of the call.
    var connections: [RoomConnectionID] {
      [caller.connection] + ringing + (answerer.map { [$0.connection] } ?? [])
    }
  }

  /// Reasons of `ended` that are not a user's words.
  private enum Reason {
    static let elsewhere = "elsewhere"
    static let timeout = "timeout"
  }

  private let timeout: Nanoseconds
  private var calls: [RoomName: Call] = [:]
  /// The call of each user who is in one.
  private var active: [RoomName: RoomName] = [:]
  private var due = Deadlines<RoomName>()

  init(_ settings: RoomHubSettings) { timeout = Nanoseconds(settings.ringingSeconds) * 1_000_000_000 }

  var count: Int { calls.count }
  var deadline: Nanoseconds? { due.next }

  func contains(_ call: RoomName) -> Bool { calls[call] != nil }

  // MARK: Requests

  /// Begins a call, or tells the caller that the other end is busy.
  mutating func begin(
    _ id: RoomName, from caller: RoomCallEnd, _ request: RoomCallRequest, at targets: [RoomConnectionID],
    now: Nanoseconds, _ output: inout RoomOutput
  ) throws(RoomError) {
    guard request.user != caller.user else { throw RoomError(.forbidden, "a user cannot call itself") }
    guard active[caller.user] == nil else {
      throw RoomError(.forbidden, "this user is in a call; hang up first")
    }
    guard !targets.isEmpty else { throw RoomError(.notFound, "no user of this name can be called") }
    guard active[request.user] == nil else {
      output.push(.call(RoomCallChange(id, .busy, user: request.user)), to: caller.connection)
      return
    }
    calls[id] = Call(id: id, caller: caller, callee: request.user, ringing: targets)
    active[caller.user] = id
    active[request.user] = id
    due.set(id, now + timeout)
    let incoming = RoomCallChange(
      id, .incoming, user: caller.user, name: caller.displayName, media: request.media, text: request.text)
    output.push(.call(incoming), to: targets)
    output.push(.call(RoomCallChange(id, .ringing, user: request.user)), to: caller.connection)
  }

  /// Accepts or rejects a call that rings at the connection.
  /// - Parameter room: where both ends are to meet.
  mutating func answer(
    _ answer: RoomCallAnswer, by end: RoomCallEnd, room: RoomName, _ output: inout RoomOutput
  ) throws(RoomError) {
    guard var call = calls[answer.call], call.ringing.contains(end.connection) else {
      throw RoomError(.notFound, "no call of this id rings here")
    }
    let others = call.ringing.filter { $0 != end.connection }
    let elsewhere = RoomCallChange(call.id, .ended, user: call.caller.user, reason: Reason.elsewhere)
    guard answer.isAccepted else {
      let change = RoomCallChange(
        call.id, .rejected, user: end.user, name: end.displayName, text: answer.text)
      forget(call)
      output.push(.call(change), to: call.caller.connection)
      return output.push(.call(elsewhere), to: others)
    }
    (call.ringing, call.answerer) = ([], end)
    calls[call.id] = call
    due.remove(call.id)
    let toCaller = RoomCallChange(
      call.id, .accepted, user: end.user, name: end.displayName, text: answer.text, room: room)
    output.push(.call(toCaller), to: call.caller.connection)
    let toAnswerer = RoomCallChange(
      call.id, .accepted, user: call.caller.user, name: call.caller.displayName, room: room)
    output.push(.call(toAnswerer), to: end.connection)
    output.push(.call(elsewhere), to: others)
  }

  /// Ends a call that the connection knows of. One that rings there is rejected by it.
  mutating func hangUp(
    _ id: RoomName, by end: RoomCallEnd, reason: String?, _ output: inout RoomOutput
  ) throws(RoomError) {
    guard let call = calls[id], call.connections.contains(end.connection) else {
      throw RoomError(.notFound, "no call of this id is here")
    }
    forget(call)
    let change = RoomCallChange(id, .ended, user: end.user, name: end.displayName, reason: reason)
    output.push(.call(change), to: call.connections.filter { $0 != end.connection })
  }

  // MARK: Ends that nobody asked for

  /// A connection is gone, or its user has logged out. Where the call rings elsewhere too, it goes on.
  mutating func leave(_ end: RoomCallEnd, reason: RoomLeaveReason, _ output: inout RoomOutput) {
    guard var call = active[end.user].flatMap({ calls[$0] }), call.connections.contains(end.connection) else {
      return
    }
    if call.ringing.count > 1, call.ringing.contains(end.connection) {
      call.ringing.removeAll { $0 == end.connection }
      calls[call.id] = call
      return
    }
    forget(call)
    let change = RoomCallChange(
      call.id, .ended, user: end.user, name: end.displayName, reason: reason.rawValue)
    output.push(.call(change), to: call.connections.filter { $0 != end.connection })
  }

  /// Ends calls that nobody has answered.
  mutating func run(at now: Nanoseconds, _ output: inout RoomOutput) {
    while let id = due.popDue(at: now) {
      guard let call = calls[id] else { continue }
      forget(call)
      output.push(.call(RoomCallChange(id, .ended, reason: Reason.timeout)), to: call.connections)
    }
  }

  /// Forgets all calls, and tells nobody.
  mutating func removeAll() {
    for call in calls.values { forget(call) }
  }

  private mutating func forget(_ call: Call) {
    calls[call.id] = nil
    active[call.caller.user] = nil
    active[call.callee] = nil
    due.remove(call.id)
  }
}
