import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceTesting
import Testing

/// The forms of sound, both ways.
extension DialogNodeTests {
  @Test(
    "replies come in every form as they were sent",
    arguments: ["pcm", "mp3", "opus", "raw-opus", "raw-opus2"])
  func forms(form: String) async throws {
    let talk = try await Talk(scenario(), ["format": .string(form), "rate": 16_000])
    talk.speak()
    #expect(try talk.wait { talk.double.seen.turns == 1 })
    try talk.end()
    #expect(talk.double.seen.violations == [])
    let heard = talk.packets.flatMap(\.bytes)
    // Packets have a header in front on the wire, which is none of them.
    let sent = talk.double.seen.soundSent
    #expect(heard == (form == "raw-opus" ? Array(sent.dropFirst(19)) : sent))
    #expect(heard.starts(with: form == "opus" ? Array("OggS".utf8) : []))
    #expect(talk.packets.last?.flags.contains(.endOfUtterance) == true)
  }

  @Test(
    "sound goes up as packets of Opus, or in pages of Ogg of the frame's length",
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
    // 200 packets of 20 ms: each by itself, or five to a page behind the stream's headers.
    #expect(talk.double.seen.framesHeard == (form == "opus" ? 1 + 40 : 200))
  }

  @Test("in push-to-talk each press has a stream of its own, and its last page goes before StopSpeech")
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
      // 40 ms more, which fill no page.
      for _ in 0..<2 { talk.bench.push(bytes: [0x48, 7], to: "audio", duration: 320) }
      let whole = 22 * (turn - 1) + 21
      #expect(try talk.wait { talk.double.seen.framesHeard >= whole })
      #expect(try talk.wait { true })
      talk.command(#"{"command":"stopSpeech"}"#)
      #expect(try talk.wait { talk.double.seen.turns == turn })
      // The stream's headers, 20 whole pages, and the one that the release ends.
      #expect(talk.double.seen.framesHeard == whole + 1)
      #expect(try talk.wait { talk.states().last == "listening" })
    }
    try talk.end()
    #expect(talk.double.seen.violations == [])
  }

  @Test(
    "a reply that nobody takes holds up neither the microphone nor a command, and is whole when it is taken")
  func untakenReply() async throws {
    let talk = try await Talk(
      scenario {
        $0.turns[0].says = "One two three four five six seven eight nine ten eleven twelve."
        $0.speed = 1_000
      })
    talk.isHeard = false
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
