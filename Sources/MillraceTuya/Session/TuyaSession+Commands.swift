internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON

// What the program and the user ask for.
extension TuyaSession {
  // MARK: Commands

  mutating func take(_ command: DialogCommand) {
    if phase == .closed { return }
    let count = actions.count
    carryOut(command)
    // A node that takes turns by the events expects an answer to a question.
    guard phase == .listening, command.isQuestion else { return }
    if actions[count...].contains(where: { if case .refuse = $0 { true } else { false } }) {
      post(.state(.listening))
    }
  }

  private mutating func carryOut(_ command: DialogCommand) {
    if let reason = rules.refusal(of: command) { return refuse(.invalidParameter, reason) }
    switch (phase, command) {
    case (.ended, .begin), (.ended, .refreshAuth), (.ended, .mute), (.ended, .hangUp),
      (.ended, .extra("createSession", _)):
      obey(command)
    case (.ended, _): refuse(.invalidSession, "the dialogue has ended; send \"begin\" for another")
    default: obey(command)
    }
  }

  private mutating func obey(_ command: DialogCommand) {
    switch command {
    case .startSpeech: startSpeech()
    case .stopSpeech: stopSpeech()
    case .cancelSpeech: cancelSpeech()
    // No reply of this service is uninterruptible.
    case .interrupt: interrupt(by: .user)
    case .ask(let text, let images, _): ask(text, images)
    case .update(let values):
      guard values.members?.isEmpty == false else {
        return refuse(.invalidParameter, "\"update\": \"values\" must be an object that says what changes")
      }
      obey("updateContext", ["data": values])
    case .mute(.audio, let isOn, _):
      speech.isMuted = isOn
      if !isOn { wake() }
    case .mute(.video, let isOn, _): speech.isVideoMuted = isOn
    case .refreshAuth(let token): refreshAuth(token)
    case .hangUp(_, let reason): if phase != .ended { hangUp(isLate: reason == DialogCommand.timeout) }
    case .begin(let values):
      do throws(JSONFormProblem) { begin(again: try TuyaBeginning(values)) } catch {
        refuse(.invalidParameter, "\"begin\": \(error)")
      }
    case .extra(let name, let payload): obey(name, payload)
    default: break
    }
  }

  mutating func begin(again beginning: TuyaBeginning) {
    guard rules.waitsAfterEnd, !isDraining else {
      return refuse(
        .invalidParameter, "\"begin\" needs a node with \"afterEnd\": \"wait\" in a graph that does not drain"
      )
    }
    guard phase == .ended else {
      return refuse(.invalidParameter, "the dialogue has not ended; send \"hangUp\" before \"begin\"")
    }
    do throws(DialogError) { try checkSize(of: beginning, "begin") } catch {
      return actions.append(.refuse(error))
    }
    begin(beginning)
  }

  mutating func refreshAuth(_ token: String?) {
    guard let token else {
      guard isOpen else {
        return refuse(.notConnected, "there is no connection over which to ask for a token")
      }
      return queryToken(isNew: true)
    }
    do throws(DialogError) { try rules.room.check(token: token.utf8.count, creationData(beginning)) } catch {
      return actions.append(.refuse(error))
    }
    tokenBytes = token.utf8.count
    actions.append(.useCredential(token))
    if phase == .renewing {
      // The program was quicker than the answer of the provider.
      renewal = nil
      actions.append(.disconnect)
    } else if expired == nil {
      return
    }
    expired = nil
    connect()
  }

  private mutating func queryToken(isNew: Bool) {
    let number = calls.add(.token(commandID))
    send(.requestToken(number, rejectsPresent: isNew))
    if commandID != nil { actions.append(.answerLater) }
  }

  mutating func startSpeech() {
    wake()
    guard rules.mode != .duplex else { return }
    switch phase {
    case .listening:
      speech.isWanted = false
      guard terms.channel(.audio) != nil else { return refuse(.invalidChannel, "the agent takes no audio") }
      if turns.open == nil {
        send(turns.begin(makeID(), .voice, rules.startData(hasVoice: true)))
      }
      beginVoice()
      enter(.talking)
      sendHeldImage()
    case .thinking, .responding, .draining:
      // In a graph that drains nobody speaks any more.
      speech.isWanted = !isDraining
      interrupt(by: .user)
    case .talking: break
    default: speech.isWanted = !isDraining
    }
  }

