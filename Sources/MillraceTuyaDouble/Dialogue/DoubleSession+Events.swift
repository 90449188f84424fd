internal import MillraceDoubles
internal import MillraceJSON

/// The client's events.
extension DoubleSession {
  /// Ids that are remembered: a double may run for days.
  private static let mostIDs = 10_000

  func take(_ event: CloudEvent) {
    double.note("> \(event.known.map { "\($0)" } ?? "event \(event.type)")")
    if event.id.isEmpty { return double.violate("noEventID", "event \(event.type) has no id (attribute 61)") }
    switch event.known {
    case .start: start(event)
    case .payloadsEnd: endPayloads(event)
    case .end: end(event)
    case .chatBreak: breakOff(event)
    case .mcpCommand: takeAnswer(event)
    case .updateContext: _ = json(of: event)
    case .eventTrigger:
      guard json(of: event) != nil else { return }
      turn = double.nextTurn()
      answer(event.id)
    case .oneShot, .clearDataCache: break
    case .serverVAD, .serverTimeover, .eventSleep:
      double.violate("wrongDirection", "event \(event.type) is the cloud's")
    case nil: break
    }
  }

  func know(_ id: String) {
    if knownIDs.count >= Self.mostIDs { knownIDs = [] }
    knownIDs.insert(id)
  }

  private func start(_ event: CloudEvent) {
    guard !events.contains(where: { $0.id == event.id }) else {
      return double.violate("sameEvent", "an event with this id is open")
    }
    guard !knownIDs.contains(event.id) else {
      return double.violate("usedEvent", "the id of an event was used before")
    }
    if let problem = problem(event.userData) { double.violate("badAttributes", problem) }
    let made = OpenEvent(event.id, event.userData.chat, isV1: connection.isV1)
    if let other = events.first(where: { !$0.isLong }), !made.isLong {
      double.violate(
        "secondEvent", "an event began before \(other.isEmpty ? "an empty" : "the") one before it was over")
    }
    if !made.isLong && !events.contains(where: \.isLong) && stage != .idle { silence() }
    isAsleep = false
    events.append(made)
  }

  private func problem(_ data: CloudUserData) -> String? {
    guard let chat = data.chat else { return nil }
    guard let members = chat.members else { return "chatAttributes is not an object" }
    let names = ["asr.enableVad", "processing.interrupt"]
    for member in members where names.contains(member.name) && member.value.bool == nil {
      return "\(member.name) is true or false"
    }
    return nil
  }

  private func endPayloads(_ event: CloudEvent) {
    guard let index = find(event) else { return }
    guard let channel = event.userData.payloadsEnd else {
      return double.violate("noChannel", "PayloadsEnd names no data id (attribute 1002)")
    }
    guard channels.sends[channel] != nil else {
      return double.violate(
        "unknownChannel", "PayloadsEnd of data id \(channel), which the session has not listed")
    }
    if events[index].openChannels.contains(channel) {
      double.violate("streamOpen", "PayloadsEnd of data id \(channel), whose stream has not ended")
    }
    events[index].end(channel)
  }

  private func end(_ event: CloudEvent) {
    guard let index = find(event) else { return }
    let made = events.remove(at: index)
    know(made.id)
    for channel in made.openChannels {
      double.violate("streamOpen", "the event ended, and the stream on data id \(channel) has not")
    }
    if made.isLong { return }
    guard !made.isEmpty else {
      double.violate("emptyEvent", "an event ended without any data")
      return send(.end, made.id)
    }
    if made.hasSound && !made.hasEndedByVAD {
      recognise(made.id)
    } else if !made.hasSound {
      turn = double.nextTurn()
    }
    answer(made.id, isSpoken: made.hasSound)
  }

  /// The client breaks an event or a reply off.
  private func breakOff(_ event: CloudEvent) {
    let isReply = stage != .idle && event.id == round
    if let index = events.firstIndex(where: { $0.id == event.id }) {
      let made = events.remove(at: index)
      know(made.id)
      // The replies of a long event end with it.
      if made.isLong, stage != .idle { return silence() }
      if hearing == made.id { hearing = "" }
      return
    }
    guard isReply || knownIDs.contains(event.id) else {
      return double.violate("noEvent", "ChatBreak of an event that does not exist")
    }
    if isReply { silence() }
  }

  /// Stops the reply without a word.
  func silence() {
    double.observer.interrupted?()
    plan += 1
    stage = .idle
  }

  /// The place of the event; nil, and a violation: it is not open.
  private func find(_ event: CloudEvent) -> Int? {
    if let index = events.firstIndex(where: { $0.id == event.id }) { return index }
    double.violate(
      "noEvent", "\(event.known.map { "\($0)" } ?? "\(event.type)") of an event that is not open")
    return nil
  }

  // MARK: Tools and context

  private func json(of event: CloudEvent) -> JSONValue? {
    do throws(JSONProblem) { return try JSONValue(parsing: event.data) } catch {
      double.violate("badEventData", "the data of event \(event.type) is not JSON")
      return nil
    }
  }

  /// The client's answer to a request, JSON-RPC 2.0.
  private func takeAnswer(_ event: CloudEvent) {
    guard let answer = json(of: event) else { return }
    guard answer["jsonrpc"]?.string == "2.0", (answer["result"] != nil) != (answer["error"] != nil) else {
      return double.violate("badAnswer", "a tool's answer is JSON-RPC 2.0, with either a result or an error")
    }
    guard let id = answer["id"], toolRequests.remove(id.text) != nil else {
      return double.violate("unaskedAnswer", "a tool's answer without its request")
    }
    double.note("> answer \(answer["result"] != nil ? "result" : "error")")
  }

  /// Asks the client's tools.
  func askTools() {
    for request in turn.mcp {
      guard case .object(var members) = request else { continue }
      if request["jsonrpc"] == nil { members.insert(JSONValue.Member("jsonrpc", "2.0"), at: 0) }
      if let id = request["id"] { toolRequests.insert(id.text) }
      send(.mcpCommand, round, data: .object(members))
    }
  }
}
