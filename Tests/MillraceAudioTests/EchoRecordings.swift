import MillraceAudio
import MillraceDSP
import MillraceTesting
import Testing

/// Recordings for the echo canceller, and its output for them.
enum EchoRecordings {
  /// The samples of a recording of the corpus, full scale 1.
  static func samples(_ name: String) throws -> [Float] {
    let path = try #require(Corpus.path("audio/" + name))
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.finish()
    return bench.int16().map { Float($0) / 32_768 }
  }

  /// Output of a new canceller for a microphone and a far end, with its latency; `look` receives its state after each block.
  static func cleaned(_ near: [Float], _ far: [Float], _ look: (EchoState) -> Void = { _ in }) -> [Float] {
    var canceller = EchoCanceller(EchoSettings(rate: 16_000))
    let block = canceller.blockFrames
    var output: [Float] = []
    var part = [Float](repeating: 0, count: block)
    for first in stride(from: 0, to: min(near.count, far.count) - block + 1, by: block) {
      var target = part.mutableSpan
      canceller.process(
        near: near.span.extracting(first..<first + block), far: far.span.extracting(first..<first + block),
        into: &target)
      output += part
      look(canceller.state)
    }
    return output
  }
}
