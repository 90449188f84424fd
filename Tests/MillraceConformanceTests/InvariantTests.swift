import MillraceConformance
import MillraceDialog
import MillraceJSON
import Testing

private typealias Entry = ServiceRecord.Entry

/// The record of a correct turn, to be broken.
private let opening: [Entry] = [
  .event(.state(.connecting)), .event(.connected), .event(.conversationStarted(id: "1")),
  .event(.state(.listening)),
]
private let answer: [Entry] = [
  .event(.state(.thinking)), .event(.state(.responding)), .event(.replyStarted(round: nil)),
  .audio(ServiceRecord.Audio([1], bytes: 100, generation: 1)),
  .audio(ServiceRecord.Audio([], bytes: 0, generation: 1, endsUtterance: true)),
  .event(.replyEnded(round: nil, utterances: 1)), .event(.state(.listening)),
]
private let loss: [Entry] = [
  .event(.error(failure())), .event(.state(.reconnecting)), .event(.connected),
  .event(.conversationStarted(id: "1")), .event(.state(.listening)),
]

private func failure(vendor: String = "parrot", text: String = "it is gone") -> DialogError {
  DialogError(vendor: vendor, category: .network, reaction: .reconnect, text: text)
}

private func sound(_ reply: Int, _ generation: UInt32 = 1, ends: Bool = false) -> Entry {
  .audio(ServiceRecord.Audio([reply], bytes: 2, generation: generation, endsUtterance: ends))
}

private let traits = ServiceTraits(nodeType: "parrot.dialog", vendor: "parrot", key: "sk-parrot")

/// The violations in a record.
private func violations(
  _ entries: [Entry], _ change: (inout ServiceRecord, inout CaseExpectation) -> Void = { _, _ in }
) -> [String] {
  var record = ServiceRecord(entries)
  var expected = CaseExpectation(traits)
  change(&record, &expected)
  return Conformance.findings(record, expected)
}

