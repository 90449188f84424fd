import MillraceCodecs
import MillraceCore
import MillraceTesting

/// Feeds arbitrary bytes to speech.play as part of an Ogg stream, and to speech.play and audio.jitter as Opus packets.
///
/// None may crash, fail except for finding no audio at all, keep a packet, or emit a sample that is NaN or infinite. The first byte
/// selects the node and the chunk size.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOpus(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let rest = Array(bytes.dropFirst())
  let packets = OutputShape(
    .opus(rate: 48_000, channels: 2), packetDuration: .milliseconds(20), packetBytes: 8_192)
  let pages = OutputShape(.ogg, packetDuration: nil, packetBytes: 8_192)
  let cut = 1 + Int(first >> 2) * 16
  switch first & 3 {
  case 0, 1: run(SpeechPlay.self, pages, rest, cut: cut)
  case 2: run(SpeechPlay.self, packets, rest, cut: cut)
  default: run(AudioJitter.self, packets, rest, cut: cut)
  }
  return 0
}

private func run<N: Node & ~Copyable>(_ type: N.Type, _ input: OutputShape, _ bytes: [UInt8], cut: Int) {
  do {
    let bench = try NodeBench(type, inputs: ["in": input])
    for start in stride(from: 0, to: bytes.count, by: cut) {
      let piece = Array(bytes[start..<min(start + cut, bytes.count)])
      bench.push(bytes: piece, duration: 960, flags: piece[0] == 0 ? .endOfUtterance : [])
      // Small chunks are pushed several at a time: a minute of audio per input would allow only three inputs a second.
      if start / cut % max(1, 64 / cut) == 0 { try bench.advance(by: .milliseconds(20)) }
    }
    // Finding no audio at all is an expected failure.
    do throws(BenchFault) { try bench.finish() } catch {
      guard error.fault.reason == .badInput else { throw error }
    }
    if !bench.float().allSatisfy(\.isFinite) { fatalError("a sample that is not finite") }
    if bench.close() != [] { fatalError("packets were not released") }
  } catch {
    fatalError("a fault: \(error)")
  }
}
