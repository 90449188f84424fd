import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceTuya

/// Text documents of the cloud, whole and in parts.
@Suite("Text documents")
struct WireTextTests {
  private func text(_ json: String) throws -> TuyaText { try TuyaText(parsing: Array(json.utf8)) }

  @Test("the user's words are partial or final, and may be none")
  func speech() throws {
    let partial = try text(#"{"bizId":"asr-1","bizType":"ASR","eof":0,"data":{"text":"What"}}"#)
    #expect(partial.content == .speech("What") && !partial.isFinal && partial.bizID == "asr-1")
    let last = try text(#"{"bizId":"asr-1","bizType":"ASR","eof":1,"data":{"text":""}}"#)
    #expect(last.content == .speech("") && last.isFinal)
  }

  @Test(
    "images of a reply are read in every form that senders use",
    arguments: [#"[{"url":"a"},{"url":"b"}]"#, #"{"url":["a","b"]}"#, #"["a","b"]"#])
  func reply(images: String) throws {
    let document = try text(
      #"{"bizType":"NLG","eof":1,"data":{"appendMode":"append","reasoningContent":"Hm","content":"Sunny","images":\#(images)}}"#
    )
    guard case .reply(let reply) = document.content else { return #expect(Bool(false)) }
    #expect(reply.text == "Sunny" && reply.reasoning == "Hm" && reply.isAppended && !reply.isEmpty)
    #expect(reply.images == ["a", "b"])
  }

  @Test("without \"append\" a reply begins a message, and an empty end is one")
  func replyEnd() throws {
    let document = try text(#"{"bizType":"NLG","eof":1,"data":{"appendMode":"new","content":""}}"#)
    guard case .reply(let reply) = document.content else { return #expect(Bool(false)) }
    #expect(reply.isEmpty && !reply.isAppended && document.isFinal)
  }

  @Test("skills are an emotion with its step, or a code with its data")
  func skills() throws {
    let emotion = try text(
      #"{"bizType":"SKILL","eof":0,"data":{"code":"llm_emo","skillContent":{"text":"😀","startTime":1000,"endTime":2000,"sequence":1}}}"#
    )
    let step = DialogEmotion("HAPPY", startMilliseconds: 1_000, endMilliseconds: 2_000)
    #expect(emotion.content == .emotion(step, sequence: 1) && !emotion.isFinal)
    let exit = try text(
      #"{"bizType":"SKILL","eof":1,"data":{"code":"speechControl","general":{"action":"exit"}}}"#)
    guard case .skill("speechControl", let data) = exit.content else { return #expect(Bool(false)) }
    #expect(data["general"]?["action"] == "exit")
  }

  @Test(
    "what is not known is kept whole",
    arguments: [
      #"{"bizType":"CloudEvent","data":[1]}"#, #"{"bizType":"ASR","data":7}"#, #"{"data":{}}"#, "{}",
      #"{"bizType":"SKILL","data":{}}"#,
    ])
  func unknown(json: String) throws {
    let document = try text(json)
    #expect(document.content == .unknown && document.raw.text == json)
  }

  @Test("bytes that are no document are refused, and nothing of them is repeated")
  func invalid() {
    for bytes in [
      Array("secret".utf8), Array(#"{"secret":"#.utf8), Array("[\"secret\"]".utf8), [0xFF, 0xFE], [],
    ] {
      do throws(TuyaTextProblem) {
        _ = try TuyaText(parsing: bytes)
        Issue.record("\(bytes) is no document")
      } catch { #expect(!error.text.contains("secret") && error.text.count > 10) }
    }
  }

  // MARK: Parts

  private static let document = #"{"bizType":"NLG","data":{"content":"a } b","images":[{"url":"u"}]}}"#

  @Test("a document that is cut anywhere is read once, at its end", arguments: [false, true])
  func parts(hasEnd: Bool) throws {
    let bytes = Array(Self.document.utf8)
    for cut in 1..<bytes.count {
      var assembler = TuyaTextAssembler()
      #expect(try assembler.take(Array(bytes[..<cut]), .start).isEmpty)
      var texts = try assembler.take(Array(bytes[cut...]), hasEnd ? .end : .streaming)
      texts += try assembler.finish()
      #expect(texts.map(\.raw.text) == [Self.document], "\(cut)")
    }
  }

  @Test("every packet of a stream may be a document, and an empty one ends the stream")
  func stream() throws {
    var assembler = TuyaTextAssembler()
    for flag in [TuyaStreamFlag.start, .streaming, .onlyOne, .streaming] {
      #expect(try assembler.take(Array(Self.document.utf8), flag).count == 1)
    }
    #expect(try assembler.take([], .end).isEmpty)
    #expect(try assembler.finish().isEmpty)
  }

  @Test("a document whose end is missing does not spoil the next, nor a part of one look like it")
  func missingEnd() throws {
    var assembler = TuyaTextAssembler()
    #expect(try assembler.take(Array(Self.document.utf8.prefix(20)), .start).isEmpty)
    #expect(try assembler.take(Array(Self.document.utf8), .streaming).count == 1)
    #expect(try assembler.finish().isEmpty)
    let (first, last) = (#"{"bizType":"NLG","data":{"images":["#, #"{"url":"u"}"#)
    #expect(try assembler.take(Array(first.utf8), .start).isEmpty)
    #expect(try assembler.take(Array(last.utf8), .streaming).isEmpty)
    #expect(try assembler.take(Array("]}}".utf8), .end).count == 1)
  }

  @Test("what is never a document is refused at the end, at the event's end, or when it is too long")
  func never() throws {
    var assembler = TuyaTextAssembler()
    #expect(try assembler.take([0x7B], .start).isEmpty)
    #expect(throws: TuyaTextProblem.self) { try assembler.finish() }
    #expect(throws: TuyaTextProblem.self) { try assembler.take([0x7B], .onlyOne) }
    #expect(try assembler.take([UInt8](repeating: 0x20, count: TuyaTextAssembler.mostBytes), .start).isEmpty)
    #expect(throws: TuyaTextProblem.self) { try assembler.take([0x20], .streaming) }
    #expect(try assembler.take(Array(Self.document.utf8), .onlyOne).count == 1)
  }
}
