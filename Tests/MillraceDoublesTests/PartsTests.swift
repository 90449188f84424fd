import MillraceCore
import Testing

@testable import MillraceDoubles

@Suite("voice, ear and memory of a double") struct PartsTests {
  @Test("synthesised replies are cached up to a size, oldest discarded first")
  func cache() {
    var voices = SpeechCache()
    let reply = SpokenReply(pieces: [[UInt8](repeating: 0, count: 1 << 20)], milliseconds: 1)
    for index in 0..<100 { voices.keep(reply, "\(index)") }
    #expect(voices.bytes == SpeechCache.most)
    #expect(voices.find("35") == nil && voices.find("36") != nil && voices.find("99") != nil)
    voices.keep(
      SpokenReply(pieces: [[UInt8](repeating: 0, count: SpeechCache.most + 1)], milliseconds: 1), "large")
    #expect(voices.find("large") != nil && voices.find("99") == nil)
  }

  @Test("the most recent elements are remembered, oldest first")
  func recent() {
    var recent = Recent<Int>(3)
    for index in 0..<10 { recent.add(index) }
    #expect(recent.all == [7, 8, 9])
  }

  @Test("PCM is cut anywhere, packets are never divided")
  func messages() {
    let bytes = SpokenReply(pieces: [[1, 2, 3], [4]], milliseconds: 1)
    #expect(bytes.messages(chunk: 2) == [[1, 2], [3], [4]])
    let packets = SpokenReply(pieces: [[1, 2, 3], [4]], milliseconds: 1, isInPackets: true)
    #expect(packets.messages(chunk: 2) == [[1, 2, 3], [4]])
  }

  @Test("messages are due at the pace of their audio, and half of them are left once")
  func pace() {
    // 16 bytes last 160 ms; at twice the speed a byte takes 5 ms.
    var messages = ReplyMessages(
      [[1, 2], [3, 4], [5, 6], Array(repeating: 0, count: 10)], milliseconds: 160, speed: 2)
    var pauses: [Int] = []
    var halves: [Int] = []
    while messages.count > 0 {
      if messages.isHalfway { halves.append(messages.count) }
      if let next = messages.next() { pauses.append(next.pause) }
    }
    #expect(pauses == [10, 10, 10, 50] && halves == [2] && messages.next() == nil)
  }

  @Test("speech begins after 100 ms of sound and ends after 600 ms of silence")
  func ear() {
    var ear = DoubleEar(.pcm, rate: 16_000)
    func sound(_ milliseconds: Int, _ sample: Int16) -> [UInt8] {
      (0..<milliseconds * 16).flatMap { _ in [UInt8(truncatingIfNeeded: sample), UInt8(sample >> 8)] }
    }
    #expect(ear.hear(sound(80, 6_000)).changes == [])
    let heard = ear.hear(sound(20, 6_000))
    #expect(heard.changes == [.began] && heard.speechSamples == 320)
    #expect(ear.hear(sound(580, 0)).changes == [])
    #expect(ear.hear(sound(20, 0)).changes == [.ended])
    // Below -40 dBFS.
    #expect(ear.hear(sound(1_000, 300)).changes == [])
  }

  @Test("audio that is not what the client announced is a violation")
  func wrongAudio() {
    var pcm = DoubleEar(.pcm, rate: 16_000)
    #expect(pcm.hear(Array("RIFF".utf8)).violations.map(\.name) == ["waveHeader"])
    #expect(pcm.hear([1, 2, 3]).violations == [Violation("oddFrame", "3 bytes are not 16-bit samples")])
    #expect(pcm.hear(Array("RIFF".utf8)).violations == [])
    var opus = DoubleEar(.opus, rate: 16_000)
    #expect(opus.hear([]).violations.map(\.name) == ["noOpus"])
    var ogg = DoubleEar(.oggOpus, rate: 16_000)
    #expect(ogg.hear([1, 2, 3]).violations.map(\.name) == ["noOgg"])
  }

  @Test("a message is as late as its distance from the earliest says")
  func timing() {
    var timing = FrameTiming()
    let times: [Nanoseconds] = [100, 125, 130, 195].map { .milliseconds($0) }
    // The third message shows that the first was late, too: from then on it determines when the others are due.
    let delays = times.map { timing.delay(ofSamples: 320, rate: 16_000, at: $0) }
    #expect(delays == [0, 5, 0, 45])
  }

  @Test("seconds without audio are counted only while audio is due, and from 0 after it")
  func quiet() {
    var quiet = QuietSeconds()
    let first = [true, true, false, true, true].map { quiet.tick(isDue: $0, limit: 2) }
    #expect(first == [false, false, false, false, false])
    quiet.reset()
    let second = [true, true, true, true].map { quiet.tick(isDue: $0, limit: 2) }
    #expect(second == [false, false, true, true])
  }

  @Test("a message that crossed a change is excused once, and not after the client has noticed")
  func crossings() {
    var crossings = Crossings<String>()
    func taken(_ messages: String...) -> [Bool] { messages.map { crossings.take($0) } }
    #expect(taken("started") == [false])
    crossings.expect(["started", "ended"])
    #expect(crossings.contains("ended") && crossings.contains("started"))
    #expect(taken("started", "started") == [true, false])
    crossings.expect(["started"])
    #expect(taken("ended") == [false])
    crossings.clear()
    #expect(taken("started") == [false])
  }
}
