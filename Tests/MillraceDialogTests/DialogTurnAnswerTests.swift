import MillraceCore
import MillraceDialog
import MillraceTesting
import Testing

private let events = OutputShape(.event, packetDuration: nil, packetBytes: 448)

private func bench(_ mode: DialogMode = .pushToTalk, _ inputs: [String] = ["service", "control"]) throws
  -> NodeBench
{
  try NodeBench(
    DialogTurn.self, ["mode": .string(mode.rawValue), "commandBytes": 1_000],
    inputs: Dictionary(uniqueKeysWithValues: inputs.map { ($0, events) }))
}

extension NodeBench {
  fileprivate func service(_ texts: String...) throws {
    for text in texts { push(text: text, to: "service") }
    try run()
  }

  fileprivate func command(_ text: String) throws {
    push(text: text, to: "control")
    try run()
  }

  /// The answers since the last call: `1` done, `2: question discarded`.
  fileprivate func answers() throws -> [String] {
    try self.events().filter { $0.name == "answer" }.map { event in
      guard case .answer(let answer) = try DialogEvent(parsing: event.json) else { return "no answer" }
      switch answer.result {
      case .done: return answer.id
      case .failed(let error):
        #expect(error.vendor == "dialog" && error.scope == .command && error.reaction == .continue)
        return "\(answer.id): \(error.text)"
      }
    }
  }
}

private let listening = #"{"event":"state","state":"listening"}"#
private let thinking = #"{"event":"state","state":"thinking"}"#
private let replyStarted = #"{"event":"replyStarted","round":"7"}"#
private let uninterruptible = #"{"event":"gate","gate":"uninterruptible","on":true}"#