  private mutating func stopSpeech() {
    speech.isWanted = false
    guard rules.mode != .duplex, phase == .talking else { return }
    endSpeech(isHeard: false)
  }

  /// Discards what is being said.
  private mutating func cancelSpeech() {
    speech.isWanted = false
    guard phase == .talking else { return }
    send(turns.breakOpen())
    endHeard()
    listen()
  }

  mutating func audioEnded() {
    speech.hasEnded = true
    switch phase {
    case .talking where rules.mode != .duplex || !rules.sendsSilenceAfterEnd: endSpeech(isHeard: false)
    case .listening:
      enter(.listening, limit: linger)
      guard rules.mode == .duplex, !rules.sendsSilenceAfterEnd else { return }
      // What was said last may not be recognised yet.
      if turns.hasVoice { endEvent() }
    default: speech.isWanted = false
    }
  }

  // MARK: Questions

  /// Where pictures of the input go.
  var pictureChannel: TuyaChannelName? {
    rules.pictures == .video ? terms.channel(.video) ?? terms.channel(.image) : terms.channel(.image)
  }

  /// The image that the endpoint holds goes with the event that is open.
  mutating func sendHeldImage() {
    guard hasHeldImage, rules.pictures == .image, let channel = pictureChannel, turns.open != nil else {
      return
    }
    hasHeldImage = false
    turns.note(channel)
    send(.heldImage(channel, userData: nil))
  }

  /// The endpoint holds another image.
  mutating func imageHeld() {
    hasHeldImage = true
    guard isOpen, turns.open != nil, let channel = pictureChannel else { return }
    switch rules.pictures {
    case .video:
      guard !speech.isVideoMuted else { return }
      hasHeldImage = false
      turns.note(channel)
      send(.heldImage(channel, userData: nil))
    case .image: if phase == .talking && !turns.hasImage { sendHeldImage() }
    }
  }

  /// Nothing is open that a question would disturb.
  var canAsk: Bool { phase == .listening && turns.open?.owner != .program }

  /// Asks now, or when the agent listens; a newer question replaces an older one.
  private mutating func ask(_ text: String, _ images: [DialogImage]) {
    do throws(DialogError) {
      let next = try TuyaQuestion(text, images, hasImage: hasHeldImage, id: commandID, isOpen ? terms : nil)
      wake()
      guard !canAsk else { return pose(next) }
      discardQuestion("another one replaced it")
      question = next
      if phase == .listening { phaseEnd = nil }
      if commandID != nil { actions.append(.answerLater) }
    } catch { actions.append(.refuse(error)) }
  }

  mutating func discardQuestion(_ reason: String) {
    guard let old = question else { return }
    question = nil
    answer(old.id, .tuya(.invalidEvent, "question discarded: \(reason)", scope: .command))
  }

  /// A question is an event of its own. The agent takes what it consists of.
  mutating func pose(_ question: TuyaQuestion) {
    // Nothing was said in the long event.
    send(turns.breakOpen())
    send(turns.begin(makeID(), .question, rules.startData(hasVoice: false)))
    for (bytes, format) in question.images {
      guard let channel = terms.channel(.image) else { continue }
      turns.note(channel)
      send(.image(bytes, format: format, channel, userData: nil, call: calls.add(.data(nil))))
    }
    if rules.pictures == .image { sendHeldImage() }
    if let channel = terms.channel(.text), !question.text.isEmpty {
      turns.note(channel)
      send(.text(question.text, channel, userData: nil))
    }
    endEvent()
  }

  // MARK: The vendor's own commands

