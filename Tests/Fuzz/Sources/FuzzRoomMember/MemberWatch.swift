import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRoomWire

@testable import MillraceRTCSignal

/// The machine of a member, watched.
///
/// Each request has an id above all before it, and each command is answered once. Nothing is reported after `closed`, and nothing is sent
/// after the connection was given up. A deadline is never in the past for long.
struct MemberWatch {
  /// How often a deadline may be due at once, one after another.
  private static let mostAtOnce = 4
  /// Inputs in which a member has ended after it was told to.
  private static let mostTicks = 8

  private let isOfHub: Bool
  private var machine: RoomMachine
  private var sequence = RoomSequence()
  private var now: Nanoseconds = 0
  /// Commands that have no answer yet.
  private var unanswered: Set<Int> = []
  private var lastCommand = 0
  /// The last session that was reported.
  private var session: Int?
  /// `closed` was reported, or the member was told to end: it reports nothing more.
  private var isQuiet = false
  private var hasGivenUp = false
  /// What the latest input was answered with.
  private var latest: [RoomMachine.Step] = []

  init(_ settings: RoomClientSettings, isOfHub: Bool, choice: RoomPeerChoice) {
    self.isOfHub = isOfHub
    let sessions: any RoomSessions =
      isOfHub ? RoomHubSession(settings) : RoomPeerSession(choice, settings.media)
    machine = RoomMachine(settings, sessions)
  }

  // MARK: Inputs

