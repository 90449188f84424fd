import MillraceConformance
import MillraceDialog
import Testing

private typealias Entry = ServiceRecord.Entry

/// A record of one turn in which nothing is wrong, to be broken.
private let opening: [Entry] = [
  .told(.state(.connecting)), .told(.connected), .told(.conversationStarted(id: "1")),
  .told(.state(.listening)),
]
private let answer: [Entry] = [
  .told(.state(.thinking)), .told(.state(.responding)), .told(.replyStarted(round: nil)),
  .sound(ServiceRecord.Sound([1], bytes: 100, generation: 1)),
  .sound(ServiceRecord.Sound([], bytes: 0, generation: 1, endsUtterance: true)),
  .told(.replyEnded(round: nil, utterances: 1)), .told(.state(.listening)),
]
private let loss: [Entry] = [
  .told(.error(failure())), .told(.state(.reconnecting)), .told(.connected),
  .told(.conversationStarted(id: "1")), .told(.state(.listening)),
]

private func failure(vendor: String = "parrot", text: String = "it is gone") -> DialogError {
  DialogError(vendor: vendor, category: .network, reaction: .reconnect, text: text)
}

private func sound(_ reply: Int, _ generation: UInt32 = 1, ends: Bool = false) -> Entry {
  .sound(ServiceRecord.Sound([reply], bytes: 2, generation: generation, endsUtterance: ends))
}

private let traits = ServiceTraits(nodeType: "parrot.dialog", vendor: "parrot", key: "sk-parrot")

/// What is amiss in a record.
private func amiss(
  _ entries: [Entry], _ change: (inout ServiceRecord, inout CaseExpectation) -> Void = { _, _ in }
) -> [String] {
  var record = ServiceRecord(entries)
  var expected = CaseExpectation(traits)
  change(&record, &expected)
  return Conformance.findings(record, expected)
}

