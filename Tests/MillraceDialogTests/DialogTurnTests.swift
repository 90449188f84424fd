import MillraceCore
import MillraceDialog
import MillraceTesting
import TestSystem
import Testing

private let ms: Nanoseconds = 1_000_000
private let events = OutputShape(.event, packetDuration: nil, packetBytes: 448)

private func bench(_ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
  try NodeBench(
    DialogTurn.self, parameters,
    inputs: ["service": events, "playback": events, "voice": events, "control": events, "stream": events])
}

extension NodeBench {
  fileprivate func service(_ texts: String...) throws {
    for text in texts { push(text: text, to: "service") }
    try run()
  }
  fileprivate func play(_ text: String) throws {
    push(text: text, to: "playback")
    try run()
  }
  fileprivate func command(_ text: String) throws {
    push(text: text, to: "control")
    try run()
  }
  /// The states so far, such as `listening thinking`.
  fileprivate func states() -> String {
    events().filter { $0.name == "turn" }.compactMap { $0.string("to") }.joined(separator: " ")
  }
}

private let listening = #"{"time":1.0,"node":"bot","event":"state","state":"listening"}"#
private let thinking = #"{"event":"state","state":"thinking"}"#
private let replyStarted = #"{"event":"replyStarted","round":"7"}"#
private let replyEnded = #"{"event":"replyEnded","round":"7","utterances":1}"#
private let audible = #"{"time":2.0,"node":"play","event":"replyAudible","reply":1,"at":2.02}"#
private let finished =
  #"{"time":3.0,"node":"play","event":"replyFinished","reply":1,"samples":480,"ms":30.0}"#

