import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceRTCSignal
import Testing

@testable import MillraceRTCNodes

/// An event of a node, and how it is repeated to members that join later.
private func event(_ node: String, _ name: String, _ state: String) -> String {
  #"{"time":12.50,"node":"\#(node)","event":"\#(name)","state":"\#(state)"}"#
}

private func repeated(_ event: String) -> String { "\(event.dropLast()),\"repeated\":true}" }

private func state(_ text: String) throws -> RoomState { try #require(RoomState(Array(text.utf8))) }

/// A catch-up that a test leads.
private final class CatchUpScript {
  private var catchUp: RoomCatchUp

  init(_ catchUp: RoomCatchUp = RoomCatchUp()) { self.catchUp = catchUp }

  var deadline: Nanoseconds? { catchUp.deadline }
  var next: CatchUpScript { CatchUpScript(catchUp.forNextConnection) }

  func sentToAll(_ event: String) throws { catchUp.sentToAll(try state(event)) }
  func joined(_ peer: String, at now: Nanoseconds = 0) { catchUp.joined(peer, at: now) }
  func left(_ peer: String) { catchUp.left(peer) }
  func sent(at now: Nanoseconds) -> RoomCatchUp.Message? { catchUp.next(at: now) }
}

@Suite("The latest states for members that join a room") struct RoomCatchUpTests {
  private static let gathering = RoomCatchUp.gathering
  private static let pause = RoomCatchUp.pause

  @Test("a state keeps its time and all its members, and says that it is repeated")
  func states() throws {
    let text = #"{"time":12.50,"node":"turn","event":"turn","from":"idle","to":"listening","x":[1]}"#
    let kept = try state(text)
    #expect(kept.node == "turn" && kept.event == "turn" && kept.text == repeated(text))
    #expect(try state(#"{"event":"state","state":"closed"}"#).node == "")
  }

  @Test(
    "what is no state, and what is too long for one, is not kept",
    arguments: [
      #"{"node":"bot","event":"transcript","text":"hello","final":true}"#,
      #"{"node":"bot","event":"transcript","text":"\"event\":\"state\""}"#,
      #"{"node":"bot","event":"extra","payload":{"event":"state"}}"#,
      #"{"node":"bot","event":"latency","name":"connect","ms":12}"#,
      #"{"node":"bot","event":["state"]}"#, #"[{"event":"state"}]"#, #"{"event":"state""#, "state", "",
      #"{"event":"state","state":"\#(String(repeating: "x", count: 1_024))"}"#,
    ])
  func others(_ text: String) { #expect(RoomState(Array(text.utf8)) == nil) }

  @Test("who joins receives the latest of each kind of each node, after the time to gather, and only once")
  func latest() throws {
    let script = CatchUpScript()
    let (bot, turn) = (event("bot", "state", "thinking"), event("turn", "turn", "hearing"))
    try script.sentToAll(event("bot", "state", "listening"))
    try script.sentToAll(turn)
    try script.sentToAll(bot)
    script.joined("p2", at: 1_000)
    script.joined("p2", at: 1_000)
    #expect(script.deadline == 1_000 + Self.gathering)
    #expect(script.sent(at: 1_000 + Self.gathering - 1) == nil)
    let first = script.sent(at: 1_000 + Self.gathering)
    #expect(first == RoomCatchUp.Message(peer: "p2", texts: [repeated(turn), repeated(bot)]))
    #expect(script.deadline == nil && script.sent(at: 1_000_000_000) == nil)
  }

  @Test("nobody waits while there is no state: those who are there receive the first one")
  func nothingYet() throws {
    let script = CatchUpScript()
    script.joined("p2", at: 0)
    #expect(script.deadline == nil)
    try script.sentToAll(event("bot", "state", "listening"))
    #expect(script.deadline == nil && script.sent(at: 1_000_000_000) == nil)
  }

  @Test("a state that went to all since somebody joined is not sent to that one again")
  func heardSince() throws {
    let script = CatchUpScript()
    let turn = event("turn", "turn", "listening")
    try script.sentToAll(turn)
    try script.sentToAll(event("bot", "state", "listening"))
    script.joined("p2", at: 0)
    try script.sentToAll(event("bot", "state", "thinking"))
    let messages = script.sent(at: Self.gathering)
    #expect(messages == RoomCatchUp.Message(peer: "p2", texts: [repeated(turn)]))
    script.joined("p3", at: Self.gathering)
    try script.sentToAll(turn)
    try script.sentToAll(event("bot", "state", "responding"))
    #expect(script.sent(at: Self.gathering + Self.pause) == nil && script.deadline == nil)
  }

  @Test("who has left receives nothing")
  func left() throws {
    let script = CatchUpScript()
    try script.sentToAll(event("bot", "state", "listening"))
    script.joined("p2", at: 0)
    script.joined("p3", at: 0)
    script.left("p2")
    #expect(script.sent(at: Self.gathering)?.peer == "p3")
    script.joined("p4", at: 0)
    script.left("p4")
    #expect(script.deadline == nil)
  }

  @Test("a few who join receive their messages one after the other, with a pause")
  func few() throws {
    let script = CatchUpScript()
    try script.sentToAll(event("bot", "state", "listening"))
    for number in 1...RoomCatchUp.mostSingle { script.joined("p\(number)", at: 0) }
    var now = Self.gathering
    for number in 1...RoomCatchUp.mostSingle {
      #expect(script.sent(at: now)?.peer == "p\(number)")
      #expect(script.sent(at: now + Self.pause - 1) == nil)
      now += Self.pause
    }
    #expect(script.deadline == nil)
  }

  @Test("many who join receive one message together, and the next ones wait for a pause")
  func many() throws {
    let script = CatchUpScript()
    let text = event("bot", "state", "listening")
    try script.sentToAll(text)
    for number in 1...150 { script.joined("p\(number)", at: 0) }
    let first = script.sent(at: Self.gathering)
    #expect(first == RoomCatchUp.Message(peer: nil, texts: [repeated(text)]) && script.deadline == nil)
    script.joined("p151", at: Self.gathering)
    #expect(script.deadline == Self.gathering + Self.pause)
  }

  @Test("the states of many nodes are bounded, and the oldest go")
  func bound() throws {
    let script = CatchUpScript()
    for number in 0...RoomCatchUp.mostStates {
      try script.sentToAll(event("bot\(number)", "state", "listening"))
    }
    script.joined("p2", at: 0)
    let texts = script.sent(at: Self.gathering)?.texts ?? []
    #expect(texts.count == RoomCatchUp.mostStates && texts.first?.contains("bot1\"") == true, "\(texts)")
  }

  @Test("another connection begins with the states, and everybody in the room is new to it")
  func nextConnection() throws {
    let script = CatchUpScript()
    let text = event("bot", "state", "listening")
    try script.sentToAll(text)
    script.joined("p2", at: 0)
    let next = script.next
    #expect(next.deadline == nil)
    next.joined("p2", at: 500)
    let messages = next.sent(at: 500 + Self.gathering)
    #expect(messages == RoomCatchUp.Message(peer: "p2", texts: [repeated(text)]))
  }
}

/// The signalling of a room that a test leads.
private final class ScriptedRoom: Signalling {
  struct Log: Sendable {
    /// The commands `data`.
    var told: [DialogData] = []
    /// Messages that were sent.
    var sent = 0
    var isOver = false
  }

  let log = Locked(Log())
  let sending = Locked(SignalSending.sent)
  /// The answer to each command; nil: it was done.
  let refusal = Locked<DialogError?>(nil)
  private let report = Locked<(@Sendable (SignalEvent) -> Void)?>(nil)
  let traits = SignalTraits(isTrickle: true, carriesMessages: true)

  func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) { self.report.withLock { $0 = report } }
  func describe(_ session: SignalSessionID, sdp: String) {}
  func end(_ session: SignalSessionID) {}

  func peer(_ id: String, _ change: DialogPeer.Change) {
    report.withLock { $0 }?(.event(.peer(DialogPeer(id, change))))
  }

  func perform(_ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void) -> Bool {
    guard case .data(let data) = command else { return false }
    log.withLock { $0.told.append(data) }
    let error = refusal.withLock { $0 }
    NetLoop.shared.run { done(error) }
    return true
  }

  func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending {
    log.withLock { $0.sent += 1 }
    return sending.withLock { $0 }
  }

  func end(_ done: @escaping @Sendable () -> Void) {
    log.withLock { $0.isOver = true }
    NetLoop.shared.run { done() }
  }

  /// What was sent to members that joined, and to whom.
  var told: [DialogData] { log.withLock { $0.told } }
}

@Suite("A signalling that sends the latest states to members that join", .timeLimit(.minutes(30)))
struct RoomCatchUpSignallingTests {
  private let room = ScriptedRoom()
  private let text = event("bot", "state", "listening")

  private func begin() -> RoomCatchUpSignalling {
    let signalling = RoomCatchUpSignalling(room)
    signalling.begin { _ in }
    return signalling
  }

  private func message(_ peer: String, _ text: String) -> DialogData {
    DialogData(.text(repeated(text)), peer: peer, label: "dialog")
  }

  @discardableResult
  private func send(
    _ text: String, label: String = "dialog", isText: Bool = true, to peer: String? = nil,
    by signalling: RoomCatchUpSignalling
  ) -> SignalSending {
    signalling.send(Array(text.utf8), isText: isText, label: label, to: peer)
  }

  @Test("who joins receives the latest state alone, and what the hub refuses is no event")
  func tells() async throws {
    let reports = Locked(0)
    let signalling = RoomCatchUpSignalling(room)
    signalling.begin { _ in reports.withLock { $0 += 1 } }
    room.refusal.withLock { $0 = RTCError.notFound.error("no such peer") }
    #expect(send(event("bot", "state", "thinking"), by: signalling) == .sent)
    #expect(send(text, by: signalling) == .sent && room.log.withLock { $0.sent } == 2)
    room.peer("p2", .joined)
    room.peer("p2", .tracks)
    try await untilCalls { !room.told.isEmpty }
    room.peer("p3", .joined)
    try await untilCalls { room.told.count == 2 }
    #expect(room.told == [message("p2", text), message("p3", text)])
    #expect(reports.withLock { $0 } == 3, "the three events of peers")
  }

  @Test("only states that went to all as events are kept, and only once the room has taken them")
  func kept() async throws {
    let signalling = begin()
    let other = event("bot", "state", "thinking")
    send(text, by: signalling)
    send(other, label: "data", by: signalling)
    send(other, isText: false, by: signalling)
    send(other, to: "p9", by: signalling)
    room.sending.withLock { $0 = .full }
    #expect(send(other, by: signalling) == .full)
    room.peer("p2", .joined)
    try await untilCalls { !room.told.isEmpty }
    #expect(room.told == [message("p2", text)] && room.log.withLock { $0.sent } == 5)
  }

  @Test("the signalling of another attempt knows what the one before has sent")
  func follows() async throws {
    let latest = Locked<RoomCatchUpSignalling?>(nil)
    let first = RoomCatchUpSignalling.follow(latest, with: ScriptedRoom())
    send(text, by: first)
    let second = RoomCatchUpSignalling.follow(latest, with: room)
    second.begin { _ in }
    room.peer("p2", .joined)
    try await untilCalls { !room.told.isEmpty }
    #expect(room.told == [message("p2", text)] && second === latest.withLock { $0 })
  }

  @Test("the end is that of the signalling inside, and nobody receives anything from then on")
  func ends() async throws {
    let signalling = begin()
    send(text, by: signalling)
    let isDone = Locked(false)
    signalling.end { isDone.withLock { $0 = true } }
    room.peer("p3", .joined)
    // Another one, whose message is due later.
    let other = ScriptedRoom()
    let witness = RoomCatchUpSignalling(other)
    witness.begin { _ in }
    send(text, by: witness)
    other.peer("p2", .joined)
    try await untilCalls { isDone.withLock { $0 } && !other.told.isEmpty }
    #expect(room.log.withLock { $0.isOver } && room.told.isEmpty)
  }
}