  /// Logs in and joins a room with another peer.
  mutating func join() {
    give(.opened)
    give(.message(Array(#"{"answer":1,"ok":true,"payload":{"version":1,"user":"ann"}}"#.utf8)))
    let room = #"""
      {"answer":2,"ok":true,"payload":{"peer":"p1","room":"r1","role":"host",
      "rights":["publish","kick","close"],
      "peers":[{"peer":"p2","user":"bob","name":"Bob","role":"host","tracks":["audio"],"muted":false}],
      "media":"forward","servers":[]}}
      """#
    give(.message(Array(room.utf8)))
    if machine.unanswered == nil { fatalError("the room is not joined: \(latest)") }
  }

  /// Gives the input that a line stands for.
  mutating func take(_ line: ArraySlice<UInt8>) {
    guard let letter = line.first else { return }
    var rest = line.dropFirst()
    if letter == UInt8(ascii: "{") { return give(.message(Array(line))) }
    var number = session ?? 0
    if let digit = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
      number = Int(digit - UInt8(ascii: "0"))
      rest = rest.dropFirst()
    }
    let text = String(decoding: rest, as: UTF8.self)
    switch letter {
    case UInt8(ascii: "O"): give(.opened)
    case UInt8(ascii: "I"): give(.invalid(text))
    case UInt8(ascii: "W"): give(.closed(WebSocketEnd(code: 1_000 + number, reason: text)))
    case UInt8(ascii: "D"): give(.describe(number, sdp: text))
    case UInt8(ascii: "R"): give(.restart(number, sdp: text))
    case UInt8(ascii: "X"): give(.refuseOffer(number))
    case UInt8(ascii: "C"): give(.candidate(number, text.isEmpty ? nil : text))
    case UInt8(ascii: "e"): give(.endSession(number))
    case UInt8(ascii: "d"): give(.data(RoomData("chat", .text(text)), to: nil))
    case UInt8(ascii: "c"): command(Array(rest))
    case UInt8(ascii: "t"): tick()
    case UInt8(ascii: "E"): end()
    default: break
    }
  }

  private mutating func command(_ bytes: [UInt8]) {
    guard let json = try? JSONValue(parsing: bytes), let command = try? DialogCommand(json: json) else {
      return
    }
    perform(command)
  }

  private mutating func perform(_ command: DialogCommand) {
    lastCommand += 1
    unanswered.insert(lastCommand)
    give(.command(lastCommand, command))
  }

  private mutating func end() {
    isQuiet = true
    give(.end)
  }

  /// Waits for the next deadline.
  private mutating func tick() {
    for _ in 0..<Self.mostAtOnce {
      guard let deadline = machine.deadline else { return }
      let isLater = deadline > now
      now = max(now, deadline)
      give(.tick)
      if isLater { return }
    }
    fatalError("the deadline stays in the past")
  }

  private mutating func give(_ input: RoomMachine.Input) {
    latest = machine.handle(input, at: now)
    for step in latest { check(step) }
    if machine.isOver && machine.deadline != nil { fatalError("over, with a deadline") }
    if machine.isOver && !unanswered.isEmpty { fatalError("commands \(unanswered) are never answered") }
  }

  // MARK: Steps

  private mutating func check(_ step: RoomMachine.Step) {
    switch step {
    case .send(let bytes): check(request: bytes)
    case .report(let event):
      if isQuiet { fatalError("\(event) is reported after the end") }
      check(event)
    case .answer(let number, let error):
      if unanswered.remove(number) == nil { fatalError("command \(number) is answered once too often") }
      if error?.text.isEmpty == true { fatalError("an error without a text") }
    case .close:
      if hasGivenUp { fatalError("the connection is closed twice") }
      hasGivenUp = true
      isQuiet = true
    }
  }

  private mutating func check(request bytes: [UInt8]) {
    if hasGivenUp { fatalError("a request after the end") }
    if bytes.count > RoomLimits.messageBytes { fatalError("\(bytes.count) bytes are sent") }
    let id: Int?
    do throws(RoomReadProblem) { id = try RoomRequest(parsing: bytes).id } catch {
      // Texts of commands may be longer than a hub takes.
      if error.name != .badPayload { fatalError("no request: \(error)") }
      id = error.id
    }
    do throws(RoomError) { try sequence.take(id ?? 0) } catch {
      fatalError("the id of a request: \(error)")
    }
  }

  private mutating func check(_ event: SignalEvent) {
    switch event {
    case .wantsOffer(let id, _, _): begin(id)
    case .offer(let id, _, _, let peer):
      if isOfHub || peer == nil { fatalError("an offer of \(peer ?? "the hub")") }
      if id.number != session { begin(id) }
    case .answer(let id, _), .candidate(let id, _), .sessionEnded(let id): checkIsPresent(id)
    case .sessionFailed(let id, let error):
      checkIsPresent(id)
      if error.text.isEmpty { fatalError("an error without a text") }
    case .event(let event): check(event)
    case .closed(let error):
      if error.text.isEmpty { fatalError("an error without a text") }
      isQuiet = true
    case .slot, .ready, .wantsKeyFrame, .data: break
    }
  }

  /// The session with the hub has number 0 and may begin again; those with a peer have numbers that rise from 1.
  private mutating func begin(_ id: SignalSessionID) {
    let isExpected = isOfHub ? id.number == 0 : id.number > session ?? 0
    if !isExpected { fatalError("\(id) begins after \(session ?? -1)") }
    session = id.number
  }

  private func checkIsPresent(_ id: SignalSessionID) {
    if id.number != session { fatalError("\(id) is not the one that there is") }
  }

  private func check(_ event: DialogEvent) {
    do throws(JSONFormProblem) {
      if try DialogEvent(json: event.json) != event { fatalError("the round trip changed \(event)") }
    } catch {
      fatalError("an event does not parse: \(error): \(event)")
    }
  }

  // MARK: The end

  /// In the room it takes a command and a message of a peer; told to end, it ends.
  mutating func finish() {
    if let waiting = machine.unanswered {
      perform(.extra(name: "message", payload: ["text": "hello"]))
      let isFull = waiting >= RoomPending.most
      if unanswered.contains(lastCommand) == isFull { fatalError("a command is lost: \(latest)") }
      give(.message(Array(#"{"event":"message","payload":{"from":"p2","text":"hi"}}"#.utf8)))
      guard case .report(.event(.extra(name: "message", payload: _)))? = latest.first else {
        fatalError("a message of a peer is lost: \(latest)")
      }
    }
    if !machine.isOver { end() }
    for _ in 0..<Self.mostTicks where !machine.isOver { tick() }
    if !machine.isOver || !hasGivenUp { fatalError("it does not end") }
  }
}