@Suite("What holds for every service node") struct InvariantTests {
  @Test("a dialogue in which nothing is wrong has nothing amiss, nor has one that was lost and found")
  func good() {
    #expect(amiss(opening + answer) == [])
    #expect(
      amiss(opening + answer + loss + [.told(.state(.closed))]) { _, expected in
        expected.errs = true
        expected.losses = 1
      } == [])
  }

  @Test(
    "states out of order are told",
    arguments: [
      ([.listening], "listening was told after idle"),
      ([.connecting, .thinking], "thinking was told after connecting"),
      ([.connecting, .closed, .listening], "listening was told after closed"),
      ([.connecting, .closed, .closed], "closed was told after closed"),
      ([.connecting, .listening, .connecting], "connecting was told after listening"),
      ([.connecting, .reconnecting, .responding], "responding was told after reconnecting"),
    ] as [([DialogState], String)])
  func states(states: [DialogState], words: String) {
    #expect(amiss(states.map { .told(.state($0)) }).contains("legalStates: \(words)"))
  }

  @Test("every pair of states is judged, and only these may follow each other")
  func pairs() {
    let legal: [DialogState: Set<DialogState>] = [
      .idle: [.connecting, .closed],
      .connecting: [.connecting, .listening, .reconnecting, .closed],
      .listening: [.listening, .thinking, .responding, .reconnecting, .closed],
      .thinking: [.thinking, .listening, .responding, .reconnecting, .closed],
      .responding: [.responding, .listening, .thinking, .reconnecting, .closed],
      .reconnecting: [.reconnecting, .connecting, .listening, .closed], .closed: [],
    ]
    // A way to each state that is legal.
    let ways: [DialogState: [DialogState]] = [
      .idle: [], .connecting: [.connecting], .listening: [.connecting, .listening],
      .thinking: [.connecting, .listening, .thinking], .responding: [.connecting, .listening, .responding],
      .reconnecting: [.connecting, .reconnecting], .closed: [.closed],
    ]
    for (state, way) in ways {
      for next in DialogState.allCases where !(state == .idle && next == .idle) {
        let found = amiss((way + [next]).map { .told(.state($0)) }).contains { $0.hasPrefix("legalStates") }
        #expect(found == !(legal[state]?.contains(next) ?? false), "\(next) after \(state)")
      }
    }
  }

  @Test("a beginning out of order is told, for each connection anew")
  func beginnings() {
    #expect(
      amiss([.told(.state(.connecting)), .told(.conversationStarted(id: "1")), .told(.state(.listening))])
        == [
          "beginnings: conversationStarted was told before connected",
          "beginnings: listening was told before connected",
        ])
    #expect(
      amiss([.told(.state(.connecting)), .told(.connected), .told(.state(.listening))]) == [
        "beginnings: listening was told before conversationStarted"
      ])
    #expect(
      amiss(opening + [.told(.connected)]) == ["beginnings: connected was told twice for one connection"])
    let again = amiss(
      opening + [.told(.error(failure())), .told(.state(.reconnecting)), .told(.state(.listening))]
    ) { $1.errs = true }
    #expect(again.contains("beginnings: listening was told before connected"))
  }

  @Test("a reply without an end, an end without a reply and two replies at once are told")
  func replies() {
    #expect(
      amiss(opening + [.told(.replyStarted(round: nil))]) == [
        "replyEnds: a reply that had started was never told to have ended"
      ])
    #expect(
      amiss(opening + answer + [.told(.replyEnded(round: nil, utterances: 0))]) == [
        "replyEnds: replyEnded was told without a replyStarted"
      ])
    #expect(
      amiss(
        opening + [
          .told(.replyStarted(round: nil)), .told(.replyStarted(round: nil)), .told(.interrupted(by: .user)),
        ])
        == ["replyEnds: replyStarted was told while a reply had not ended"])
    #expect(amiss(opening + [.told(.replyStarted(round: nil)), .did(.stopped)]) == [])
  }

  @Test("sound that does not end, ends too often, or runs into the next reply is told")
  func utterances() {
    let start: [Entry] = opening + [.told(.replyStarted(round: nil))]
    let end: [Entry] = [.told(.replyEnded(round: nil, utterances: 1)), .told(.state(.listening))]
    #expect(
      amiss(start + [sound(1)] + end) == ["utterances: replyEnded told of 1 utterances, and 0 ended"])
    #expect(
      amiss(start + [sound(1, ends: true), sound(1, ends: true)] + end) == [
        "utterances: 2 utterances ended, and replyEnded told of 1"
      ])
    #expect(
      amiss(start + [sound(1), sound(2, ends: true)] + end) == [
        "utterances: sound of reply 2 came before the end of reply 1"
      ])
  }

  @Test("a reply of which bytes are missing is told, and one that never came")
  func whole() {
    let short = amiss(opening + answer) {
      $0.sight.soundBytes = [1: 120]
      $1.wholeReplies = [1, 2]
    }
    #expect(
      short == [
        "wholeSound: of reply 1 120 bytes were sent, and 100 came out",
        "wholeSound: of reply 2 0 bytes were sent, and 0 came out",
      ])
    #expect(
      amiss(opening + answer) {
        $0.sight.soundBytes = [1: 100]
        $1.wholeReplies = [1]
      } == [])
  }

  @Test("a voice of which samples are missing or came twice is told, where all of it has to be heard")
  func wholeVoice() {
    func heard(_ samples: Int, all: Bool = true) -> [String] {
      amiss(opening + [.did(.spoke(samples: 320)), .did(.spoke(samples: 320))]) {
        $0.sight.voiceSamples = samples
        $1.hearsAll = all
      }
    }
    let text = "wholeVoice: the user said 640 samples that are not silence, and"
    #expect(heard(640) == [] && heard(0, all: false) == [])
    #expect(heard(639) == ["\(text) 639 came to the service"])
    #expect(heard(641) == ["\(text) 641 came to the service"])
    #expect(amiss(opening) { $1.hearsAll = true } != [])
  }

  @Test("a dialogue that is drained without a good-bye is told, and one that says it twice")
  func goodBye() {
    func said(_ count: Int, _ entries: [Entry]) -> [String] {
      amiss(entries) { record, _ in record.sight.goodByes = count }
    }
    let drained: [Entry] = [.did(.drained), .told(.state(.closed))]
    #expect(said(1, opening + drained) == [])
    #expect(said(0, opening + drained) == ["goodBye: the dialogue ended without a good-bye"])
    #expect(said(2, opening + drained) == ["goodBye: good-bye was said 2 times"])
    // Nobody is left to say it to: the service has ended the dialogue, or it has not begun; and a graph that stops waits for nothing.
    #expect(said(0, opening + [.told(.state(.closed))] + [.did(.drained)]) == [])
    #expect(said(0, [.told(.state(.connecting)), .did(.drained)]) == [])
    #expect(said(0, opening + [.did(.stopped)]) == [])
  }

  @Test("a sample of an old reply after an interruption is told")
  func stale() {
    let start: [Entry] = opening + [.told(.replyStarted(round: nil)), .told(.interrupted(by: .local))]
    #expect(
      amiss(start + [sound(1, 1), .did(.interrupted(upTo: 1, generation: 1)), sound(1, 2)]) == [
        "stale: sound of reply 1 came as part of two replies of the graph",
        "stale: sound of reply 1 came after it was voided",
      ])
    #expect(
      amiss(start + [.did(.interrupted(upTo: 3, generation: 1)), sound(3, 2)]) == [
        "stale: sound of reply 3 came after it was voided"
      ])
    #expect(amiss(start + [sound(1, 1), .did(.interrupted(upTo: 1, generation: 1)), sound(2, 2)]) == [])
  }

  @Test("errors without words, of somebody else, with a key or with what was said in them are told")
  func errors() {
    func told(_ error: DialogError) -> [String] { amiss(opening + [.told(.error(error))]) { $1.errs = nil } }
    #expect(told(failure()) == [])
    #expect(told(failure(text: "")) == ["errors: an error has no words"])
    #expect(told(failure(vendor: "other")) == ["errors: an error is of \"other\", not of \"parrot\""])
    #expect(told(failure(text: "no sk-parrot")) == ["silentErrors: an error has the key in it"])
    #expect(
      told(failure(text: "\(ServiceFault.words)!")) == [
        "silentErrors: an error has in it what a message said"
      ])
    #expect(
      amiss(opening + [.told(.error(failure()))])
        == ["errors: an error was told where nothing was wrong: parrot: network: it is gone"])
    #expect(amiss(opening) { $1.errs = true } == ["errors: nothing was told of what went wrong"])
    #expect(
      amiss(opening) {
        $0.ending.failure = "key sk-parrot is wrong"
        $1.fails = true
      } == ["silentErrors: an error has the key in it"])
  }

  @Test("a loss that is not told, not made good, or made up is told")
  func recovery() {
    let missed = amiss(opening) {
      $1.losses = 1
      $1.errs = nil
    }
    #expect(missed == ["recovery: 1 connections were lost, and reconnecting was told 0 times"])
    let lost = amiss(opening + [.told(.error(failure())), .told(.state(.reconnecting))]) {
      $1.losses = 1
      $1.errs = true
    }
    #expect(lost == ["recovery: listening was not told after reconnecting"])
    #expect(
      amiss(opening + loss.dropFirst()) == ["recovery: a connection was given up that nobody had broken"])
  }

  @Test("a node that does not fail, fails, fails without words or comes again after a refusal is told")
  func refusal() {
    #expect(amiss(opening) { $1.fails = true } == ["refusal: the node did not fail"])
    #expect(amiss(opening) { record, _ in record.ending.failure = "no" } == ["refusal: the node failed: no"])
    #expect(
      amiss(opening) {
        $0.ending.failure = ""
        $1.fails = true
      } == ["refusal: the node failed without words"])
    #expect(
      amiss(opening) {
        $0.sight.visits = 3
        $1.mostVisits = 1
      } == ["refusal: it came 3 times, 1 at most were due"])
  }

  @Test("a node that does not stop, keeps blocks, loses events or messages, or annoys the service is told")
  func rest() {
    #expect(
      amiss(opening) { record, _ in record.ending.detached = ["bot"] } == [
        "ending: \"bot\" did not stop in time"
      ])
    #expect(
      amiss(opening) { record, _ in record.ending.leakedBlocks = 2 } == ["blocks: 2 blocks did not come back"]
    )
    #expect(amiss(opening) { record, _ in record.ending.lostEvents = 1 } == ["legible: 1 events were lost"])
    #expect(amiss(opening + [.illegible("no event")]) == ["legible: no event"])
    let odd: JSONValue = ["a": 1]
    #expect(
      amiss(opening) { record, _ in record.sight.oddities = [odd] } == [
        "nothingLost: 1 messages nobody knows were not told as unknown with all they hold"
      ])
    #expect(amiss(opening + [.told(.unknown(odd))]) { record, _ in record.sight.oddities = [odd] } == [])
    #expect(amiss(opening) { record, _ in record.sight.violations = ["oddFrame"] } == ["obedience: oddFrame"])
  }

  @Test("which replies bytes belong to is read from their samples")
  func samples() {
    #expect(BackendLike.replies(in: [1, 0, 1, 0, 2, 1]) == [1, 258])
    #expect(BackendLike.replies(in: []) == [])
  }
}

/// As much of a double as what is inherited needs.
private final class BackendLike: ServiceDouble {
  static let traits = ServiceTraits(nodeType: "parrot.dialog", vendor: "parrot", key: "k")
  static func start(_ script: ServiceScript) async throws -> BackendLike { BackendLike() }
  var parameters: [JSONValue.Member] { [] }
  var seen: ServiceSight { ServiceSight() }
  func stop() {}
}