@Suite("invariants of service nodes") struct InvariantTests {
  @Test("a correct dialogue has no violations, nor has one that lost its connection and recovered")
  func good() {
    #expect(violations(opening + answer) == [])
    #expect(
      violations(opening + answer + loss + [.event(.state(.closed))]) { _, expected in
        expected.expectsErrors = true
        expected.losses = 1
      } == [])
  }

  @Test(
    "illegal sequences of states are found",
    arguments: [
      ([.listening], "listening after idle"),
      ([.connecting, .thinking], "thinking after connecting"),
      ([.connecting, .closed, .listening], "listening after closed"),
      ([.connecting, .closed, .closed], "closed after closed"),
      ([.connecting, .listening, .connecting], "connecting after listening"),
      ([.connecting, .reconnecting, .responding], "responding after reconnecting"),
    ] as [([DialogState], String)])
  func states(states: [DialogState], text: String) {
    #expect(violations(states.map { .event(.state($0)) }).contains("legalStates: \(text)"))
  }

  @Test("every pair of states is checked, and only these are legal")
  func pairs() {
    let legal: [DialogState: Set<DialogState>] = [
      .idle: [.connecting, .closed],
      .connecting: [.connecting, .listening, .reconnecting, .closed],
      .listening: [.listening, .thinking, .responding, .reconnecting, .closed],
      .thinking: [.thinking, .listening, .responding, .reconnecting, .closed],
      .responding: [.responding, .listening, .thinking, .reconnecting, .closed],
      .reconnecting: [.reconnecting, .connecting, .listening, .closed], .closed: [],
    ]
    // A legal way to each state.
    let ways: [DialogState: [DialogState]] = [
      .idle: [], .connecting: [.connecting], .listening: [.connecting, .listening],
      .thinking: [.connecting, .listening, .thinking], .responding: [.connecting, .listening, .responding],
      .reconnecting: [.connecting, .reconnecting], .closed: [.closed],
    ]
    for (state, way) in ways {
      for next in DialogState.allCases where !(state == .idle && next == .idle) {
        let found = violations((way + [next]).map { .event(.state($0)) }).contains {
          $0.hasPrefix("legalStates")
        }
        #expect(found == !(legal[state]?.contains(next) ?? false), "\(next) after \(state)")
      }
    }
  }

  @Test("an incorrect opening is found, for each connection separately")
  func beginnings() {
    #expect(
      violations([
        .event(.state(.connecting)), .event(.conversationStarted(id: "1")), .event(.state(.listening)),
      ])
        == [
          "opening: conversationStarted before connected",
          "opening: listening before connected",
        ])
    #expect(
      violations([.event(.state(.connecting)), .event(.connected), .event(.state(.listening))]) == [
        "opening: listening before conversationStarted"
      ])
    #expect(
      violations(opening + [.event(.connected)]) == ["opening: connected twice for one connection"])
    let again = violations(
      opening + [.event(.error(failure())), .event(.state(.reconnecting)), .event(.state(.listening))]
    ) { $1.expectsErrors = true }
    #expect(again.contains("opening: listening before connected"))
  }

  @Test("a reply without an end, an end without a reply and two replies at once are found")
  func replies() {
    #expect(
      violations(opening + [.event(.replyStarted(round: nil))]) == [
        "replyEnds: replyStarted without replyEnded"
      ])
    #expect(
      violations(opening + answer + [.event(.replyEnded(round: nil, utterances: 0))]) == [
        "replyEnds: replyEnded without replyStarted"
      ])
    #expect(
      violations(
        opening + [
          .event(.replyStarted(round: nil)), .event(.replyStarted(round: nil)),
          .event(.interrupted(by: .user)),
        ])
        == ["replyEnds: replyStarted before the last reply ended"])
    #expect(violations(opening + [.event(.replyStarted(round: nil)), .action(.stopped)]) == [])
  }

  @Test("audio that does not end, ends too often, or runs into the next reply is found")
  func utterances() {
    let start: [Entry] = opening + [.event(.replyStarted(round: nil))]
    let end: [Entry] = [.event(.replyEnded(round: nil, utterances: 1)), .event(.state(.listening))]
    #expect(
      violations(start + [sound(1)] + end) == ["utterances: replyEnded announced 1 utterances, and 0 ended"])
    #expect(
      violations(start + [sound(1, ends: true), sound(1, ends: true)] + end) == [
        "utterances: 2 utterances ended, and replyEnded announced 1"
      ])
    #expect(
      violations(start + [sound(1), sound(2, ends: true)] + end) == [
        "utterances: audio of reply 2 before the end of reply 1"
      ])
  }

  @Test("an incomplete reply is found, and one that was never delivered")
  func whole() {
    let short = violations(opening + answer) {
      $0.report.audioBytes = [1: 120]
      $1.completeReplies = [1, 2]
    }
    #expect(
      short == [
        "completeReplies: of reply 1 120 bytes were sent, and 100 delivered",
        "completeReplies: of reply 2 0 bytes were sent, and 0 delivered",
      ])
    #expect(
      violations(opening + answer) {
        $0.report.audioBytes = [1: 100]
        $1.completeReplies = [1]
      } == [])
  }

  @Test("speech with missing or repeated samples is found, where it must be complete")
  func completeSpeech() {
    func heard(_ samples: Int, all: Bool = true) -> [String] {
      violations(opening + [.action(.spoke(samples: 320)), .action(.spoke(samples: 320))]) {
        $0.report.speechSamples = samples
        $1.receivesAllSpeech = all
      }
    }
    let text = "completeSpeech: the user spoke 640 samples that are not silence, and"
    #expect(heard(640) == [] && heard(0, all: false) == [])
    #expect(heard(639) == ["\(text) 639 reached the service"])
    #expect(heard(641) == ["\(text) 641 reached the service"])
    #expect(violations(opening) { $1.receivesAllSpeech = true } != [])
  }

  @Test("a drained dialogue whose session is not closed, or closed twice, is found")
  func sessionEnd() {
    func said(_ count: Int, _ entries: [Entry]) -> [String] {
      violations(entries) { record, _ in record.report.sessionEnds = count }
    }
    let drained: [Entry] = [.action(.drained), .event(.state(.closed))]
    #expect(said(1, opening + drained) == [])
    #expect(said(0, opening + drained) == ["sessionEnd: the session was not closed properly"])
    #expect(said(2, opening + drained) == ["sessionEnd: the session was closed 2 times"])
    // No session is left to close: the service has ended it, or it has not begun; and a graph that stops waits for nothing.
    #expect(said(0, opening + [.event(.state(.closed))] + [.action(.drained)]) == [])
    #expect(said(0, [.event(.state(.connecting)), .action(.drained)]) == [])
    #expect(said(0, opening + [.action(.stopped)]) == [])
  }

  @Test("audio of an old reply after an interruption is found")
  func stale() {
    let start: [Entry] = opening + [.event(.replyStarted(round: nil)), .event(.interrupted(by: .local))]
    #expect(
      violations(start + [sound(1, 1), .action(.interrupted(upTo: 1, generation: 1)), sound(1, 2)]) == [
        "stale: audio of reply 1 was delivered as part of two replies of the graph",
        "stale: audio of reply 1 was delivered after its cancellation",
      ])
    #expect(
      violations(start + [.action(.interrupted(upTo: 3, generation: 1)), sound(3, 2)]) == [
        "stale: audio of reply 3 was delivered after its cancellation"
      ])
    #expect(
      violations(start + [sound(1, 1), .action(.interrupted(upTo: 1, generation: 1)), sound(2, 2)]) == [])
  }

  @Test("errors without text, of another vendor, with a key or with what was said are found")
  func errors() {
    func told(_ error: DialogError) -> [String] {
      violations(opening + [.event(.error(error))]) { $1.expectsErrors = nil }
    }
    #expect(told(failure()) == [])
    #expect(told(failure(text: "")) == ["errors: an error has no text"])
    #expect(told(failure(vendor: "other")) == ["errors: an error has vendor \"other\", not \"parrot\""])
    #expect(told(failure(text: "no sk-parrot")) == ["redactedErrors: an error contains the key"])
    #expect(
      told(failure(text: "\(ServiceFault.userText)!")) == [
        "redactedErrors: an error contains the content of a message"
      ])
    #expect(
      violations(opening + [.event(.error(failure()))])
        == ["errors: an error was reported without a fault: parrot: network: it is gone"])
    #expect(violations(opening) { $1.expectsErrors = true } == ["errors: a fault was not reported"])
    #expect(
      violations(opening) {
        $0.ending.failure = "key sk-parrot is wrong"
        $1.fails = true
      } == ["redactedErrors: an error contains the key"])
  }

  @Test("a loss that is not reported, not recovered, or without a cause is found")
  func recovery() {
    let missed = violations(opening) {
      $1.losses = 1
      $1.expectsErrors = nil
    }
    #expect(missed == ["recovery: 1 connections were lost, and reconnecting was reported 0 times"])
    let lost = violations(opening + [.event(.error(failure())), .event(.state(.reconnecting))]) {
      $1.losses = 1
      $1.expectsErrors = true
    }
    #expect(lost == ["recovery: listening was not reported after reconnecting"])
    #expect(
      violations(opening + loss.dropFirst()) == ["recovery: a working connection was given up"])
  }

  @Test("a node that does not fail, fails, fails without a message or retries after a refusal is found")
  func refusal() {
    #expect(violations(opening) { $1.fails = true } == ["refusal: the node did not fail"])
    #expect(
      violations(opening) { record, _ in record.ending.failure = "no" } == ["refusal: the node failed: no"])
    #expect(
      violations(opening) {
        $0.ending.failure = ""
        $1.fails = true
      } == ["refusal: the node failed without a message"])
    #expect(
      violations(opening) {
        $0.report.connections = 3
        $1.maxConnections = 1
      } == ["refusal: the node connected 3 times, at most 1 were allowed"])
  }

  @Test(
    "a node that does not stop, leaks blocks, loses events or messages, or violates the protocol is found")
  func rest() {
    #expect(
      violations(opening) { record, _ in record.ending.detached = ["bot"] } == [
        "ending: \"bot\" did not stop in time"
      ])
    #expect(
      violations(opening) { record, _ in record.ending.leakedBlocks = 2 } == [
        "blocks: 2 blocks were not returned"
      ]
    )
    #expect(
      violations(opening) { record, _ in record.ending.lostEvents = 1 } == ["vocabulary: 1 events were lost"])
    #expect(violations(opening + [.invalid("no event")]) == ["vocabulary: no event"])
    let odd: JSONValue = ["a": 1]
    #expect(
      violations(opening) { record, _ in record.report.unknownMessages = [odd] } == [
        "unknownMessages: 1 unknown messages were not posted completely"
      ])
    #expect(
      violations(opening + [.event(.unknown(odd))]) { record, _ in record.report.unknownMessages = [odd] }
        == [])
    #expect(
      violations(opening) { record, _ in record.report.violations = ["oddFrame"] } == ["protocol: oddFrame"])
  }

  @Test("what the service reported is found missing, changed, repeated or out of order, but not after a stop")
  func reported() {
    let gate = DialogEvent.gate(.muted, isOn: true)
    let peer = DialogEvent.peer(DialogPeer("ara", .joined))
    func found(_ entries: [Entry], reports: Set<String> = []) -> [String] {
      violations(opening + entries) { record, expected in
        record.report.events = [gate, peer]
        expected.reports = reports
      }
    }
    #expect(found([.event(gate), .event(peer)], reports: ["gate", "peer"]) == [])
    #expect(
      found([.event(gate), .event(peer)], reports: ["media"]) == [
        "reported: the service did not report media"
      ])
    #expect(
      found([.event(gate), .event(.peer(DialogPeer("other", .joined)))]) == ["reported: peer was not posted"])
    #expect(
      found([.event(peer), .event(gate)]) == ["reported: posted were peer, gate instead of gate, peer"])
    #expect(
      found([.event(gate), .event(gate), .event(peer)]) == [
        "reported: posted were gate, gate, peer instead of gate, peer"
      ])
    #expect(found([.event(gate), .action(.stopped)]) == [])
    #expect(found([.event(peer), .action(.stopped)]) == ["reported: gate was not posted"])
  }

  @Test(
    "an interruption of a protected reply, a muted voice that is heard and a second session left open are found"
  )
  func rules() {
    let interruption: [Entry] = [.event(.interrupted(by: .local))]
    #expect(violations(opening + interruption) == [])
    #expect(
      violations(opening + interruption) { $1.forbidsInterruption = true } == [
        "uninterrupted: a reply was interrupted 1 times"
      ])
    let muted: [Entry] = [
      .event(.gate(.muted, isOn: true)), .action(.spoke(samples: 320)), .event(.gate(.muted, isOn: false)),
      .action(.spoke(samples: 640)),
    ]
    func heard(_ samples: Int) -> [String] {
      violations(opening + muted) {
        $0.report.speechSamples = samples
        $1.receivesAllSpeech = true
      }
    }
    #expect(heard(640) == [])
    #expect(
      heard(960) == [
        "completeSpeech: the user spoke 640 samples that are not silence, and 960 reached the service"
      ])
    func ended(_ count: Int) -> [String] {
      violations(opening) {
        $0.report.sessionEnds = count
        $1.sessions = 2
      }
    }
    #expect(ended(2) == [] && ended(1) == ["sessionEnd: 2 sessions were closed 1 times"])
  }

  @Test("a stream whose address comes too late or never is found, and a fresh key in an error")
  func streams() {
    var streaming = traits
    streaming.streamsReplies = true
    streaming.replies = nil
    streaming.freshKey = "sk-fresh"
    let address = DialogEvent.extra(name: "stream", payload: ["url": "rtmp://127.0.0.1/a"])
    let begin: [Entry] = [.event(.replyStarted(round: nil)), .event(.replyEnded(round: nil, utterances: 0))]
    func found(_ entries: [Entry], _ streams: [String]) -> [String] {
      violations(opening + entries) {
        $0.report.streams = streams
        $1.traits = streaming
        $1.expectsErrors = nil
      }
    }
    #expect(found([.event(address)] + begin, ["rtmp://127.0.0.1/a"]) == [])
    #expect(
      found(begin + [.event(address)], ["rtmp://127.0.0.1/a"]) == [
        "streams: a reply began before the address of its stream was posted"
      ])
    #expect(found(begin, []) == ["streams: no address of a stream was reported"])
    #expect(
      found([.event(.error(failure(text: "no sk-fresh")))], []) == [
        "redactedErrors: an error contains the key"
      ])
  }

  @Test("a command that is not answered, answered twice or wrongly, and an answer to none are found")
  func answers() {
    func answer(_ id: String, _ error: DialogError? = nil) -> Entry {
      .event(.answer(DialogAnswer(id, error.map { .failed($0) } ?? .done(nil))))
    }
    func found(_ entries: [Entry], failed: [String: Int] = [:]) -> [String] {
      violations(opening + entries) { $1.failedAnswers = failed }
    }
    let sent: [Entry] = [.action(.commanded(id: "7"))]
    #expect(found(sent + [answer("7")]) == [])
    #expect(found(sent) == ["answers: commands with the id \"7\": 1, and answers to it: 0"])
    #expect(
      found(sent + [answer("7"), answer("7")]) == [
        "answers: commands with the id \"7\": 1, and answers to it: 2"
      ])
    #expect(found([answer("8")]) == ["answers: commands with the id \"8\": 0, and answers to it: 1"])
    #expect(
      found(sent + [answer("7", failure())]) == [
        "answers: 1 of 1 answers to \"7\" report a failure, and not 0"
      ])
    // The id of a command that waits is used again: that one is refused.
    #expect(found(sent + sent + [answer("7", failure()), answer("7")], failed: ["7": 1]) == [])
    #expect(
      found(sent + sent + [answer("7"), answer("7")], failed: ["7": 1]) == [
        "answers: 0 of 2 answers to \"7\" report a failure, and not 1"
      ])
    #expect(found(sent + [.action(.stopped)]) == [])
    #expect(
      found(sent + [.action(.stopped), answer("7"), answer("7")]) == [
        "answers: commands with the id \"7\": 1, and answers to it: 2"
      ])
    #expect(
      found(sent + [answer("7", failure(text: "no sk-parrot"))], failed: ["7": 1]) == [
        "redactedErrors: an error contains the key"
      ])
  }

  @Test("the replies of audio are read from its samples")
  func samples() {
    #expect(BackendLike.replies(in: [1, 0, 1, 0, 2, 1]) == [1, 258])
    #expect(BackendLike.replies(in: []) == [])
  }
}

/// As much of a double as the inherited methods need.
private final class BackendLike: ServiceDouble {
  static let traits = ServiceTraits(nodeType: "parrot.dialog", vendor: "parrot", key: "k")
  static func start(_ script: ServiceScript) async throws -> BackendLike { BackendLike() }
  var parameters: [JSONValue.Member] { [] }
  var seen: ServiceReport { ServiceReport() }
  func stop() {}
}
