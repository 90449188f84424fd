import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import Testing

/// Audio formats in both directions.
extension DialogNodeTests {
  @Test(
    "replies are emitted as they were sent, in every format",
    arguments: ["pcm", "mp3", "opus", "raw-opus", "raw-opus2"])
  func forms(form: String) async throws {
    let talk = try await Talk(scenario(), ["format": .string(form), "rate": 16_000])
    talk.speak()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    try talk.end()
    #expect(talk.double.seen.violations == [])
    let heard = talk.packets.flatMap(\.bytes)
    // With packets, the first message is the header and is not emitted.
    let sent = talk.double.seen.soundSent
    #expect(heard == (form == "raw-opus" ? Array(sent.dropFirst(19)) : sent))
    #expect(heard.starts(with: form == "opus" ? Array("OggS".utf8) : []))
    #expect(talk.packets.last?.flags.contains(.endOfUtterance) == true)
  }

  @Test(
    "audio is sent as Opus packets, or in Ogg pages of the frame's duration",
    arguments: ["raw-opus", "opus"])
  func opusUp(form: String) async throws {
    let talk = try await Talk(
      scenario(), ["opusUp": .string(form)],
      inputs: [
        "audio": OutputShape(
          .opus(rate: 16_000, channels: 1), packetDuration: .milliseconds(20), packetBytes: 1_275),
        "control": Talk.reports,
      ])
    for turn in 1...2 {
      talk.speakPackets()
      #expect(try talk.wait { talk.double.seen.turns == turn })
    }
    #expect(try talk.wait { talk.states().count { $0 == "listening" } == 3 })
    try talk.end()
    #expect(talk.double.seen.violations == [])
    let start = talk.double.seen.starts.first?["payload"]?["parameters"]?["upstream"]
    #expect(start?["audio_format"]?.string == form)
    // 200 packets of 20 ms: one per message, or five per page after the stream's headers.
    #expect(talk.double.seen.framesHeard == (form == "opus" ? 1 + 40 : 200))
  }

  @Test("in push-to-talk each press has its own Ogg stream, and its last page precedes StopSpeech")
  func opusByHand() async throws {
    let talk = try await Talk(
      scenario(), ["opusUp": "opus", "mode": "pushToTalk"],
      inputs: [
        "audio": OutputShape(
          .opus(rate: 16_000, channels: 1), packetDuration: .milliseconds(20), packetBytes: 1_275),
        "control": Talk.reports,
      ])
    #expect(try talk.wait { talk.states().last == "listening" })
    for turn in 1...2 {
      talk.command(#"{"command":"startSpeech"}"#)
      #expect(try talk.wait { talk.double.seen.lines.count { $0 == "> SendSpeech" } == turn })
      talk.speakPackets()
      // 40 ms more, which do not fill a page.
      for _ in 0..<2 { talk.bench.push(bytes: [0x48, 7], to: "audio", duration: 320) }
      let whole = 22 * (turn - 1) + 21
      #expect(try talk.wait { talk.double.seen.framesHeard >= whole })
      #expect(try talk.wait { true })
      talk.command(#"{"command":"stopSpeech"}"#)
      #expect(try talk.wait { talk.double.seen.turns == turn })
      // The stream's headers, 20 full pages, and the last page after the release.
      #expect(talk.double.seen.framesHeard == whole + 1)
      #expect(try talk.wait { talk.states().last == "listening" })
    }
    try talk.end()
    #expect(talk.double.seen.violations == [])
  }

  @Test(
    "an unread reply delays neither the microphone nor a command, and is complete when it is read")
  func untakenReply() async throws {
    let talk = try await Talk(
      scenario {
        $0.turns[0].says = "One two three four five six seven eight nine ten eleven twelve."
        $0.speed = 1_000
      })
    talk.playsReplies = false
    talk.bench.hold("audio")
    talk.bench.hold("text")
    talk.speak()
    #expect(try talk.wait { talk.has("replyEnded") })
    let before = talk.double.seen.framesHeard
    for _ in 0..<5 {
      talk.hush(1)
      #expect(try talk.wait { true })
    }
    talk.command(#"{"command":"update","values":{"client_info":{"status":{"a":1}}}}"#)
    #expect(try talk.wait { talk.double.seen.framesHeard >= before + 50 })
    #expect(try talk.wait { talk.double.seen.lines.contains("> UpdateInfo") })
    talk.bench.release("audio")
    talk.bench.release("text")
    #expect(try talk.wait { talk.packets.last?.flags.contains(.endOfUtterance) == true })
    #expect(talk.packets.flatMap(\.bytes) == talk.double.seen.soundSent)
    #expect(try talk.wait { talk.texts.count == 1 })
    #expect(talk.double.seen.violations == [])
    try talk.end()
  }
}
