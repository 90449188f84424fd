import MillraceBailian
import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

/// Requests and updates.
extension SessionTests {
  @Test("without playback reports, delivered audio counts as heard")
  func delivered() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex, followsPlayback: false),
      ["start", "opened", "Started", "Listening", "Thinking", "RespondingStarted", "audio"])
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    #expect(
      session.handle(try #require(inputs["RespondingEnded"]), at: SessionScript.second).map(
        SessionScript.word)
        == ["endUtterance", "replyEnded 1"])
    #expect(session.handle(.finished, at: SessionScript.second).isEmpty)
    #expect(
      session.handle(.delivered, at: SessionScript.second).map(SessionScript.word) == [
        "> LocalRespondingEnded"
      ])
  }

  @Test(
    "commands of the service are posted when it listens; the video channel is requested, used once open, and closed"
  )
  func video() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .responding, .duplex))
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    func handle(_ names: String...) throws -> [String] {
      try names.flatMap {
        session.handle(try #require(inputs[$0]), at: SessionScript.second).map(SessionScript.word)
      }
    }
    let open = try SessionScript.message(
      #""event":"RespondingContent","text":"","finished":true,"extra_info":{"commands":"[{\"name\":\"open_videochat\"}]"}"#
    )
    #expect(session.handle(open, at: SessionScript.second).map(SessionScript.word) == ["reply"])
    #expect(
      try handle("RespondingEnded", "finished", "Listening").suffix(3) == [
        "state listening", "command", "> RequestToRespond",
      ])
    #expect(!session.takesPictures)
    _ = try handle("Thinking", "Responding", "RespondingStarted", "audio", "audible", "RespondingEnded")
    #expect(!session.takesPictures)
    _ = try handle("finished", "Listening")
    #expect(session.takesPictures)
    _ = try handle("Thinking", "Responding")
    #expect(session.takesPictures, "images continue during a reply")
    _ = session.handle(
      .command(.extra(name: "videos", payload: [["action": "exit"]])), at: SessionScript.second)
    #expect(!session.takesPictures)
  }

  @Test("the vendor's complete request is sent unchanged, for this request only; an invalid one is reported")
  func wholeRequest() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .listening, .duplex))
    let parameters: JSONValue = ["biz_params": ["user_query_params": ["a": "b"]]]
    let payload: JSONValue = ["type": "transcript", "text": "words", "parameters": parameters]
    let actions = session.handle(
      .command(.extra(name: "RequestToRespond", payload: payload)), at: SessionScript.second)
    guard case .send(let request)? = actions.first else {
      Issue.record("\(actions)")
      return
    }
    let sent = request.json(task: "t", dialog: "d")["payload"]
    #expect(sent?["parameters"] == parameters)
    #expect(sent?["input"]?["type"]?.string == "transcript" && sent?["input"]?["text"]?.string == "words")
    let picture: JSONValue = ["type": "url", "value": "https://x"]
    for wrong: JSONValue in [
      ["type": "song"], ["parameters": 1], ["parameters": ["images": [picture, picture]]],
      [
        "parameters": [
          "images": [["type": "base64", "value": .string(String(repeating: "A", count: 180_001))]]
        ]
      ],
    ] {
      let reported = session.handle(
        .command(.extra(name: "RequestToRespond", payload: wrong)), at: SessionScript.second)
      #expect(reported.map(SessionScript.word) == ["error request"])
    }
  }

  @Test("members without a common form are posted under their own names, once")
  func rest() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .listening, .duplex))
    func extras(_ text: String) throws -> [String] {
      session.handle(try SessionScript.message(text), at: SessionScript.second).compactMap {
        if case .post(.extra(let name, _)) = $0 { name } else { nil }
      }
    }
    #expect(
      try extras(#""event":"DialogStateChanged","state":"Thinking","dialog_id":"d","inputType":"voice""#)
        == ["inputType"])
    let content =
      #""event":"RespondingContent","text":"a","llm_request_id":"1","round_id":"2","finish_reason":"stop","extra_info":{"timestamps":{"a":1},"dialog_debug":{"b":2}},"finished":"#
    #expect(try extras(content + "false") == ["timestamps", "dialog_debug"])
    #expect(
      try extras(content + "true") == ["llm_request_id", "finish_reason", "timestamps", "dialog_debug"])
  }

  @Test(
    "members beside the last event are posted before the end, which comes last",
    arguments: [
      #"{"header":{"event":"task-finished"},"payload":{"output":{"event":"Stopped","llm_request_id":"1"}}}"#,
      #"{"header":{"event":"result-generated","status_code":400,"status_name":"InvalidParameter"},"payload":{"output":{"event":"Error","llm_request_id":"1"}}}"#,
    ])
  func restOfTheLast(text: String) throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .listening, .duplex))
    let actions = session.handle(try SessionScript.whole(text), at: SessionScript.second)
    #expect(actions.first == .post(.extra(name: "llm_request_id", payload: "1")))
    guard case .end? = actions.last else {
      Issue.record("the last is \(actions.map(SessionScript.word))")
      return
    }
  }
}
