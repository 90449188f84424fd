import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import Testing

/// Questions, images, and text replies.
extension DialogNodeTests {
  @Test(
    "a question with an image of the largest size reaches the service, from the port and from the program")
  func pictures() async throws {
    let talk = try await Talk(
      scenario(),
      inputs: [
        "audio": Talk.sound, "text": Talk.lines,
        "control": OutputShape(.event, packetDuration: nil, packetBytes: 262_144),
      ])
    #expect(try talk.wait { talk.states().last == "listening" })
    let picture = "/9j/" + String(repeating: "A", count: 179_996)
    let ask = #"{"command":"ask","text":"","images":[{"base64":"\#(picture)"}]}"#
    talk.command(ask)
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    #expect(try talk.wait { talk.states().count { $0 == "listening" } == 2 })
    try talk.bench.send(ask)
    #expect(try talk.wait { talk.double.seen.turns == 2 })
    #expect(talk.double.seen.violations == [])
    // One byte more is refused here, with a message.
    talk.command(#"{"command":"ask","text":"","images":[{"base64":"\#(picture)A"}]}"#)
    #expect(try talk.wait { talk.has("error") })
    #expect(
      talk.events.last { $0.name == "error" }?.string("text")
        == "question discarded: its image has 180001 bytes in Base64, and the service accepts 180000")
    try talk.end()
  }

  @Test("a question as text, a text to speak, and a question with an image")
  func asks() async throws {
    let talk = try await Talk(scenario())
    #expect(try talk.wait { talk.states().last == "listening" })
    talk.bench.push(text: "why", to: "text")
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    talk.command(#"{"command":"say","text":"Hello."}"#)
    #expect(try talk.wait { talk.double.seen.turns == 2 })
    talk.command(#"{"command":"ask","text":"","images":[{"base64":"/9j/4AAQ"}]}"#)
    #expect(try talk.wait { talk.texts == ["It is nine.", "Hello.", "I see a picture."] })
    try talk.end()
    #expect(talk.double.seen.violations == [])
  }

  @Test(
    "the video channel is opened at the start, images are sent only once it is open, and too large ones are refused"
  )
  func video() async throws {
    let pictures = OutputShape(.jpeg, packetDuration: nil, packetBytes: 140_000)
    let talk = try await Talk(
      scenario(), ["video": true, "live": "start"],
      inputs: ["audio": Talk.sound, "control": Talk.reports, "image": pictures])
    let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 7, count: 100)
    talk.playsReplies = false
    talk.bench.push(bytes: jpeg, to: "image")
    #expect(try talk.wait { talk.has("replyEnded") })
    // Requested, and the answer is still playing. The update after the image shows that the image was taken.
    talk.bench.push(bytes: jpeg, to: "image")
    _ = try talk.bench.run()
    talk.command(#"{"command":"update","values":{"client_info":{"status":{"a":1}}}}"#)
    #expect(try talk.wait { talk.double.seen.lines.contains("> UpdateInfo") })
    #expect(talk.double.seen.pictures == 0)
    talk.playHeld()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    #expect(try talk.wait { talk.states().last == "listening" && talk.has("command") })
    #expect(talk.double.seen.pictures == 0)
    talk.bench.push(bytes: jpeg, to: "image")
    talk.bench.push(bytes: jpeg + [UInt8](repeating: 0, count: 135_000), to: "image")
    #expect(try talk.wait { talk.double.seen.pictures == 1 && talk.has("error") })
    let error = talk.events.first { $0.name == "error" }?.string("text")
    #expect(error == "image discarded: 135104 bytes exceed the limit of 135000")
    try talk.end()
    #expect(talk.double.seen.violations == [])
    #expect(talk.double.seen.pictures == 1)
  }

  @Test("a long reply text is emitted in several packets, with no character lost or split")
  func longAnswer() async throws {
    let words = String(repeating: "größer ", count: 400)
    let talk = try await Talk(
      scenario { $0.turns[0].says = words }, ["format": "none", "eventBytes": 1_024],
      outputs: ["text", "events"])
    talk.speak()
    #expect(try talk.wait { talk.texts.joined().count >= words.count - 1 })
    try talk.end()
    #expect(talk.texts.count == 4)
    #expect(talk.texts.joined() == words.dropLast())
  }

  @Test("without audio output no audio is requested")
  func textOnly() async throws {
    let talk = try await Talk(scenario(), ["format": "none"], outputs: ["text", "events"])
    talk.speak()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    #expect(try talk.wait { talk.texts == ["It is nine."] })
    try talk.end()
    #expect(talk.double.seen.soundSent.isEmpty)
    #expect(talk.double.seen.violations == [])
  }
}