  private mutating func obey(_ name: String, _ payload: JSONValue) {
    guard let order = TuyaOrder.Name(rawValue: name) else {
      let known = TuyaOrder.Name.allCases.map(\.rawValue).joined(separator: ", ")
      return refuse(.invalidParameter, "\"\(name)\" is not known; known are \(known)")
    }
    if order != .createSession || phase != .ended {
      guard isOpen else { return refuse(.notConnected, "\"\(name)\": there is no connection with a session") }
      if let id = payload["sessionId"]?.string, id != session, order != .createSession {
        return refuse(.invalidSession, "\"\(name)\": \"sessionId\" is not that of this node's session")
      }
    }
    do throws(DialogError) {
      let order = try TuyaOrder(order, payload, terms)
      try checkSize(of: order, name)
      obey(order)
    } catch { actions.append(.refuse(error)) }
  }

  /// Checks that the packets of an order can be written: otherwise nothing of it is sent.
  private func checkSize(of order: TuyaOrder, _ name: String) throws(DialogError) {
    let room = rules.room
    switch order {
    case .queryToken, .closeSession: break
    case .createSession(let beginning): try checkSize(of: beginning, name)
    case .startEvent(_, let userData):
      try room.check(rules.startData(hasVoice: false, userData), name)
    case .endPayloads(_, _, let userData), .endEvent(_, let userData), .breakEvent(_, let userData),
      .text(_, _, let userData), .image(_, _, _, let userData):
      try room.check(userData, name)
    case .file(_, let file, _, let userData): try room.check(userData, beside: file?.utf8.count ?? 0, name)
    case .event(_, _, let data, let userData):
      try room.check(userData, name)
      try room.check(data: data, "\"data\"", name)
    case .toolResult(_, let payload): try room.check(data: payload, "the result", name)
    }
  }

  private func checkSize(of beginning: TuyaBeginning, _ command: String) throws(DialogError) {
    try rules.room.check(
      creation: creationData(beginning), token: tokenBytes ?? rules.room.token, command)
  }

  private mutating func obey(_ order: TuyaOrder) {
    switch order {
    case .queryToken(let isNew): queryToken(isNew: isNew)
    case .createSession(let beginning): create(beginning)
    case .closeSession(let status): hangUp(with: status)
    case .startEvent(let id, let userData): startEvent(named: id, userData)
    case .endPayloads(let id, let channel, let userData):
      guard isEvent(id) else { return }
      send(turns.endPayloads(channel, userData))
    case .endEvent(let id, let userData):
      guard isEvent(id) else { return }
      // A long event may end while a round of it is answered.
      if phase == .responding || phase == .draining { return send(turns.end(userData)) }
      endEvent(userData)
    case .breakEvent(let id, let userData): breakEvent(id, userData)
    case .event(let type, let id, let data, let userData):
      wake()
      send(.event(type, id: id ?? makeID(), data: data, userData: userData))
    case .text, .image, .file: sendData(order)
    case .toolResult(let id, let payload): answerTool(id, payload)
    }
  }

  /// Closes the session and creates another, over the same connection.
  mutating func create(_ beginning: TuyaBeginning) {
    guard phase != .ended else { return begin(again: beginning) }
    cutReply(by: .local)
    send(turns.abandon())
    send(.closeSession(.ok))
    enter(.listening)
    leave()
    self.beginning = beginning
    create(terms)
    guard let id = commandID, let session else { return }
    actions.append(.answerLater)
    post(.answer(DialogAnswer(id, .done(["sessionId": .string(session)]))))
  }

  /// Refuses the command when it names no event that is open.
  private mutating func isEvent(_ id: String?) -> Bool {
    guard let open = turns.open, id == nil || id == open.id else {
      refuse(
        .invalidEvent, turns.open == nil ? "no event is open" : "\"eventId\" is not that of the open event")
      return false
    }
    return true
  }

