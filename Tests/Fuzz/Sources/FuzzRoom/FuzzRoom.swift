import MillraceJSON
import MillraceRoomWire

/// Feeds arbitrary bytes to the readers of the room wire: as a request of a member, and as a message of a hub.
///
/// None may crash. A problem has one of the names that its kind allows, a text, and an id within its bounds. What was read is the same
/// after it was written and read again, and is written the same a second time. A request, and what a hub passes on of it, fits into a
/// message.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRoom(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  checkRequest(bytes)
  checkHubMessage(bytes)
  return 0
}

private func check(_ problem: RoomReadProblem, _ names: Set<RoomErrorName>) {
  if !names.contains(problem.name) || problem.text.isEmpty { fatalError("a problem: \(problem)") }
  if let id = problem.id, !RoomLimits.ids.contains(id) { fatalError("the id \(id)") }
}

private func checkSize(_ bytes: [UInt8]) {
  if bytes.count > RoomLimits.messageBytes { fatalError("\(bytes.count) bytes are written") }
}

// MARK: - Requests

private func checkRequest(_ bytes: [UInt8]) {
  let request: RoomRequest
  do throws(RoomReadProblem) { request = try RoomRequest(parsing: bytes) } catch {
    return check(error, [.badMessage, .unknownOp, .badPayload, .unknownVersion])
  }
  if !RoomLimits.ids.contains(request.id) { fatalError("the id \(request.id)") }
  let written = request.bytes
  checkSize(written)
  do throws(RoomReadProblem) {
    let again = try RoomRequest(parsing: written)
    if again != request || again.bytes != written {
      fatalError("a request reads back differently: \(request)")
    }
  } catch {
    fatalError("a request that was written is refused: \(error)")
  }
  if let push = passedOn(request.operation) {
    checkSize(push.bytes)
    checkAgain(push)
  }
}

/// The push that a hub makes of an operation, from a peer with the longest name.
private func passedOn(_ operation: RoomOperation) -> RoomPush? {
  guard let peer = RoomName(String(repeating: "p", count: RoomLimits.nameCharacters)) else {
    fatalError("a name is refused")
  }
  switch operation {
  case .sdp(let description, _): return .sdp(description, from: peer)
  case .candidate(let candidate, _): return .candidate(candidate, from: peer)
  case .control(let command, _): return .control(command, from: peer)
  case .data(let data, _): return .data(data, from: peer)
  case .message(let text, _): return .message(text, from: peer)
  case .file(let file): return .file(file, id: peer, from: peer)
  case .kick(_, let text), .close(let text): return .kicked(.removed, text: text)
  default: return nil
  }
}

// MARK: - Messages of a hub

private func checkHubMessage(_ bytes: [UInt8]) {
  let message: RoomHubMessage
  do throws(RoomReadProblem) { message = try RoomHubMessage(parsing: bytes) } catch {
    return check(error, [.badMessage, .badPayload])
  }
  switch message {
  case .push(let push): checkAgain(push)
  case .answer(let answer): checkAgain(answer)
  }
}

private func checkAgain(_ push: RoomPush) {
  let written = push.bytes
  do throws(RoomReadProblem) {
    let again = try RoomPush(parsing: written)
    if again != push || again.bytes != written { fatalError("a push reads back differently: \(push)") }
  } catch {
    fatalError("a push that was written is refused: \(error)")
  }
}

private func checkAgain(_ answer: RoomAnswer) {
  let written = answer.bytes
  do throws(RoomReadProblem) {
    let again = try RoomAnswer(parsing: written)
    if again != answer || again.bytes != written { fatalError("an answer reads back differently: \(answer)") }
  } catch {
    fatalError("an answer that was written is refused: \(error)")
  }
  checkPayload(answer, RoomLoggedIn.self)
  checkPayload(answer, RoomJoined.self)
  checkPayload(answer, RoomRoleChanged.self)
  checkPayload(answer, RoomDescription.self)
  checkPayload(answer, RoomCalling.self)
  checkPayload(answer, RoomFileTicket.self)
}

private func checkPayload<Payload: RoomPayload>(_ answer: RoomAnswer, _ type: Payload.Type) {
  let payload: Payload
  do throws(RoomError) { payload = try answer.payload(type) } catch {
    if case .success = answer.result, error.name != .badPayload || error.text.isEmpty {
      fatalError("a problem: \(error)")
    }
    return
  }
  do throws(RoomError) {
    if try RoomAnswer(answer.id, payload).payload(type) != payload {
      fatalError("a payload reads back differently: \(payload)")
    }
  } catch {
    fatalError("a payload that was written is refused: \(error)")
  }
}
