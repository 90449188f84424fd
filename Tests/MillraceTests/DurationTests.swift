import Foundation
import Millrace
import Testing

@Suite("millrace run --duration", .timeLimit(.minutes(30)))
struct DurationTests {
  private static let graph = """
    {
      "millrace": 1, "name": "tone", "clock": "virtual",
      "parameters": { "wav": { "default": "tone.wav" }, "opus": { "default": "tone.opus" } },
      "nodes": {
        "tone": { "type": "audio.tone", "rate": 48000, "pace": true },
        "wav": { "type": "audio.write", "path": "${wav}" },
        "to16k": { "type": "audio.resample", "rate": 16000 },
        "enc": { "type": "opus.encode" },
        "opus": { "type": "ogg.write", "path": "${opus}" }
      },
      "links": ["tone -> wav", "tone -> to16k -> enc -> opus"]
    }
    """

  @Test("ends two runs on the virtual clock at the same sample, with the same bytes in every file")
  func exact() throws {
    let scratch = Scratch()
    let graph = try scratch.write(Self.graph.utf8, to: "tone.json")
    for number in 1...2 {
      let result = try RunnerProcess.run(
        "run", "-q", graph, "--duration", "1230ms", "--set", "wav=\(number).wav", "--set",
        "opus=\(number).opus",
        in: scratch)
      #expect(result.status == 0 && result.errors == "")
    }
    // 1.23 s are 61.5 packets of 20 ms: the last one due before that time is the 62nd.
    #expect(try Sound(path: scratch.file("1.wav")).frames == 62 * 960)
    #expect(try scratch.bytes("1.wav") == scratch.bytes("2.wav"))
    #expect(try scratch.bytes("1.opus") == scratch.bytes("2.opus"))
    #expect(try scratch.bytes("1.opus").count > 1_000)
  }
}
