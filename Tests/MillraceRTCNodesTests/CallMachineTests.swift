import MillraceCore
import MillraceDialog
import MillraceRTCSignal
import MillraceRTCWire
import Testing

@testable import MillraceRTCNodes

private let mainID = SignalSessionID(0)
private let both = SignalMedia(audio: .sendReceive)
private let playing = SignalMedia(audio: .receiveOnly)

/// A machine, its time, and what it has asked for.
private struct Call {
  var machine: CallMachine
  var now: Nanoseconds = 0
  var actions: [CallAction] = []

  init(
    _ traits: SignalTraits = SignalTraits(), giveUp: Int64 = 45_000, isOn: Bool = true, renews: Bool = false
  ) {
    let backoff = Backoff(
      first: .milliseconds(500), most: .milliseconds(8_000), jitter: 0, giveUp: .milliseconds(giveUp), seed: 1
    )
    machine = CallMachine(
      CallMachine.Settings(
        signal: .milliseconds(5_000), media: .milliseconds(3_000), interruption: .milliseconds(3_000),
        restart: .milliseconds(5_000), reconnect: ReconnectPolicy(backoff, isOn: isOn), renewsSession: renews)
    )
    machine.traits = traits
  }

  @discardableResult
  mutating func take(_ inputs: CallInput...) -> [CallAction] {
    let new = inputs.flatMap { machine.handle($0, at: now) }
    actions += new
    return new
  }

  /// Time passes; the machine is called when it wants to be, and at the end.
  @discardableResult
  mutating func wait(_ milliseconds: Int64) -> [CallAction] {
    let end = now + .milliseconds(milliseconds)
    var new: [CallAction] = []
    while let due = machine.deadline, due <= end {
      now = max(now, due)
      let before = machine.deadline
      new += machine.handle(.tick, at: now)
      if machine.deadline == before { break }
    }
    now = end
    new += machine.handle(.tick, at: now)
    actions += new
    return new
  }

  /// Up to a connected main session, offered by this side.
  mutating func connect(_ media: SignalMedia = both) {
    take(.start, .signal(.wantsOffer(mainID, media, servers: [])), .described(mainID))
    take(.signal(.answer(mainID, sdp: "answer")), .session(mainID, .connected(media)))
  }

  /// A peer offers, and connects.
  mutating func join(_ number: Int, _ media: SignalMedia = both) {
    let id = SignalSessionID(number)
    take(.signal(.offer(id, sdp: "offer", media, peer: nil)), .described(id), .session(id, .connected(media)))
  }
}

extension [CallAction] {
  var states: [DialogState] {
    compactMap { if case .post(.state(let state)) = $0 { state } else { nil } }
  }
  var errors: [String] {
    compactMap { if case .post(.error(let error)) = $0 { error.name ?? "" } else { nil } }
  }
  var ended: [Int] { compactMap { if case .end(let id, _, _) = $0 { id.number } else { nil } } }
  var begins: Int { filter { $0 == .begin }.count }
  /// The failure with which the call has ended.
  var failure: DialogError? {
    for case .finish(let error) in self { return error }
    return nil
  }
  var isFinished: Bool { contains { if case .finish = $0 { true } else { false } } }
}