@Suite("dialog.turn") struct DialogTurnTests {
  @Test("a complete turn: commands in order, playback reports, and the floor returned")
  func turn() throws {
    let bench = try bench(["mode": "pushToTalk"])
    try bench.service(listening)
    try bench.command(#"{"command":"startSpeech"}"#)
    try bench.command(#"{"command":"stopSpeech"}"#)
    try bench.service(thinking, replyStarted)
    try bench.play(audible)
    try bench.service(replyEnded)
    try bench.play(finished)
    try bench.service(listening)
    #expect(
      bench.texts("control") == [
        #"{"command":"startSpeech"}"#, #"{"command":"stopSpeech"}"#, audible, finished,
      ])
    let posted = bench.events()
    #expect(
      posted.filter { $0.name == "turn" }.compactMap { $0.string("to") }
        == [
          "connecting", "listening", "hearing", "thinking", "responding", "draining", "yielding", "listening",
        ])
    let heard = try #require(posted.first { $0.name == "heard" })
    #expect(heard.number("samples") == 480 && heard.number("ms") == 30 && heard.bool("whole") == true)
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("of a stream's events the service gets its first picture, and nothing else")
  func firstPicture() throws {
    let bench = try bench()
    try bench.service(listening)
    let picture = #"{"time":1.5,"node":"pull","event":"firstPicture","ms":700}"#
    for event in [#"{"event":"connected","ms":3,"attempts":1}"#, picture, "{}", "no event"] {
      bench.push(text: event, to: "stream")
      try bench.run()
    }
    #expect(bench.texts("control") == [picture])
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test(
    "a voice over a reply ducks playback, then interrupts the graph's replies and the service, in time"
  )
  func bargeIn() throws {
    let bench = try bench()
    try bench.service(listening, thinking, replyStarted)
    bench.push(text: #"{"event":"speechStarted","position":100,"delay":100.0}"#, to: "voice")
    try bench.run()
    #expect(bench.timerRequest == 150 * ms)
    _ = bench.texts("control")
    try bench.advance(to: 149 * ms)
    #expect(bench.texts("control") == [])
    try bench.advance(to: 150 * ms)
    #expect(bench.texts("control") == [#"{"command":"interrupt"}"#])
    let event = try #require(bench.events().first { $0.name == "bargeIn" })
    #expect(event.string("by") == "voice" && event.number("ms") == 250)
    #expect(bench.close() == [])
  }

  @Test(
    "commands that do not concern turns are passed on at once and unchanged, from the port and from the program"
  )
  func passing() throws {
    let bench = try bench()
    let update = #"{"command":"update","values":{"x":"\"interrupt\""}}"#
    try bench.command(update)
    try bench.send(#"{"command":"mute","track":"audio","on":true}"#)
    #expect(bench.texts("control") == [update, #"{"command":"mute","track":"audio","on":true}"#])
    try bench.command("hello")
    #expect(bench.events().last?.name == "badCommand")
    #expect(bench.texts("control") == [])
  }

  @Test("a question over a reply waits for the service; a newer one replaces it, and the loss is reported")
  func question() throws {
    let bench = try bench(["mode": "pushToTalk"])
    try bench.service(listening, thinking, replyStarted)
    try bench.command(#"{"command":"ask","text":"one"}"#)
    try bench.command(#"{"command":"ask","text":"two"}"#)
    #expect(bench.texts("control") == [#"{"command":"interrupt"}"#])
    #expect(bench.events().contains { $0.name == "questionDropped" })
    try bench.service(listening)
    #expect(bench.texts("control") == [#"{"command":"ask","text":"two"}"#])
    #expect(bench.close() == [])
  }

  @Test(
    "a question with an image, longer than the node's own blocks, is passed on unchanged, at once and after waiting",
    arguments: [400, 512, 513, 180_000])
  func longQuestion(length: Int) throws {
    let bench = try bench(["mode": "pushToTalk"])
    let head = #"{"command":"ask","text":"","images":[{"base64":""#
    let ask = head + String(repeating: "A", count: length - head.utf8.count - 4) + #""}]}"#
    try bench.service(listening)
    try bench.send(ask)
    #expect(bench.texts("control") == [ask])
    try bench.service(thinking, replyStarted)
    try bench.send(ask)
    #expect(bench.texts("control") == [#"{"command":"interrupt"}"#])
    try bench.service(listening)
    #expect(bench.texts("control") == [ask])
    let extra = #"{"command":"update","values":""# + String(repeating: "B", count: length) + #""}"#
    try bench.send(extra)
    #expect(bench.texts("control") == [extra])
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("a command over the limit is reported with its length, and the turn continues")
  func tooLong() throws {
    let bench = try bench(["commandBytes": 1_000])
    try bench.service(listening)
    try bench.send(#"{"command":"ask","text":""# + String(repeating: "A", count: 1_000) + #""}"#)
    let report = try #require(bench.events().last)
    #expect(report.name == "commandTooLong")
    #expect(report.number("bytes") == 1_027 && report.number("most") == 1_000)
    #expect(bench.texts("control") == [])
    try bench.send(#"{"command":"ask","text":"short"}"#)
    #expect(bench.texts("control") == [#"{"command":"ask","text":"short"}"#])
  }

  @Test("another node's interruption reaches the service; the node's own is not handled twice")
  func interruptions() throws {
    let bench = try bench()
    try bench.service(listening, thinking, replyStarted)
    bench.interrupt()
    try bench.advance(by: 49 * ms)
    #expect(bench.texts("control") == [])
    try bench.advance(by: ms)
    #expect(bench.texts("control") == [#"{"command":"interrupt"}"#])
    try bench.service(listening, thinking, replyStarted)
    try bench.command(#"{"command":"interrupt"}"#)
    // The engine applies the node's request and notifies every node.
    bench.interrupt()
    try bench.run()
    #expect(bench.texts("control") == [#"{"command":"interrupt"}"#])
  }

  @Test("several of its own interruptions notified at once do not hide another node's")
  func interruptionsInOne() throws {
    let bench = try bench()
    for _ in 0..<2 {
      try bench.service(listening, thinking, replyStarted)
      try bench.command(#"{"command":"interrupt"}"#)
    }
    bench.interrupt()
    try bench.run()
    try bench.service(listening, thinking, replyStarted)
    _ = bench.texts("control")
    bench.interrupt()
    try bench.advance(by: 50 * ms)
    #expect(bench.texts("control") == [#"{"command":"interrupt"}"#])
  }

  @Test(
    "a service that caused the cancellation itself is not asked to stop",
    arguments: [
      #"{"event":"interrupted","by":"user"}"#, listening, #"{"event":"speechStarted"}"#,
      #"{"event":"error","reaction":"continue","scope":"reply"}"#,
    ])
  func cancelledByService(event: String) throws {
    let bench = try bench()
    try bench.service(listening, thinking, replyStarted)
    bench.interrupt()
    try bench.service(event)
    try bench.advance(by: 200 * ms)
    #expect(bench.texts("control") == [])
    // The next reply begins at once, and no late event of the old one interrupts it.
    try bench.service(listening, thinking, replyStarted)
    try bench.advance(by: 200 * ms)
    #expect(bench.texts("control") == [])
    #expect(bench.states().hasSuffix("responding"))
  }

  @Test("a thousand turns allocate nothing")
  func heap() throws {
    let bench = try bench()
    func turn() throws {
      try bench.service(
        listening, #"{"event":"speechStarted"}"#, #"{"event":"speechEnded"}"#, thinking, replyStarted)
      try bench.play(audible)
      bench.push(text: #"{"event":"speechStarted","position":100,"delay":0.0}"#, to: "voice")
      bench.push(text: #"{"event":"speechEnded","position":100,"delay":0.0}"#, to: "voice")
      try bench.run()
      try bench.service(replyEnded)
      try bench.play(finished)
      try bench.advance(by: 1000 * ms)
    }
    try turn()
    bench.resetHeapRequests()
    for _ in 0..<1000 { try turn() }
    #expect(bench.heapRequests == 0)
    #expect(bench.states().contains("suspecting"))
  }

  @Test("a graph whose confirm window is shorter than the speech it waits for is refused")
  func refused() {
    #expect(throws: BenchProblem.self) { try bench(["minSpeech": 800, "confirm": 700]) }
  }

  @Test("absurd utterance counts and durations do no harm")
  func anyNumbers() throws {
    let bench = try bench()
    try bench.service(listening, thinking, replyStarted)
    for number in [Int.max, 999_999_999_999_999_999, -1, Int.min] + Array(repeating: 1 << 62, count: 8) {
      try bench.service(#"{"event":"replyEnded","utterances":\#(number)}"#, replyStarted)
      try bench.play(#"{"event":"replyFinished","reply":1,"samples":\#(number),"ms":\#(number)}"#)
    }
    #expect(bench.states().hasSuffix("responding"))
    #expect(bench.close() == [])
  }

  @Test("events of every kind, corrupted ones too, leave it working")
  func garbage() throws {
    let bench = try bench()
    var dice = Dice(seed: 5)
    for event in everyEvent { try bench.service(event.json.text) }
    for _ in 0..<2000 {
      var bytes = Array(everyEvent[dice.below(everyEvent.count)].json.bytes.prefix(400))
      for _ in 0..<dice.below(5) { bytes[dice.below(bytes.count)] = UInt8(dice.below(256)) }
      bench.push(bytes: bytes, to: ["service", "playback", "voice", "control", "stream"][dice.below(5)])
      try bench.run()
    }
    try bench.service(
      #"{"event":"state","state":"closed"}"#, #"{"event":"state","state":"connecting"}"#, listening)
    #expect(bench.states().hasSuffix("listening"))
    #expect(bench.close() == [])
  }
}
