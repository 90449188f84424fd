import MillraceCodecs
import MillraceCore
import MillraceTesting

/// Feeds arbitrary bytes to mp3.decode, with two chunk sizes.
///
/// It must never crash, read beyond its input, or fail except for finding no audio at all. Samples must be within bounds, and their number
/// must not depend on the chunks; their values may, because in a damaged frame libmpg123 reads memory it never wrote. The first byte
/// selects the chunk size of the second pass.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMP3(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let whole = decode(Array(bytes.dropFirst()), cut: max(1, count))
  let cut = decode(Array(bytes.dropFirst()), cut: 1 + Int(first))
  if whole.count != cut.count { fatalError("the output depends on the chunks: \(whole.count), \(cut.count)") }
  if !whole.allSatisfy({ abs($0) < 10 }) { fatalError("a sample out of bounds, or NaN") }
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
    if bench.close() != [] { fatalError("packets were not released") }
    return samples
  } catch {
    fatalError("a fault: \(error)")
  }
}