@Suite("The state machine of a call") struct CallMachineTests {
  @Test("an offered session goes from connecting to listening, and tells the signalling")
  func connects() {
    var call = Call()
    call.connect()
    #expect(call.actions.states == [.connecting, .listening])
    #expect(
      call.actions == [
        .post(.state(.connecting)), .begin, .offer(mainID, both, servers: []), .describe(mainID),
        .accept(mainID, sdp: "answer"), .confirm(mainID), .post(.connected), .post(.state(.listening)),
      ])
  }

  @Test("a call without sessions is up when its signalling is, and forgets what has failed before")
  func ready() {
    var call = Call()
    call.take(.start)
    #expect(
      call.take(.signal(.ready(isComplete: true))) == [.post(.connected), .post(.state(.listening))])
    #expect(!call.machine.isUnreachable)
    let lost = RTCError.network.error("x")
    // Each outage takes some of the time after which it gives up, unless there was a connection in between.
    for _ in 0..<20 {
      call.wait(6_000)
      #expect(call.take(.signal(.closed(lost))).states == [.reconnecting])
      call.take(.signallingEnded)
      #expect(call.wait(500).begins == 1, "the back-off has started again")
      #expect(
        call.take(.signal(.ready(isComplete: true))) == [.post(.connected), .post(.state(.listening))])
    }
    #expect(!call.actions.isFinished)
  }

  @Test("a call that waits for others in a reached place gives none of its time up, and is not up")
  func readyForOthers() {
    var call = Call()
    let lost = RTCError.network.error("x")
    call.take(.start)
    for _ in 0..<20 {
      #expect(!call.take(.signal(.ready(isComplete: false))).contains(.post(.connected)))
      call.wait(6_000)
      #expect(!call.machine.isUnreachable)
      call.take(.signal(.closed(lost)))
      call.take(.signallingEnded)
      #expect(call.wait(500).begins == 1)
    }
    call.take(.signal(.ready(isComplete: false)))
    call.join(1)
    #expect(call.actions.suffix(2) == [.post(.connected), .post(.state(.listening))])
  }

  @Test("a place that is lost as soon as it is reached is given up")
  func readyInVain() {
    var call = Call()
    call.take(.start)
    for _ in 0..<100 where !call.machine.isEnding {
      call.take(.signal(.ready(isComplete: true)))
      call.wait(1_000)
      call.take(.signal(.closed(RTCError.network.error("x"))))
      call.take(.signallingEnded)
      call.wait(8_000)
    }
    #expect(call.machine.isEnding)
  }

  @Test("an answer before the offer was made is none, and neither is a second one")
  func earlyAnswer() {
    var call = Call()
    call.take(.start, .signal(.wantsOffer(mainID, both, servers: [])))
    #expect(call.take(.signal(.answer(mainID, sdp: "early"))) == [])
    call.take(.described(mainID))
    #expect(call.take(.signal(.answer(mainID, sdp: "a"))) == [.accept(mainID, sdp: "a")])
    #expect(call.take(.signal(.answer(mainID, sdp: "b"))) == [])
  }

  @Test("an answer that is too late finds the attempt given up, and another one begun")
  func lateAnswer() {
    var call = Call()
    call.take(.start, .signal(.wantsOffer(mainID, both, servers: [])), .described(mainID))
    #expect(call.wait(4_999).errors == [])
    #expect(call.wait(1).errors == ["signalTimeout"])
    #expect(call.take(.signal(.answer(mainID, sdp: "late"))) == [])
    call.take(.signallingEnded)
    #expect(call.wait(500).begins == 1)
  }

  @Test("events of sessions that are not there change nothing")
  func strangers() {
    var call = Call()
    call.connect()
    let other = SignalSessionID(9)
    let inputs: [CallInput] = [
      .described(other), .session(other, .closed), .session(other, .connected(both)), .received(other),
      .sent(other), .signal(.answer(other, sdp: "")), .signal(.candidate(other, nil)),
      .signal(.sessionEnded(other)), .signallingEnded, .start, .tick,
    ]
    for input in inputs { #expect(call.take(input) == []) }
  }

  @Test("a refusal ends the call at once, and fails it")
  func refused() {
    var call = Call()
    call.take(.start)
    let error = RTCError.authFailed.error("the key is refused")
    let actions = call.take(.signal(.closed(error)))
    #expect(actions == [.post(.error(error)), .endSignalling])
    #expect(call.take(.signallingEnded) == [.post(.state(.closed)), .finish(error)])
    #expect(call.machine.isOver && call.machine.deadline == nil)
  }

  @Test(
    "a failure of the main session releases the old resource, and begins again after the back-off",
    arguments: [RTCError.iceFailed, .dtlsFailed, .consentLost, .failed])
  func again(_ kind: RTCError) {
    var call = Call()
    call.connect()
    let actions = call.take(.session(mainID, .failed(kind.error("x"))))
    #expect(actions.errors == [kind.rawValue])
    #expect(actions.ended == [0] && actions.last == .post(.state(.reconnecting)))
    #expect(actions.contains(.endSignalling))
    // Not before the old resource is released.
    #expect(call.wait(1_000).begins == 0)
    #expect(call.take(.signallingEnded).begins == 1)
  }

  @Test("a signalling that does not end is not waited for longer than two seconds")
  func stuck() {
    var call = Call()
    call.connect()
    call.take(.session(mainID, .failed(RTCError.iceFailed.error("x"))))
    #expect(call.wait(1_999).begins == 0)
    #expect(call.wait(1).begins == 1)
  }

  @Test("an interruption that passes changes nothing")
  func interruption() {
    var call = Call(SignalTraits(canRestart: true))
    call.connect()
    call.actions = []
    call.take(.session(mainID, .disconnected))
    call.wait(2_999)
    call.take(.session(mainID, .connected(both)))
    call.wait(20_000)
    #expect(call.actions == [])
  }

  @Test("an interruption of 3 s restarts ICE where the signalling can, and a connection ends that")
  func restarts() {
    var call = Call(SignalTraits(canRestart: true))
    call.connect()
    call.take(.session(mainID, .disconnected))
    #expect(call.wait(3_000) == [.post(.state(.reconnecting)), .restart(mainID)])
    #expect(call.take(.described(mainID)) == [.describeRestart(mainID)])
    #expect(call.take(.signal(.answer(mainID, sdp: "new"))) == [.accept(mainID, sdp: "new")])
    #expect(call.take(.session(mainID, .connected(both))) == [.post(.state(.listening))])
    #expect(call.wait(20_000) == [])
  }

  @Test("a restart without effect is followed by a new session")
  func restartFails() {
    var call = Call(SignalTraits(canRestart: true))
    call.connect()
    call.take(.session(mainID, .disconnected))
    call.wait(3_000)
    #expect(call.wait(5_000).errors == ["consentLost"])
    #expect(call.take(.signallingEnded).begins == 0)
    #expect(call.wait(500).begins == 1)
  }

  @Test("where ICE cannot be restarted, an interruption of 3 s is followed by a new session")
  func cannotRestart() {
    var call = Call()
    call.connect()
    call.take(.session(mainID, .disconnected))
    let actions = call.wait(3_000)
    #expect(actions.errors == ["consentLost"] && actions.ended == [0])
    #expect(!actions.contains(.restart(mainID)))
  }

  @Test("attempts become rarer, and after 45 s without success the call has failed")
  func givesUp() {
    var call = Call()
    call.take(.start)
    var begun: [Nanoseconds] = [0]
    for _ in 0..<100 where !call.machine.isOver {
      call.take(.signal(.closed(RTCError.network.error("refused"))), .signallingEnded)
      if call.wait(1).begins > 0 { begun.append(call.now) }
      while !call.machine.isOver, let due = call.machine.deadline {
        if call.wait((due - call.now) / 1_000_000 + 1).begins > 0 { begun.append(call.now) }
      }
    }
    let waits = zip(begun, begun.dropFirst()).map { $1 - $0 }
    #expect(waits.count > 5 && waits[1] > waits[0] && waits.allSatisfy { $0 <= .milliseconds(8_010) })
    #expect(call.now <= .milliseconds(45_100))
    #expect(call.actions.failure?.name == "network")
    #expect(call.actions.states.last == .closed)
  }

  @Test("a server that asks to wait is obeyed within the time that is left", arguments: [2_000, 60_000])
  func retryAfter(_ milliseconds: Int) {
    var call = Call()
    call.take(.start)
    let reaction = DialogError.Reaction.retry(afterMilliseconds: milliseconds)
    call.take(
      .signal(.closed(RTCError.tooManyRequests.error("busy", reaction: reaction))), .signallingEnded)
    if milliseconds > 45_000 {
      // It is the end, and nobody is to try again.
      let failure = call.actions.failure
      #expect(failure?.name == "tooManyRequests" && failure?.reaction == .refuse)
      let posted = call.actions.compactMap { action -> DialogError.Reaction? in
        if case .post(.error(let error)) = action { error.reaction } else { nil }
      }
      #expect(posted == [.refuse])
    } else {
      #expect(call.wait(Int64(milliseconds) - 1).begins == 0)
      #expect(call.wait(1).begins == 1)
    }
  }

  @Test("without reconnection the first loss is the end")
  func isOff() {
    var call = Call(isOn: false)
    call.connect()
    call.take(.session(mainID, .failed(RTCError.iceFailed.error("x"))), .signallingEnded)
    #expect(call.actions.failure?.name == "iceFailed")
  }

  @Test("media that came makes the next back-off the first again")
  func success() {
    var call = Call()
    for _ in 0..<3 {
      call.connect()
      call.take(.received(mainID))
      call.take(.session(mainID, .failed(RTCError.iceFailed.error("x"))), .signallingEnded)
      #expect(call.wait(499).begins == 0)
      #expect(call.wait(1).begins == 1)
    }
  }

  @Test("a peer that plays has to begin within 3 s")
  func mediaTimeout() {
    var call = Call()
    call.connect(playing)
    #expect(call.wait(2_999).errors == [])
    #expect(call.wait(1).errors == ["mediaTimeout"])
  }

  @Test("an echo has to come within 3 s after something was sent, and not before")
  func echo() {
    var call = Call()
    call.connect(both)
    #expect(call.wait(60_000).errors == [])
    call.take(.sent(mainID))
    #expect(call.wait(3_000).errors == ["mediaTimeout"])
  }

  @Test("media in time, or a session that only sends, has no such timeout", arguments: [true, false])
  func mediaInTime(_ receives: Bool) {
    var call = Call()
    call.connect(receives ? playing : SignalMedia(audio: .sendOnly))
    if receives { call.take(.received(mainID)) }
    call.take(.sent(mainID))
    #expect(call.wait(60_000).errors == [])
  }

  @Test("the end of the peer is an end, and no failure")
  func peerEnds() {
    var call = Call()
    call.connect()
    call.take(.session(mainID, .closed), .signallingEnded)
    #expect(call.actions.isFinished && call.actions.failure == nil)
    #expect(call.actions.errors == [])
  }

  @Test("in a room the end of the session is not that of the call: another follows, or the signalling ends")
  func renewed() {
    var call = Call(renews: true)
    call.connect()
    #expect(
      call.take(.session(mainID, .closed)) == [.end(mainID, tells: true, nil), .post(.state(.reconnecting))])
    #expect(call.take(.session(mainID, .closed)) == [])
    call.wait(60_000)
    call.take(.signal(.wantsOffer(mainID, both, servers: [])), .described(mainID))
    call.take(.signal(.answer(mainID, sdp: "answer")), .session(mainID, .connected(both)))
    #expect(call.actions.states == [.connecting, .listening, .reconnecting, .listening])
    #expect(call.actions.begins == 1 && call.actions.errors == [])
    // The signalling has ended it: it knows already.
    #expect(
      call.take(.signal(.sessionEnded(mainID)))
        == [.end(mainID, tells: false, nil), .post(.state(.reconnecting))])
    #expect(
      call.take(.signal(.closed(RTCError.network.error("x"))), .signallingEnded).errors == ["network"])
    #expect(call.wait(500).begins == 1 && !call.machine.isEnding, "as after any lost connection")
  }

  @Test("in a room, a peer that ends every session is tried again as one that cannot be reached")
  func endsAll() {
    var call = Call(renews: true)
    call.connect()
    for _ in 1...5 {
      #expect(call.take(.session(mainID, .closed)).errors == [])
      call.take(.signal(.wantsOffer(mainID, both, servers: [])), .described(mainID))
      call.take(.signal(.answer(mainID, sdp: "answer")), .session(mainID, .connected(both)))
    }
    #expect(call.take(.session(mainID, .closed)).errors == ["network"])
    #expect(call.take(.signallingEnded).begins == 0)
    #expect(call.wait(500).begins == 1)
  }

  @Test(
    "hanging up ends in every state, once",
    arguments: [
      "new", "begun", "offering", "offered", "connecting", "up", "interrupted", "restarting", "waiting",
    ])
  func hangUp(_ state: String) {
    var call = Call(SignalTraits(canRestart: true))
    let steps: [(String, (inout Call) -> Void)] = [
      ("begun", { $0.take(.start) }),
      ("offering", { $0.take(.signal(.wantsOffer(mainID, both, servers: []))) }),
      ("offered", { $0.take(.described(mainID)) }),
      ("connecting", { $0.take(.signal(.answer(mainID, sdp: "a"))) }),
      ("up", { $0.take(.session(mainID, .connected(both))) }),
      ("interrupted", { $0.take(.session(mainID, .disconnected)) }),
      ("restarting", { $0.wait(3_000) }),
      ("waiting", { $0.wait(5_000) }),
    ]
    for (name, step) in steps where state != "new" {
      step(&call)
      if name == state { break }
    }
    call.take(.hangUp, .hangUp, .signallingEnded, .hangUp)
    #expect(call.actions.isFinished && call.actions.failure == nil)
    #expect(call.actions.filter { if case .finish = $0 { true } else { false } }.count == 1)
    #expect(call.actions.states.last == .closed)
    call.actions = []
    call.take(.start, .signal(.closed(RTCError.network.error("x"))), .renew, .hangUp)
    call.wait(100_000)
    #expect(call.actions == [])
  }

  @Test("a signalling that does not end holds up the end for two seconds at most")
  func slowEnd() {
    var call = Call()
    call.connect()
    call.take(.hangUp)
    #expect(!call.wait(1_999).isFinished)
    #expect(call.wait(1).isFinished)
  }

  @Test("a server outlives its sessions: who comes and goes is reported, and without anybody it waits")
  func server() {
    var call = Call(SignalTraits(isServer: true))
    call.take(.start)
    call.join(7)
    call.join(8)
    call.take(.session(SignalSessionID(7), .closed))
    #expect(call.actions.states == [.connecting, .listening])
    call.take(.signal(.sessionEnded(SignalSessionID(8))))
    call.join(9)
    #expect(call.actions.states == [.connecting, .listening, .connecting, .listening])
    let peers = call.actions.compactMap { action -> String? in
      if case .post(.peer(let peer)) = action { "\(peer.id) \(peer.change)" } else { nil }
    }
    #expect(peers == ["7 joined", "8 joined", "7 left", "8 left", "9 joined"])
    #expect(call.actions.begins == 1 && !call.actions.isFinished)
  }

  @Test("a failed session of a server ends alone, and its error asks nobody to do anything")
  func serverFailure() {
    var call = Call(SignalTraits(isServer: true))
    call.take(.start)
    call.join(1)
    call.join(2)
    let id = SignalSessionID(1)
    let actions = call.take(.session(id, .failed(RTCError.fingerprintMismatch.error("x"))))
    let error = RTCError.fingerprintMismatch.error("x")
    #expect(actions.contains(.end(id, tells: true, error)))
    #expect(actions.contains(.post(.error(RTCError.fingerprintMismatch.error("x", reaction: .continue)))))
    #expect(call.wait(100_000).isFinished == false)
  }

  @Test("two sessions of a server that fail at once end each alone")
  func serverFailures() {
    var call = Call(SignalTraits(isServer: true))
    call.take(.start)
    call.join(1)
    call.join(2)
    let actions = call.take(
      .session(SignalSessionID(1), .failed(RTCError.consentLost.error("x"))),
      .session(SignalSessionID(2), .failed(RTCError.consentLost.error("x"))))
    #expect(actions.ended == [1, 2] && actions.begins == 0)
    #expect(call.actions.states.last == .connecting)
  }

  @Test("of two sessions of a room that fail at once, only one recreates everything")
  func roomFailures() {
    var call = Call()
    call.connect()
    call.join(1)
    let actions = call.take(
      .session(mainID, .failed(RTCError.consentLost.error("x"))),
      .session(SignalSessionID(1), .failed(RTCError.consentLost.error("x"))))
    #expect(actions.errors == ["consentLost"])
    #expect(actions.ended == [0, 1])
    #expect(actions.filter { $0 == .endSignalling }.count == 1)
    call.take(.signallingEnded)
    #expect(call.wait(10_000).begins == 1)
  }

  @Test("a feed of a room that fails, or is refused, ends alone")
  func feedFails() {
    var call = Call()
    call.connect()
    call.join(1)
    call.join(2)
    #expect(call.take(.session(SignalSessionID(1), .failed(RTCError.iceFailed.error("x")))).ended == [1])
    #expect(
      call.take(.signal(.sessionFailed(SignalSessionID(2), RTCError.notFound.error("x")))).ended == [2])
    #expect(!call.machine.isEnding && call.actions.begins == 1)
  }

  @Test("the only feed of a room without a main session takes the attempt with it, unless it is refused")
  func lonelyFeed() {
    var call = Call()
    call.take(.start)
    call.join(3)
    #expect(call.take(.session(SignalSessionID(3), .failed(RTCError.noCommonCodec.error("x")))).ended == [3])
    call.join(4)
    let actions = call.take(.session(SignalSessionID(4), .failed(RTCError.consentLost.error("x"))))
    #expect(actions.contains(.endSignalling))
  }

  @Test("the peer may describe a connected session again, and it stays connected")
  func describedAnew() {
    var call = Call(SignalTraits(isServer: true))
    call.take(.start)
    call.join(1)
    let id = SignalSessionID(1)
    #expect(
      call.take(.signal(.offer(id, sdp: "again", both, peer: nil)))
        == [.answer(id, sdp: "again", both, peer: nil)])
    #expect(call.take(.described(id)) == [.describe(id)])
    #expect(call.take(.session(id, .connected(both))) == [])
  }

  @Test("an offer for a connected session that is refused changes nothing, and its peer learns of it")
  func refusedAnew() {
    let id = SignalSessionID(1)
    let error = RTCError.badOffer.error("x", reaction: .continue)
    var call = Call(SignalTraits(isServer: true))
    call.take(.start)
    call.join(1)
    #expect(call.take(.refused(id, error)) == [], "none waits")
    call.take(.signal(.offer(id, sdp: "again", both, peer: nil)))
    #expect(call.take(.refused(id, error)) == [.refuse(id, error)])
    #expect(call.take(.described(id)) == [], "it has no answer")
    // Of two, the one is refused and the other answered.
    for sdp in ["one", "two"] { call.take(.signal(.offer(id, sdp: sdp, both, peer: nil))) }
    #expect(call.take(.refused(id, error)) == [.refuse(id, error)])
    #expect(call.take(.described(id)) == [.describe(id)])
    #expect(call.actions.ended == [] && call.actions.errors == [])
  }

  @Test("everything is recreated on request, without an error")
  func sessionRenewed() {
    var call = Call()
    call.connect()
    let actions = call.take(.renew)
    #expect(actions.errors == [] && actions.ended == [0])
    #expect(call.take(.signallingEnded).begins == 1)
  }

  @Test("more sessions than a call may have are refused, and those that are there stay")
  func tooMany() {
    var call = Call(SignalTraits(isServer: true))
    call.take(.start)
    for number in 1...CallMachine.mostSessions { call.join(number) }
    let actions = call.take(.signal(.offer(SignalSessionID(5_000), sdp: "", both, peer: nil)))
    #expect(actions.errors == ["tooManyRequests"] && actions.ended == [5_000])
  }
}