@Suite("answers of dialog.turn") struct DialogTurnAnswerTests {
  @Test("a command to the turn is answered once, and the command it causes has no id")
  func turnCommands() throws {
    let bench = try bench()
    try bench.service(listening)
    try bench.command(#"{"command":"startSpeech","id":"a"}"#)
    try bench.command(#"{"command":"stopSpeech","id":2}"#)
    try bench.service(thinking, replyStarted)
    try bench.send(#"{"id":"i","command":"interrupt"}"#)
    try bench.command(#"{"command":"cancelSpeech","id":"c"}"#)
    try bench.command(#"{"command":"hangUp","id":"h"}"#)
    #expect(try bench.answers() == ["a", "2", "i", "c", "h"])
    #expect(
      bench.texts("control") == [
        #"{"command":"startSpeech"}"#, #"{"command":"stopSpeech"}"#, #"{"command":"interrupt"}"#,
        #"{"command":"hangUp"}"#,
      ])
    #expect(bench.close() == [])
  }

  @Test(
    "a command without effect is refused with the reason: in the answer, or in an event where it has no id")
  func refused() throws {
    let duplex = try bench(.duplex)
    try duplex.service(listening)
    try duplex.command(#"{"command":"startSpeech","id":"1"}"#)
    #expect(try duplex.answers() == ["1: the mode is duplex, which has no button: speak at any time"])
    try duplex.command(#"{"command":"stopSpeech"}"#)
    let event = try #require(duplex.events().last)
    #expect(event.name == "commandRefused" && event.string("text")?.contains("no button") == true)
    try duplex.service(thinking, replyStarted, uninterruptible)
    try duplex.command(#"{"command":"interrupt","id":"2"}"#)
    #expect(
      try duplex.answers() == [
        #"2: the service does not allow this reply to be interrupted; send it with "force""#
      ])
    #expect(duplex.texts("control") == [])
    try duplex.command(#"{"command":"interrupt","id":"3","force":true}"#)
    #expect(try duplex.answers() == ["3"])
    #expect(duplex.texts("control") == [#"{"command":"interrupt","force":true}"#])
    try duplex.service(#"{"event":"state","state":"closed"}"#)
    try duplex.command(#"{"command":"hangUp","id":"4"}"#)
    #expect(try duplex.answers() == ["4: the dialogue has ended"])
  }

  @Test("a question is answered by the service when it is passed on, and here when it is discarded")
  func questions() throws {
    let bench = try bench()
    func ask(_ id: String) -> String { #"{"command":"ask","text":"x","id":"\#(id)"}"# }
    try bench.command(ask("1"))
    try bench.command(ask("2"))
    #expect(try bench.answers() == ["1: question discarded: another one replaced it"])
    try bench.service(listening)
    #expect(bench.texts("control") == [ask("2")])
    #expect(try bench.answers() == [])
    try bench.service(thinking, replyStarted)
    try bench.command(ask("3"))
    try bench.service(#"{"event":"state","state":"reconnecting"}"#)
    #expect(try bench.answers() == ["3: question discarded: the connection was lost"])
    try bench.command(ask("4"))
    try bench.command(#"{"command":"startSpeech"}"#)
    #expect(try bench.answers() == ["4: question discarded: the user speaks instead"])
    try bench.command(ask("5"))
    try bench.command(#"{"command":"hangUp"}"#)
    #expect(try bench.answers() == ["5: question discarded: the dialogue has ended"])
    try bench.command(ask("6"))
    #expect(try bench.answers() == ["6: question discarded: there is no dialogue"])
    #expect(bench.texts("control") == [#"{"command":"interrupt"}"#, #"{"command":"hangUp"}"#])
    #expect(bench.close() == [])
  }

  @Test(
    "what no service takes as a question is passed on, and the turn does not wait for its answer",
    arguments: [
      #"{"command":"say","id":1}"#, #"{"command":"ask","text":"","id":1}"#, #"{"command":"say","text":7}"#,
      #"{"command":"say","text":"x","force":"yes"}"#,
    ])
  func noQuestion(command: String) throws {
    let bench = try bench()
    try bench.service(listening)
    try bench.command(command)
    #expect(bench.texts("control") == [command])
    try bench.command(#"{"command":"startSpeech","id":"2"}"#)
    #expect(bench.texts("control") == [#"{"command":"startSpeech"}"#])
    try bench.command(#"{"command":"stopSpeech"}"#)
    try bench.service(listening)
    // A picture needs no words.
    let picture = #"{"command":"ask","text":"","images":[{"url":"https://h/p.jpg"}]}"#
    try bench.command(picture)
    #expect(bench.texts("control") == [#"{"command":"stopSpeech"}"#, picture])
    let changes = try bench.events().filter { $0.name == "turn" }
    #expect(changes.last?.string("to") == "thinking" && changes.last?.string("cause") == "ask")
  }

  @Test("a question that still waits when the graph ends is answered")
  func graphEnds() throws {
    let bench = try bench()
    try bench.command(#"{"command":"say","text":"x","id":"1"}"#)
    try bench.finish()
    #expect(try bench.answers() == ["1: question discarded: the graph ends"])
    #expect(bench.close() == [])
  }

  @Test(
    "other commands are passed on with their id, and not answered here; the end of one call is one of them")
  func passedOn() throws {
    let bench = try bench()
    for command in [
      #"{"command":"update","values":{"a":1},"id":"1"}"#, #"{"command":"begin","id":"2"}"#,
      #"{"command":"hangUp","call":"c","id":"3"}"#,
      #"{"command":"subscribe","track":"audio","on":true,"id":""}"#,
    ] {
      try bench.command(command)
      #expect(bench.texts("control") == [command])
      #expect(try bench.answers() == [])
    }
  }

  @Test("a command that is too long, is none, or has nowhere to go is answered as failed")
  func discarded() throws {
    let bench = try bench()
    try bench.send(
      #"{"id":"1","command":"ask","text":"\#(String(repeating: "A", count: 1_000))"}"#)
    #expect(try bench.answers() == [#"1: the command is longer than "commandBytes" of dialog.turn"#])
    try bench.command(#"{"order":"interrupt","id":"2"}"#)
    #expect(try bench.answers() == [#"2: invalid command: it has no "command""#])
    try bench.command(#"{"event":"answer","id":"3"}"#)
    #expect(try bench.answers() == [])
    let alone = try NodeBench(
      DialogTurn.self, [:], inputs: ["service": events, "control": events], outputs: ["events"])
    try alone.command(#"{"command":"update","values":{},"id":"4"}"#)
    #expect(
      try alone.answers() == [#"4: no service takes it: the output "control" is not linked"#])
  }

  @Test(
    "an id comes back as it was sent, whatever it consists of",
    arguments: [
      (#""1""#, "1"), ("7", "7"), ("-7", "-7"), ("7.0", "7"), ("9223372036854775807", "9223372036854775807"),
      (#""a\"b\\c\/\n""#, "a\"b\\c/\n"),
      (#""grüß 😀""#, "grüß 😀"),
      (#""\u0041\u00e4\u20ac\ud83d\ude00""#, "Aä€😀"),
      ("\"\(String(repeating: "x", count: 128))\"", String(repeating: "x", count: 128)),
      ("\"\(String(repeating: "\\u0041", count: 128))\"", String(repeating: "A", count: 128)),
    ])
  func ids(json: String, id: String) throws {
    let bench = try NodeBench(
      DialogTurn.self, [:],
      inputs: ["service": events, "control": OutputShape(.event, packetDuration: nil, packetBytes: 1_000)])
    let text = #"{"command":"hangUp","id":\#(json)}"#
    try bench.command(text)
    #expect(try bench.answers() == [id])
  }

  @Test(
    "a command with an invalid id is not carried out, and counted",
    arguments: [
      #""""#, "true", "7.5", "[1]", "\"\(String(repeating: "x", count: 129))\"",
      "\"\(String(repeating: "ä", count: 65))\"", "9223372036854775808",
    ])
  func invalidIDs(json: String) throws {
    let bench = try bench(.duplex)
    try bench.service(listening)
    try bench.command(#"{"command":"hangUp","id":\#(json)}"#)
    #expect(bench.events().last?.name == "badCommand")
    #expect(bench.texts("control") == [])
    try bench.command(#"{"command":"hangUp","id":null}"#)
    #expect(bench.texts("control") == [#"{"command":"hangUp"}"#])
  }

  @Test("a command for a service that has ended is answered here")
  func endedService() throws {
    let bench = try bench(.duplex)
    try bench.service(listening)
    bench.end("service")
    try bench.command(#"{"command":"update","values":{},"id":"1"}"#)
    #expect(try bench.answers() == ["1: the service has ended"])
    #expect(bench.texts("control") == [])
  }

  @Test("an error without a scope concerns the reply where the dialogue continues")
  func olderErrors() throws {
    for (error, state) in [
      (#"{"event":"error","vendor":"own","category":"llm","reaction":"continue","text":"x"}"#, "yielding"),
      (#"{"event":"error","vendor":"own","category":"llm","reaction":"reconnect","text":"x"}"#, "responding"),
    ] {
      let bench = try bench(.duplex)
      try bench.service(listening, thinking, replyStarted, error)
      #expect(bench.events().filter { $0.name == "turn" }.last?.string("to") == state, "\(error)")
    }
  }

  @Test("answering allocates nothing")
  func heap() throws {
    let bench = try bench(.duplex)
    func round() throws {
      try bench.service(listening, thinking, replyStarted, uninterruptible)
      for command in [
        #"{"command":"interrupt","id":"a\u0041"}"#, #"{"command":"startSpeech","id":7}"#,
        #"{"command":"ask","text":"x","id":"1"}"#, #"{"command":"ask","text":"x","id":"2"}"#,
        #"{"command":"update","values":{},"id":"3"}"#, #"{"command":"interrupt","force":true,"id":"4"}"#,
      ] { try bench.command(command) }
      try bench.service(#"{"event":"error","reaction":"continue","scope":"reply","round":"7"}"#, listening)
    }
    try round()
    bench.resetHeapRequests()
    for _ in 0..<200 { try round() }
    #expect(bench.heapRequests == 0)
    #expect(try bench.answers().count == 4 * 201)
  }
}

/// What an error ends.
@Suite("errors and the turn") struct TurnErrorTests {
  @Test(
    "a passing error ends a reply only if it is about the reply",
    arguments: DialogError.Scope.allCases, ["responding", "draining"])
  func scopes(scope: DialogError.Scope, state: String) throws {
    let bench = try NodeBench(
      DialogTurn.self, [:], inputs: ["service": events, "playback": events, "control": events])
    try bench.service(listening, thinking, replyStarted)
    if state == "draining" { try bench.service(#"{"event":"replyEnded","round":"7","utterances":1}"#) }
    let error = DialogError(
      vendor: "ivh", category: .request, reaction: .continue, scope: scope, text: "not downloaded")
    bench.push(text: DialogEvent.error(error).json.text, to: "service")
    var isCancelled = false
    while try bench.run(calls: 1) > 0 { isCancelled = isCancelled || bench.requests.contains(.interrupt) }
    let states = bench.events().filter { $0.name == "turn" }.compactMap { $0.string("to") }
    #expect(states.last == (scope == .reply ? "yielding" : state))
    #expect(isCancelled == (scope == .reply))
    #expect(bench.texts("control") == [])
  }

  @Test("an error about an older reply does not end the one that is here")
  func older() throws {
    let bench = try bench(.duplex)
    try bench.service(
      listening, thinking, replyStarted,
      #"{"event":"error","vendor":"tuya","reaction":"continue","scope":"reply","round":"6","text":"late"}"#,
      #"{"event":"interrupted","by":"service","round":"6"}"#)
    #expect(bench.events().last?.string("to") == "responding")
    try bench.service(#"{"event":"interrupted","by":"service","round":"7"}"#)
    #expect(bench.events().contains { $0.name == "turn" && $0.string("to") == "yielding" })
  }
}
