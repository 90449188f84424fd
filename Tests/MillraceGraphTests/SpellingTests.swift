import MillraceGraph
import Testing

@Suite("nearest spelling")
struct SpellingTests {
  static let types = [
    "audio.read", "audio.write", "audio.resample", "audio.echoCancel", "opus.encode", "opus.decode",
    "flow.null", "mic",
  ]

  @Test(
    "one slip or a different style finds the name",
    arguments: [
      ("audio.raed", "audio.read"), ("audio.rea", "audio.read"), ("audio.readd", "audio.read"),
      ("audio.resmaple", "audio.resample"), ("Audio.Read", "audio.read"), ("audio_read", "audio.read"),
      ("audioRead", "audio.read"), ("audio-echo-cancel", "audio.echoCancel"), ("resample", "audio.resample"),
      ("Resample", "audio.resample"), ("encode", "opus.encode"), ("opus.encod", "opus.encode"),
      ("mik", "mic"),
      ("mci", "mic"), ("flow.nil", "flow.null"),
    ])
  func found(_ name: String, _ expected: String) {
    #expect(Spelling.nearest(to: name, among: Self.types) == expected)
  }

  @Test(
    "what has nothing in common is not offered",
    arguments: ["", "x", "video.capture", "rtmp.push", "zzzzzzzz", "...", "mxx", "audio"])
  func notFound(_ name: String) {
    #expect(Spelling.nearest(to: name, among: Self.types) == nil)
  }

  @Test("the name itself is never offered")
  func itself() {
    #expect(Spelling.nearest(to: "mic", among: ["mic"]) == nil)
    #expect(Spelling.nearest(to: "mic", among: ["mic", "mike"]) == nil)
    #expect(Spelling.nearest(to: "mic", among: ["mic", "Mic"]) == "Mic")
  }

  @Test("a swap of neighbours is one slip, so it wins over two wrong letters")
  func swap() {
    #expect(Spelling.nearest(to: "abdcef", among: ["abxyef", "abcdef"]) == "abcdef")
  }

  @Test("between equals the alphabet decides, whatever the order")
  func ties() {
    #expect(Spelling.nearest(to: "note", among: ["nose", "node", "nope"]) == "node")
    #expect(Spelling.nearest(to: "note", among: ["nope", "node", "nose"]) == "node")
  }

  @Test("at most three slips are forgiven, and one for every three letters")
  func cutoff() {
    #expect(Spelling.nearest(to: "abcde", among: ["abcxx"]) == nil)
    #expect(Spelling.nearest(to: "abcdef", among: ["abcdxx"]) == "abcdxx")
    #expect(Spelling.nearest(to: "abcdefghijklmnop", among: ["abcdefghijklmxxx"]) == "abcdefghijklmxxx")
    #expect(Spelling.nearest(to: "abcdefghijklmnop", among: ["abcdefghijklxxxx"]) == nil)
  }

  @Test("the hint is a question with the name in quotes")
  func hint() {
    #expect(Spelling.hint(for: "mik", among: Self.types) == #"did you mean "mic"?"#)
    #expect(Spelling.hint(for: "zzz", among: Self.types) == nil)
  }
}
