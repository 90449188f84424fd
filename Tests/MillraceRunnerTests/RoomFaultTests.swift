#if RTC
  import MillraceCore
  import MillraceDoubles
  import MillraceNet
  import Testing

  @testable import MillraceRunner

  @Suite("The double room: refusals, faults and violations", .timeLimit(.minutes(30)))
  struct RoomFaultTests {
    @Test("the first connections are refused with the scenario's status, and the next is let in")
    func refusals() async throws {
      let rig = try await RoomDoubleRig.begin(#"{ "refusals": 2, "refusalStatus": 429 }"#)
      for _ in 0..<2 {
        let client = try rig.client()
        #expect(try await client.closed().problem?.status == 429)
      }
      let client = try await rig.member("ann")
      #expect(client.problems.isEmpty)
      #expect(rig.double.seen.connections == 3)
      rig.double.stop()
    }

    @Test(
      "a drop closes the connection of the first member without a close frame, once",
      arguments: ["connecting", "listening"])
    func drop(place: String) async throws {
      let rig = try await RoomDoubleRig.begin(#"{ "fault": { "kind": "drop", "at": "\#(place)" } }"#)
      let first = try rig.client()
      first.send(#"{"id":1,"op":"login","payload":{"version":1,"user":"ann"}}"#)
      first.send(#"{"id":2,"op":"join","payload":{"room":"lobby"}}"#)
      #expect(try await first.closed().code == 1006)
      _ = try await rig.member("ben")
      // The hub has forgotten the first.
      #expect(
        !rig.lines.contains("# ann has joined lobby as host") || rig.lines.contains("# ann has left lobby"))
      rig.double.stop()
    }

    @Test("after a stall the member hears nothing more, and others are not disturbed")
    func stall() async throws {
      let rig = try await RoomDoubleRig.begin(#"{ "fault": { "kind": "stall", "at": "listening" } }"#)
      let ann = try await rig.member("ann")
      ann.send(#"{"id":3,"op":"message","payload":{"text":"hello"}}"#)
      let ben = try await rig.member("ben")
      ben.send(#"{"id":3,"op":"message","payload":{"text":"hello"}}"#)
      _ = try await ben.text(#""answer":3"#)
      #expect(!ann.texts.contains { $0.contains(#""answer":3"#) || $0.contains("ben") })
      rig.double.stop()
    }

    @Test("a kick ends the room for everybody in it, once, and the connection stays")
    func kick() async throws {
      let rig = try await RoomDoubleRig.begin(
        #"{ "fault": { "kind": "kick", "at": "listening", "reason": "ended" } }"#)
      let ann = try await rig.member("ann")
      _ = try await ann.text(#""reason":"ended""#)
      ann.send(#"{"id":3,"op":"join","payload":{"room":"lobby"}}"#)
      _ = try await ann.text(#"{"answer":3,"ok":true"#)
      ann.send(#"{"id":4,"op":"message","payload":{"text":"hello"}}"#)
      _ = try await ann.text(#"{"answer":4,"ok":true"#)
      rig.double.stop()
    }

    @Test("messages that no hub sends: cut JSON, an unknown event", arguments: ["malformed", "unknown"])
    func messages(kind: String) async throws {
      let rig = try await RoomDoubleRig.begin(#"{ "fault": { "kind": "\#(kind)", "at": "listening" } }"#)
      let ann = try await rig.member("ann")
      let text = try await ann.text("a secret of the user")
      #expect(text.hasSuffix("}}") == (kind == "unknown"))
      rig.double.stop()
    }

    @Test("a message is longer than any may be")
    func oversized() async throws {
      let rig = try await RoomDoubleRig.begin(#"{ "fault": { "kind": "oversized", "at": "connecting" } }"#)
      #expect(try await rig.client().text("aaaa").utf8.count == 131_073)
      rig.double.stop()
    }

    @Test(
      "a fault that a hub does not have is refused, with those that it has",
      arguments: [
        (#"{ "kind": "hold", "at": "listening" }"#, #"this double has no fault "hold"; it has drop, stall"#),
        (
          #"{ "kind": "kick", "at": "connecting" }"#,
          #"this double has no fault "kick" at connecting; it has it at listening"#
        ),
        (
          #"{ "kind": "kick", "at": "listening", "reason": "removed" }"#,
          #"this double does not state the reason "removed"; it states ended"#
        ),
      ])
    func others(fault: String, text: String) async {
      let problem = await RoomDoubleRig.problem(#"{ "fault": \#(fault) }"#)
      #expect(problem?.contains(text) == true, "\(problem ?? "none")")
    }

    @Test(
      "what is no request is a violation, and what was refused for other reasons is not; texts are in no line"
    )
    func violations() async throws {
      let rig = try await RoomDoubleRig.begin()
      let ann = try await rig.member("ann")
      ann.send(#"{"id":3,"op":"kick","payload":{"peer":"nobody"}}"#)
      ann.send(#"{"id":4,"op":"message","payload":{"text":"between us"}}"#)
      ann.send(#"{"id":5,"op":"sing"}"#)
      ann.send("nonsense")
      _ = try await ann.text(#""event":"error""#)
      let names = rig.double.seen.violations.map(\.name)
      #expect(names == ["unknownOp", "badMessage"])
      #expect(rig.double.seen.violationCount == 2)
      let lines = rig.lines
      #expect(
        lines.contains("> message") && lines.contains("> no request") && lines.contains("< answer: notFound"))
      #expect(!lines.contains { $0.contains("between us") || $0.contains("nonsense") })
      rig.double.stop()
    }
  }
#endif
