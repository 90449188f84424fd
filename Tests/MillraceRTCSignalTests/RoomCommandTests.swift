import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRoomWire
import Testing

@testable import MillraceRTCSignal

@Suite("Room: commands, and the settings") struct RoomCommandTests {
  private func joined(
    _ media: SignalMedia = SignalMedia(audio: .sendReceive, video: .sendReceive)
  ) throws -> RoomScript {
    var script = RoomScript(try RoomTexts.settings(media))
    script.join([RoomTexts.member("p1", [.audio]), RoomTexts.member("p2", user: "cy")])
    script.done("publish")
    script.done("subscribe")
    return script
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var command: DialogCommand
    var name: String
    var payload: String
    var testDescription: String { payload }
  }

  @Test(
    "each command is a request, and is answered when the hub has",
    arguments: [
      Case(command: .setRole("viewer"), name: "role", payload: #"{"role":"viewer"}"#),
      Case(command: .setRole("speaker"), name: "role", payload: #"{"role":"host"}"#),
      Case(
        command: .publish(.video, isOn: true), name: "publish",
        payload: #"{"track":"video","on":true,"source":"camera"}"#),
      Case(
        command: .publish(.screen, isOn: true), name: "publish",
        payload: #"{"track":"video","on":true,"source":"screen"}"#),
      Case(
        command: .publish(.audio, isOn: false), name: "publish", payload: #"{"track":"audio","on":false}"#),
      Case(
        command: .subscribe(.all, .audio, isOn: false), name: "subscribe",
        payload: #"{"track":"audio","on":false,"all":true}"#),
      Case(
        command: .subscribe(.one("p2"), .video, isOn: true), name: "subscribe",
        payload: #"{"track":"video","on":true,"peer":"p2"}"#),
      Case(
        command: .mute(.audio, isOn: true, peer: "p1"), name: "subscribe",
        payload: #"{"track":"audio","on":false,"peer":"p1"}"#),
      Case(
        command: .refreshAuth(token: "t2"), name: "login",
        payload: #"{"version":1,"user":"ann","name":"Ann","token":"t2"}"#),
      Case(
        command: .call(DialogCallRequest(to: "bob", media: [.audio, .screen], message: "hi")), name: "call",
        payload: #"{"to":"bob","media":["audio","video"],"text":"hi"}"#),
      Case(
        command: .answerCall(DialogCallAnswer("c1", isAccepted: true)), name: "answerCall",
        payload: #"{"call":"c1","accept":true}"#),
      Case(
        command: .hangUp(call: "c1", reason: "busy"), name: "hangUp",
        payload: #"{"call":"c1","reason":"busy"}"#),
      Case(
        command: .data(DialogData(.text("x"), peer: "p1", label: "chat")), name: "data",
        payload: #"{"label":"chat","text":"x","to":"p1"}"#),
      Case(
        command: .data(DialogData(.bytes([1, 2, 3]))), name: "data",
        payload: #"{"label":"data","base64":"AQID"}"#),
      Case(
        command: .extra(name: "message", payload: ["text": "hi"]), name: "message",
        payload: #"{"text":"hi"}"#),
      Case(
        command: .extra(name: "kick", payload: ["peer": "p1", "text": "out"]), name: "kick",
        payload: #"{"peer":"p1","text":"out"}"#),
      Case(
        command: .extra(name: "closeRoom", payload: [:]), name: "close", payload: "{}"),
      Case(
        command: .extra(
          name: "control", payload: ["peer": "p1", "command": ["command": "say", "text": "x"]]),
        name: "control", payload: #"{"to":"p1","command":{"command":"say","text":"x"}}"#),
    ])
  func commands(item: Case) throws {
    var script = try joined()
    script.give(.command(7, item.command))
    #expect(script.operations.last == item.name && script.payloads(item.name).last == item.payload)
    #expect(script.answers.isEmpty)
    script.done(item.name)
    #expect(script.answers == ["7 ok"])
    script.done(item.name)
    #expect(script.answers == ["7 ok"], "answered once")
    script.give(.command(8, item.command))
    script.refuse(item.name, .forbidden)
    #expect(script.answers == ["7 ok", "8 forbidden"] && script.closed == nil)
    script.give(.command(9, item.command))
    script.give(.tick, after: 5_000)
    #expect(script.answers.last == "9 signalTimeout" && script.closed == nil)
    script.give(.command(10, item.command))
    script.give(.end)
    #expect(script.answers.last == "10 ended" && script.answers.count == 4)
  }

  @Test(
    "a command that cannot be carried out is refused, and nothing is sent",
    arguments: [
      .setRole("king"), .subscribe(.one("p9"), .audio, isOn: true),
      .subscribe(.one("no name"), .audio, isOn: true), .mute(.audio, isOn: true, peer: "p9"),
      .call(DialogCallRequest(to: "no name")), .answerCall(DialogCallAnswer("", isAccepted: true)),
      .hangUp(call: "no name"), .data(DialogData(.text("x"), peer: "p9")),
      .data(DialogData(.text("x"), label: String(repeating: "l", count: 65))),
      .data(DialogData(.text(String(repeating: "\n", count: 70_000)))),
      .data(DialogData(.bytes([UInt8](repeating: 0, count: 100_000)))),
      .extra(name: "message", payload: [:]), .extra(name: "message", payload: ["text": 7]),
      .extra(name: "message", payload: .string("x")),
      .extra(name: "message", payload: ["text": .string(String(repeating: "x", count: 4_097))]),
      .extra(name: "kick", payload: ["peer": "p9"]), .extra(name: "kick", payload: .null),
      .extra(name: "control", payload: ["peer": "p1"]),
      .extra(name: "control", payload: ["peer": "p1", "command": ["x": 1]]),
    ] as [DialogCommand])
  func impossible(command: DialogCommand) throws {
    var script = try joined()
    let count = script.sent.count
    script.give(.command(1, command))
    #expect(script.sent.count == count && script.answers.count == 1 && script.answers != ["1 ok"])
    #expect(script.closed == nil)
  }

  @Test("a message without a label has that of the settings")
  func usualLabel() throws {
    var settings = try RoomTexts.settings()
    settings.dataLabel = "chat"
    var script = RoomScript(settings)
    script.join()
    script.give(.command(1, .data(DialogData(.text("x")))))
    #expect(script.payloads("data") == [#"{"label":"chat","text":"x"}"#])
    script.give(.command(2, .data(DialogData(.text("x"), label: ""))))
    #expect(script.payloads("data").last == #"{"label":"","text":"x"}"#)
  }

  @Test("a track that nothing is linked for cannot be published")
  func unlinked() throws {
    var script = try joined(SignalMedia(audio: .sendReceive))
    script.give(.command(1, .publish(.video, isOn: true)))
    #expect(script.answers == ["1 command"])
  }

  @Test("before the room is joined, and after, commands are refused")
  func outside() throws {
    var script = RoomScript(try RoomTexts.settings())
    script.give(.command(1, .setRole("viewer")))
    script.give(.opened)
    script.give(.command(2, .call(DialogCallRequest(to: "bob"))))
    script.done("login", RoomLoggedIn(RoomTexts.name("ann")))
    script.give(.command(3, .publish(.audio, isOn: true)))
    script.give(.command(4, .call(DialogCallRequest(to: "bob"))))
    #expect(script.answers == ["1 command", "2 command", "3 command"])
    #expect(script.operations == ["login", "join", "call"], "a call needs no room")
    script.give(.end)
    script.give(.command(5, .publish(.audio, isOn: true)))
    #expect(script.answers.suffix(2) == ["4 ended", "5 command"])
  }

  @Test("a viewer's tracks are withdrawn, and published again by a host")
  func roles() throws {
    var script = try joined()
    script.give(.command(1, .setRole("viewer")))
    #expect(
      script.done("role") == [
        #"{"event":"role","role":"viewer"}"#, #"{"event":"track","track":"audio","change":"unpublished"}"#,
      ])
    let count = script.payloads("publish").count
    script.give(.command(2, .setRole("speaker")))
    #expect(script.done("role") == [#"{"event":"role","role":"speaker"}"#])
    #expect(script.payloads("publish").count == count + 1)
    #expect(script.done("publish") == [#"{"event":"track","track":"audio","change":"published"}"#])
    script.give(.command(3, .publish(.audio, isOn: false)))
    #expect(script.done("publish") == [#"{"event":"track","track":"audio","change":"unpublished"}"#])
    script.give(.command(4, .setRole("viewer")))
    script.done("role")
    script.give(.command(5, .setRole("host")))
    script.done("role")
    #expect(script.payloads("publish").count == count + 2, "what was unpublished stays so")
  }

  @Test("a subscription to those who will join changes nothing for those who are there")
  func newOnes() throws {
    var script = try joined()
    let count = script.payloads("subscribe").count
    script.give(.command(1, .subscribe(.new, .audio, isOn: false)))
    #expect(
      script.payloads("subscribe").dropFirst(count) == [
        #"{"track":"audio","on":false,"all":true}"#, #"{"track":"audio","on":true,"peer":"p1"}"#,
        #"{"track":"audio","on":true,"peer":"p2"}"#,
      ])
    for id in script.sent.suffix(3).map(\.id) { script.give(.message(RoomAnswer(id).bytes)) }
    #expect(script.answers == ["1 ok"])
    script.give(.command(2, .subscribe(.new, .audio, isOn: true)))
    #expect(script.payloads("subscribe").dropFirst(count + 3) == [#"{"track":"audio","on":true,"all":true}"#])
  }

  @Test("with too many who are there, a subscription to those who will join is refused")
  func manyOthers() throws {
    for count in [200, 201] {
      var script = RoomScript(try RoomTexts.settings())
      script.join((0..<count).map { RoomTexts.member("p\($0)") })
      script.done("subscribe")
      let before = script.sent.count
      script.give(.command(1, .subscribe(.new, .audio, isOn: false)))
      #expect(script.sent.count == before + (count == 200 ? 201 : 0))
      #expect(script.answers == (count == 200 ? [] : ["1 command"]))
    }
  }

  @Test("a new token is hidden from then on")
  func secret() throws {
    var script = try joined()
    script.give(.command(1, .refreshAuth(token: "fresh-secret")))
    script.refuse("login", .badToken, "fresh-secret is wrong")
    #expect(script.answers == ["1 authFailed"])
    #expect(!script.texts.contains { $0.contains("fresh-secret") })
  }

  @Test("what is not a matter of the room goes elsewhere")
  func takes() throws {
    let media = SignalMedia(audio: .sendReceive, hasData: true)
    let hub = RoomCommands(isHub: true, media: media)
    let peer = RoomCommands(isHub: false, media: media)
    for command in [
      .mute(.audio, isOn: true), .hangUp(), .refreshAuth(token: nil), .update([:]), .startSpeech, .say("x"),
      .extra(name: "dtmf", payload: [:]), .begin(),
    ] as [DialogCommand] {
      #expect(!hub.takes(command) && !peer.takes(command))
    }
    for command in [
      .mute(.audio, isOn: true, peer: "p1"), .subscribe(.all, .audio, isOn: true),
      .data(DialogData(.text("x"))),
    ] as [DialogCommand] {
      #expect(hub.takes(command) && !peer.takes(command))
    }
    #expect(RoomCommands(isHub: false, media: SignalMedia()).takes(.data(DialogData(.text("x")))))
  }

  // MARK: Settings

  @Test("settings that cannot work say so, and how to mend it")
  func problems() throws {
    func problem(
      _ url: String = "ws://127.0.0.1:1/room", _ change: (inout RoomClientSettings) -> Void = { _ in }
    ) throws -> String? {
      var settings = try RoomTexts.settings(url: url)
      change(&settings)
      return settings.problem?.parameter
    }
    #expect(try problem() == nil)
    #expect(try problem("wss://room.example/room") == nil)
    #expect(try problem("https://room.example/room") == "url")
    #expect(try problem("ws://room.example/room") == "url")
    #expect(try problem("ws://room.example/room") { $0.plain = true } == nil)
    #expect(try problem("wss://room.example/room") { $0.verify = false } == "verify")
    #expect(try problem("wss://192.0.2.1/room") { $0.isOwnHub = true } == nil)
    #expect(try problem("ws://192.0.2.1/room") { $0.isOwnHub = true } == nil)
    #expect(try problem { $0.user = "a b" } == "user")
    #expect(try problem { $0.room = "" } == "room")
    #expect(try problem { $0.name = String(repeating: "x", count: 65) } == "name")
    #expect(try problem { $0.token = String(repeating: "x", count: 4_097) } == "token")
    #expect(try problem { $0.slots = 17 } == "slots")
    #expect(try problem { $0.timeout = 0 } == "signal")
    #expect(RoomPeerChoice.user("a b").problem != nil && RoomPeerChoice.first.problem == nil)
    let settings = try RoomTexts.settings()
    var own = settings
    (own.isOwnHub, own.roots) = (true, "ca.pem")
    #expect(own.trust == .anyCertificate && settings.trust == .system)
    #expect("\(settings)" == "room r1 at ws://127.0.0.1:8080")
    #expect(try RoomTexts.settings(url: "wss://room.example").address.target == "/room")
  }
}
