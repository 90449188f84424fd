import MillraceCore
import MillraceVideo
import Testing

/// Packets of 20 ms, at one frame per millisecond; time is that of the packets.
@Suite("utterances in the sound of a live stream")
struct StreamRepliesTests {
  private static let packet = 20

  /// Takes a line of packets, `#` loud and `.` quiet; at `!` the reply is interrupted, at `>` the next begins, at `|` the stream says that
  /// it is over, and `_` is one that the stream skips. Returns what each packet is: `.` of no reply, `r` of a reply, `e` the last of an utterance, `c` cancelled; `E` is the
  /// end of an utterance where the stream skips.
  private func taken(_ line: String, by replies: inout StreamReplies, from start: Int = 0) -> String {
    var time = start
    var result = ""
    for mark in line {
      switch mark {
      case "!": replies.interrupt(at: .milliseconds(Int64(time)))
      case ">": replies.beginNext()
      case "|": replies.mark()
      case "_":
        if replies.skip(Self.packet) { result += "E" }
        time += Self.packet
      default:
        let part = replies.take(
          isLoud: mark == "#", frames: Self.packet, time: .milliseconds(Int64(time)))
        switch part {
        case .quiet: result += "."
        case .reply(let isLast): result += isLast ? "e" : "r"
        case .cancelled: result += "c"
        }
        time += Self.packet
      }
    }
    return result
  }

  @Test(
    "an utterance lasts from the first loud packet until it was quiet for the gap",
    arguments: [
      ("....", "...."),
      ("..###....##", "..rrrrre.rr"),
      ("##.##..##...##", "rrrrrrrrrrrerr"),
    ] as [(String, String)])
  func utterances(line: String, expected: String) {
    var replies = StreamReplies(gap: 60)
    // A gap of three packets.
    #expect(taken(line, by: &replies) == expected)
    #expect(replies.takeCancelled() == nil)
  }

  @Test("after an interruption the rest is cancelled until it was quiet for the gap; what follows is a reply")
  func interruption() {
    var replies = StreamReplies(gap: 60)
    #expect(taken("..##!##.##...##", by: &replies) == "..rrccccccccrr")
    #expect(replies.takeCancelled() == 8 * Self.packet)
    #expect(replies.takeCancelled() == nil)
  }

  @Test(
    "after a mark the next quiet packet ends an utterance or its cancellation, and sound without one is another reply",
    arguments: [
      ("##|#.##", "rrrerr"), ("##!##|#.##", "rrccccrr"), ("##!#|######.#", "rrcccccrrrr"),
      ("##|######.#", "rrrrrrrrrr"), ("..|##..", "..rrrr"),
    ] as [(String, String)])
  func mark(line: String, expected: String) {
    // A third of the gap is four packets.
    var replies = StreamReplies(gap: 240)
    #expect(taken(line, by: &replies) == expected)
  }

  @Test("quiet before an interruption counts as quiet")
  func quietBefore() {
    var replies = StreamReplies(gap: 60)
    #expect(taken("##..!.##", by: &replies) == "rrrrcrr")
    #expect(replies.takeCancelled() == Self.packet)
  }

  @Test("sound that arrived before an interruption and was not put out is cancelled, later sound is a reply")
  func decoded() {
    var replies = StreamReplies(gap: 60)
    _ = taken("....", by: &replies)
    replies.interrupt(at: .milliseconds(200))
    // Expected before the interruption.
    #expect(taken("###...", by: &replies, from: 80) == "cccccc")
    #expect(taken("##", by: &replies, from: 200) == "rr")
  }

  @Test("the beginning of the next reply ends the cancellation, also of sound that has arrived")
  func next() {
    var replies = StreamReplies(gap: 60)
    #expect(taken("##!##>##", by: &replies) == "rrccrr")
    #expect(replies.takeCancelled() == 2 * Self.packet)
    replies.interrupt(at: .milliseconds(1_000))
    replies.beginNext()
    _ = replies.takeCancelled()
    #expect(taken("##", by: &replies, from: 500) == "rr")
  }

  @Test(
    "what the stream skips is quiet",
    arguments: [
      ("##__##", "rrrr"), ("##___##", "rrErr"), ("##.__.##", "rrrE.rr"), ("..__..##", "....rr"),
      ("##!#__##", "rrccc"), ("##!#___##", "rrcrr"), ("##!#._.##", "rrcccrr"),
    ] as [(String, String)])
  func skipped(line: String, expected: String) {
    var replies = StreamReplies(gap: 60)
    #expect(taken(line, by: &replies) == expected)
  }

  @Test(
    "a stall ends an utterance, but no cancellation: what it holds up may be of the interrupted utterance")
  func stall() {
    var replies = StreamReplies(gap: 60)
    let before = replies.pause()
    #expect(!before && !replies.isSpeaking)
    _ = taken("##", by: &replies)
    #expect(replies.isSpeaking)
    let isEnd = replies.pause()
    #expect(isEnd && !replies.isSpeaking)
    #expect(taken("#!#", by: &replies, from: 40) == "rc")
    let isMarked = replies.pause()
    #expect(!isMarked && !replies.isSpeaking && replies.takeCancelled() == nil)
    #expect(taken("##...##", by: &replies, from: 80) == "cccccrr")
    #expect(replies.takeCancelled() == 6 * Self.packet)
  }

  @Test("the end of a stream ends an utterance, and a cancellation silently")
  func end() {
    var replies = StreamReplies(gap: 60)
    let before = replies.close()
    #expect(!before)
    _ = taken("##", by: &replies)
    let isEnd = replies.close()
    #expect(isEnd && !replies.isSpeaking)
    _ = taken("#!#", by: &replies, from: 40)
    let isMarked = replies.close()
    #expect(!isMarked && replies.takeCancelled() == Self.packet)
    #expect(taken("##", by: &replies, from: 80) == "rr")
  }
}
