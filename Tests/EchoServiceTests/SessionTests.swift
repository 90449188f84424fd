import MillraceCore
import MillraceDialog
import MillraceService
import Testing

@testable import EchoService

private typealias Input = ServiceInput<EchoMessage>

private let second: Nanoseconds = 1_000_000_000

private func session(followsPlayback: Bool = true) -> EchoSession {
  EchoSession(
    followsPlayback: followsPlayback, begin: 5 * second,
    reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
}

/// What a record of the service is to a session.
private func arrives(_ record: UInt8...) -> Input {
  switch EchoMessage.parse(record) {
  case .message(let message): .message(message)
  case .invalidMessage(let text): .invalidMessage(text)
  case .audio: .audio
  case .image: .image
  case .opened: .opened
  case .closed(let error): .lost(error)
  }
}

private func lost(_ category: DialogError.Category, _ reaction: DialogError.Reaction) -> Input {
  .lost(DialogError(vendor: "echo", category: category, reaction: reaction, text: "lost"))
}

private let inputs: [(name: String, input: Input)] = [
  ("start", .start), ("opened", .opened), ("welcome", arrives(0x81, 65)), ("listening", arrives(0x82, 0, 6)),
  ("thinking", arrives(0x82, 1, 7)), ("responding", arrives(0x82, 2, 7)),
  ("speechBegins", arrives(0x83, 1)), ("speechEnds", arrives(0x83, 0)), ("audio", arrives(0x84, 1, 0)),
  ("complete", arrives(0x85)), ("badKey", arrives(0x86, 1)), ("busy", arrives(0x86, 2)),
  ("noReply", arrives(0x86, 3)), ("broken", arrives(0x86, 4)), ("beat", arrives(0x87)),
  ("goodbye", arrives(0x88)), ("unknown", arrives(0x7F)), ("invalid", arrives(0x85, 1)),
  ("lost", lost(.network, .reconnect)), ("refused", lost(.auth, .refuse)), ("say", .command(.say("words"))),
  ("ask", .command(.ask("why", images: []))), ("askAboutImage", .command(.ask("why", images: [.url("u")]))),
  ("interrupt", .command(.interrupt())), ("hangUp", .command(.hangUp())),
  ("hangUpCall", .command(.hangUp(call: "c"))), ("mute", .command(.mute(.audio, isOn: true))),
  ("audible", .audible), ("finished", .finished), ("delivered", .delivered),
  ("replyCancelled", .replyCancelled), ("audioEnded", .audioEnded), ("voiceEnded", .voiceEnded),
  ("drain", .drain), ("tick", .tick),
]

private func way(to phase: EchoSession.Phase) -> [String] {
  let listening = ["start", "opened", "welcome", "listening"]
  let responding = listening + ["thinking", "responding", "audio"]
  return switch phase {
  case .idle: []
  case .connecting: ["start"]
  case .greeting: ["start", "opened"]
  case .listening: listening
  case .thinking: listening + ["thinking"]
  case .responding: responding
  case .playing: responding + ["complete"]
  case .yielding: responding + ["complete", "finished"]
  case .waiting: listening + ["lost"]
  case .closed: listening + ["hangUp"]
  }
}

private func word(_ action: ServiceAction<EchoRequest>) -> String {
  switch action {
  case .connect: "connect"
  case .disconnect: "disconnect"
  case .send(.hello): "> hello"
  case .send(.say): "> say"
  case .send(.over(let reply)): reply == 7 ? "> over" : "> over of reply \(reply)"
  case .send(.bye): "> bye"
  case .post(.state(let state)): "state \(state.rawValue)"
  case .post(.interrupted(let source, _)): "interrupted \(source.rawValue)"
  case .post(.error(let error)), .refuse(let error): "error \(error.category.rawValue)"
  case .post(.replyEnded(_, let count)): "replyEnded \(count)"
  case .post(let event): event.name
  case .deliver: "deliver"
  case .deliverImage: "deliverImage"
  case .deliverFile: "deliverFile"
  case .endUtterance: "endUtterance"
  case .cancelReply: "cancelReply"
  case .stream: "stream"
  case .useCredential: "useCredential"
  case .answerLater: "answerLater"
  case .end(let error): error == nil ? "end" : "fail"
  }
}

@Suite("the session of the echo service") struct SessionTests {
  /// Handles inputs by their names, all at the same time, and returns what the last of them causes.
  @discardableResult
  private func handle(
    _ names: [String], _ session: inout EchoSession, at time: Nanoseconds = second
  ) throws -> [String] {
    var words: [String] = []
    for name in names {
      let input = try #require(inputs.first { $0.name == name }, "\(name)").input
      words = session.handle(input, at: time).map(word)
    }
    return words
  }

  @Test("every input has in every phase the effect that the table says, or none")
  func table() throws {
    var found: Set<String> = []
    for phase in EchoSession.Phase.allCases {
      var before = session()
      try handle(way(to: phase), &before)
      try #require(before.phase == phase, "the way to \(phase) ends in \(before.phase)")
      for (name, _) in inputs where name != "busy" {
        var after = before
        let words = try handle([name], &after)
        guard after.phase != phase || !words.isEmpty || after.uplink != before.uplink else { continue }
        let uplink = after.uplink == before.uplink ? "" : " \(after.uplink.rawValue)"
        let list = words.isEmpty ? "" : " [\(words.joined(separator: ", "))]"
        found.insert("\(phase.rawValue) \(name): \(after.phase.rawValue)\(uplink)\(list)")
      }
    }
    for row in found.subtracting(sessionTable).sorted() { Issue.record("unexpected: \(row)") }
    for row in Set(sessionTable).subtracting(found).sorted() { Issue.record("missing: \(row)") }
  }

  @Test("a second text is refused until the service has taken the first")
  func oneText() throws {
    var session = session()
    try handle(way(to: .listening), &session)
    #expect(try handle(["say"], &session) == ["> say"])
    #expect(try handle(["ask"], &session) == ["error request"])
    #expect(try handle(["thinking", "listening", "ask"], &session) == ["> say"])
  }

  @Test("a busy service is asked again after the backoff, which a reply that was played resets")
  func backoff() throws {
    var session = session()
    try handle(["start", "opened", "busy"], &session)
    #expect(session.deadline == 2 * second)
    #expect(try handle(["tick"], &session, at: 2 * second - 1) == [])
    #expect(try handle(["tick"], &session, at: 2 * second) == ["connect"])
    try handle(["opened", "busy"], &session, at: 2 * second)
    #expect(session.deadline == 4 * second)
    try handle(["tick"], &session, at: 4 * second)
    try handle(["opened", "listening", "thinking", "responding", "audio"], &session, at: 4 * second)
    try handle(["complete", "finished", "lost"], &session, at: 4 * second)
    #expect(session.deadline == 5 * second)
  }

  @Test("a service that does not begin in time is left, and one that has begun may be silent")
  func begins() throws {
    var session = session()
    try handle(["start", "opened"], &session)
    #expect(session.deadline == 6 * second)
    var other = session
    let words = try handle(["tick"], &session, at: 6 * second)
    #expect(words == ["error network", "disconnect", "state reconnecting"])
    try handle(["listening"], &other)
    #expect(other.deadline == nil)
  }

  @Test("without reports of playback, audio that was delivered counts as played")
  func delivered() throws {
    var session = session(followsPlayback: false)
    try handle(way(to: .playing), &session)
    #expect(try handle(["finished"], &session) == [])
    #expect(try handle(["delivered"], &session) == ["> over"])
    #expect(session.phase == .yielding)
  }

  @Test("a reply without audio is over when it is complete, and has no utterance")
  func silent() throws {
    var session = session()
    try handle(way(to: .thinking) + ["responding"], &session)
    #expect(try handle(["complete"], &session) == ["replyEnded 0", "> over"])
    #expect(session.phase == .yielding)
  }

  @Test("audio of a reply that was interrupted is not delivered, and that of the next one is")
  func discards() throws {
    var session = session()
    try handle(way(to: .responding) + ["interrupt"], &session)
    for name in ["audio", "complete", "thinking", "responding", "audio"] {
      #expect(try handle([name], &session) == [], "\(name)")
    }
    try handle(["listening", "thinking", "responding"], &session)
    #expect(try handle(["audio"], &session) == ["deliver"])
  }
}