  /// A program begins an event of its own.
  private mutating func startEvent(named id: String?, _ userData: JSONValue?) {
    wake()
    switch phase {
    case .thinking, .responding, .draining: interrupt(by: .user)
    default: break
    }
    // The long event gives way, unless somebody is speaking.
    if turns.open?.owner == .voice, phase == .listening { send(turns.breakOpen()) }
    guard turns.open == nil, phase == .listening else {
      return refuse(.invalidEvent, "an event is open; end it or break it off before another begins")
    }
    let id = id ?? makeID()
    send(turns.begin(id, .program, rules.startData(hasVoice: false, userData)))
    enter(.listening)
    guard let command = commandID else { return }
    actions.append(.answerLater)
    post(.answer(DialogAnswer(command, .done(["eventId": .string(id)]))))
  }

  mutating func breakEvent(_ id: String?, _ userData: JSONValue?) {
    wake()
    let answered = reply.state == .open ? reply.round ?? turns.current : turns.current
    if let open = turns.open, id == open.id || id == nil && (open.owner == .program || phase == .talking) {
      send(turns.breakOpen(userData))
      cutReply(by: .user)
      endHeard()
      return listen()
    }
    guard phase == .thinking || phase == .responding, let answered,
      id ?? answered == answered || id == turns.main
    else { return refuse(.invalidEvent, "no such event is open or answered") }
    let round = reply.state == .open ? reply.round : turns.current
    cutReply(by: .user, round: round)
    breakRound(userData)
    listen()
  }

  /// Sends data in the event that is open; without one it is a question of its own.
  private mutating func sendData(_ order: TuyaOrder) {
    wake()
    // A text in a long event would never be answered: it has no end.
    var isOwn = turns.open == nil
    if case .text = order, turns.open?.owner == .voice, rules.isLong { isOwn = true }
    if isOwn {
      guard canAsk else {
        return refuse(.invalidEvent, "no event is open, and a question is being answered")
      }
      send(turns.breakOpen())
      send(turns.begin(makeID(), .question, rules.startData(hasVoice: false)))
    }
    switch order {
    case .text(let text, let channel, let userData):
      turns.note(channel)
      send(.text(text, channel, userData: userData))
    case .image(let bytes, let format, let channel, let userData):
      turns.note(channel)
      send(.image(bytes, format: format, channel, userData: userData, call: calls.add(.data(commandID))))
      if commandID != nil { actions.append(.answerLater) }
    case .file(let path, let name, let channel, let userData):
      turns.note(channel)
      send(.file(path: path, name: name, channel, userData: userData, call: calls.add(.data(commandID))))
      if commandID != nil { actions.append(.answerLater) }
    default: break
    }
    if isOwn { endEvent() }
  }

  // MARK: Tools

  mutating func takeToolRequest(_ event: TuyaCloudEvent) {
    switch TuyaTools.reply(to: event.data, rules.tools) {
    case .answer(let json): sendTool(json)
    case .none: post(.extra(name: "McpCmd", payload: event.json))
    case .call(let id, let tool, let arguments):
      guard toolCalls.add(id, until: now &+ rules.tool) else {
        return sendTool(TuyaTools.error(id, -32_000, "too many calls wait, or one with the same id"))
      }
      let payload: JSONValue = ["id": id, "tool": .string(tool), "arguments": arguments]
      post(.command(name: "McpCmd", payload: payload, round: event.id.isEmpty ? nil : event.id))
    }
  }

  mutating func sendTool(_ json: JSONValue) {
    send(.event(.mcpCommand, id: makeID(), data: json, userData: nil))
  }

  private mutating func answerTool(_ id: JSONValue, _ payload: JSONValue) {
    guard let id = toolCalls.take(id) else {
      return refuse(.invalidParameter, "\"mcpResult\": no call with this \"id\" waits")
    }
    guard let answer = TuyaTools.answer(id, payload) else {
      sendTool(TuyaTools.error(id, -32_603, "the tool failed"))
      return refuse(
        .invalidParameter,
        "\"mcpResult\" needs \"result\", \"text\", or \"error\" with \"code\" and \"message\"")
    }
    sendTool(answer)
  }
}

extension DialogCommand {
  /// True for a question, and for a text to speak.
  fileprivate var isQuestion: Bool {
    switch self {
    case .ask, .say: true
    default: false
    }
  }
}
