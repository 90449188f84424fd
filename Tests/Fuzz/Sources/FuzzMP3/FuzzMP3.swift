import MillraceCodecs
import MillraceCore
import MillraceTesting

/// Feeds any bytes to mp3.decode, in two cuts.
///
/// It must never crash, nor fault but for having found no sound at all, never ask for bytes that are not there, give samples within
/// bounds, and as many of them however the stream is cut: what they are depends, in a damaged frame, on
/// memory libmpg123 never wrote. The first byte says how the second pass cuts.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMP3(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let whole = decode(Array(bytes.dropFirst()), cut: max(1, count))
  let cut = decode(Array(bytes.dropFirst()), cut: 1 + Int(first))
  if whole.count != cut.count { fatalError("what comes depends on the pieces: \(whole.count), \(cut.count)") }
  if !whole.allSatisfy({ abs($0) < 10 }) { fatalError("a sample out of bounds, or no number") }
  return 0
}

private func decode(_ bytes: [UInt8], cut: Int) -> [Float] {
  do {
    let bench = try NodeBench(
      MP3Decode.self, ["sample": "f32"],
      inputs: ["in": OutputShape(.mp3, packetDuration: nil, packetBytes: 1 << 20)])
    for start in stride(from: 0, to: bytes.count, by: cut) {
      let end = min(start + cut, bytes.count)
      bench.push(bytes: Array(bytes[start..<end]), flags: end == bytes.count ? .endOfUtterance : [])
    }
    do throws(BenchFault) { try bench.finish() } catch {
      guard error.fault.reason == .badInput else { throw error }
    }
    let samples = bench.float()
    if bench.close() != [] { fatalError("packets were kept") }
    return samples
  } catch {
    fatalError("a fault: \(error)")
  }
}
