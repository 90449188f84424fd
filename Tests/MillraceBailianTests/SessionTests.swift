import MillraceBailian
import MillraceCore
import MillraceDialog
import Testing

@Suite("session of Bailian") struct SessionTests {
  @Test("every phase handles every input as the tables say", arguments: DialogMode.allCases)
  func tables(mode: DialogMode) throws {
    let found = try SessionScript.table(mode)
    let wanted = Set(sessionTable + (sessionTables[mode] ?? []))
    let others = Set(DialogMode.allCases.filter { $0 != mode }.flatMap { sessionTables[$0] ?? [] })
    for line in found where !wanted.contains(line) { Issue.record("\(mode.rawValue): unexpected \(line)") }
    for line in wanted.subtracting(found) { Issue.record("\(mode.rawValue): missing \(line)") }
    #expect(others.isDisjoint(with: sessionTable))
  }

  private static let orders: [[String]] = [
    ["RequestAccepted", "Listening", "SpeechStarted"], ["Listening", "SpeechStarted"],
    ["SpeechStarted", "Listening"], ["RespondingEnded", "Listening", "SpeechStarted"],
  ]

  @Test(
    "a barge-in ends the reply once, whichever event comes first, and nothing of it is delivered afterwards",
    arguments: orders, [BailianSession.Phase.responding, .draining])
  func bargeIn(order: [String], phase: BailianSession.Phase) throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: phase, .duplex))
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    var words: [String] = []
    for name in order where phase == .responding || name != "RespondingEnded" {
      words += session.handle(try #require(inputs[name]), at: SessionScript.second).map(SessionScript.word)
      if name != "RespondingEnded" {
        #expect(!session.handle(.audio, at: SessionScript.second).contains(.deliver), "after \(name)")
      }
      #expect(session.uplink == .send)
    }
    #expect(words.count { $0 == "cancelReply" } == 1)
    #expect(words.count { $0.hasPrefix("interrupted") } == 1)
    #expect(!words.contains("> LocalRespondingEnded"))
    // The next reply is delivered.
    for name in ["SpeechEnded", "Thinking"] {
      _ = session.handle(try #require(inputs[name]), at: SessionScript.second)
    }
    #expect(session.handle(.audio, at: SessionScript.second) == [.deliver])
  }

  @Test("audio may arrive before Responding, and for a question before Thinking")
  func early() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), ["start", "opened", "Started", "Listening"])
    _ = session.handle(.command(.say("words")), at: SessionScript.second)
    #expect(session.handle(.audio, at: SessionScript.second) == [.deliver])
    session = try SessionScript.session(
      SessionScript.rules(.duplex), ["start", "opened", "Started", "Listening", "Thinking"])
    #expect(session.handle(.audio, at: SessionScript.second) == [.deliver])
  }

  @Test("a press during a reply takes effect when the service listens; what is said meanwhile is kept")
  func pressDuringReply() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.pushToTalk), SessionScript.way(to: .responding, .pushToTalk))
    let press = session.handle(.command(.startSpeech), at: SessionScript.second).map(SessionScript.word)
    #expect(press == ["cancelReply", "> RequestToSpeak"] && session.uplink == .keep)
    // A second press sends no second request.
    #expect(session.handle(.command(.startSpeech), at: SessionScript.second).isEmpty)
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    _ = session.handle(try #require(inputs["RequestAccepted"]), at: SessionScript.second)
    let listening = session.handle(try #require(inputs["Listening"]), at: SessionScript.second)
    #expect(listening.map(SessionScript.word) == ["state listening", "> SendSpeech"])
    #expect(session.phase == .talking && session.uplink == .send)
  }

  @Test(
    "a reply cancelled by the graph is interrupted with one request, also if its audio preceded its event",
    arguments: [
      ["start", "opened", "Started", "Listening", "Thinking", "audio"],
      SessionScript.way(to: .responding, .duplex), SessionScript.way(to: .draining, .duplex),
    ])
  func replyCancelled(way: [String]) throws {
    var session = try SessionScript.session(SessionScript.rules(.duplex), way)
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    func handle(_ name: String) throws -> [String] {
      session.handle(try #require(inputs[name]), at: SessionScript.second).map(SessionScript.word)
    }
    // At once, without a command; and a command that follows sends no second request.
    #expect(try handle("replyCancelled") == ["> RequestToSpeak"])
    #expect(try handle("interrupt") == [])
    // What still arrives is discarded, and never reported as played.
    #expect(try handle("audio") == [])
    _ = try handle("RespondingEnded")
    #expect(try handle("finished") == [])
    #expect(try handle("replyCancelled") == [])
    #expect(try handle("Listening") == ["state listening"])
  }

  @Test("any sequence of inputs preserves the session's invariants")
  func random() throws {
    let inputs = try SessionScript.inputs()
    for mode in DialogMode.allCases {
      for seed in 0..<200 {
        var dice = SplitMix(UInt64(seed))
        var session = BailianSession(SessionScript.rules(mode))
        var time: Nanoseconds = 0
        var hasEnded = false
        var isOpen = false
        for _ in 0..<300 {
          time += Nanoseconds(dice.next() % 3_000_000_000)
          let (name, input) = inputs[Int(dice.next() % UInt64(inputs.count))]
          for action in session.handle(input, at: time) {
            #expect(!hasEnded, "\(action) after the end, by \(name)")
            switch action {
            case .end: hasEnded = true
            case .connect: isOpen = false
            case .send(.start): isOpen = true
            case .send(let request): #expect(isOpen, "\(request.directive) before Start, by \(name)")
            case .disconnect: isOpen = false
            default: break
            }
          }
          if case .lost = input { isOpen = false }
          if session.phase == .closed { #expect(session.deadline == nil && session.uplink == .drop) }
        }
      }
    }
  }
}

/// SplitMix64.
struct SplitMix {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
