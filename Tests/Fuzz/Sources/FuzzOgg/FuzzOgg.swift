@testable import MillraceCodecs

/// Feeds arbitrary bytes to the Ogg Opus reader, with two chunk sizes. The last byte selects the chunk size of the second pass, and whether
/// the pages in the input get correct checksums: otherwise hardly any page would be parsed.
///
/// It must never crash, and it must terminate. Packets have bytes, a duration that Opus allows, and trim no more than they have. Their
/// audible positions increase, and they do not depend on the chunks.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOgg(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let last = bytes.popLast() else { return 0 }
  if last & 1 == 0 { sum(&bytes) }
  let whole = read(bytes, cut: max(1, count))
  if read(bytes, cut: 1 + Int(last)) != whole { fatalError("the output depends on the chunks") }
  return 0
}

private struct Found: Equatable {
  var header: OpusHeader?
  var bytes: [UInt8] = []
  var position: Int64 = 0
  var samples = 0
  var trimStart = 0
  var trimEnd = 0
}

private func read(_ bytes: [UInt8], cut: Int) -> [Found] {
  var demuxer = OpusDemuxer()
  var result: [Found] = []
  var start = 0
  /// The end of the last audible samples.
  var heard: Int64?
  // Every step consumes at least a byte, or returns a packet or the damage of a page.
  for _ in 0..<(2 * bytes.count + 1_024) {
    switch demuxer.next() {
    case .needsMore:
      guard start < bytes.count else { return result }
      let end = min(start + cut, bytes.count)
      demuxer.feed(bytes[start..<end].span)
      start = end
    case .opened(let header): result.append(Found(header: header))
    case .packet(let packet):
      let found = Found(
        bytes: Array(UnsafeBufferPointer(start: packet.start, count: packet.count)),
        position: packet.position,
        samples: packet.samples, trimStart: packet.trimStart, trimEnd: packet.trimEnd)
      check(found, heard: &heard)
      result.append(found)
    case .damage, .cut: if demuxer.damagedBytes < 0 { fatalError("damage of \(demuxer.damagedBytes) bytes") }
    case .end: return result
    case .failed(let code): fatalError("the system returned error \(code)")
    }
  }
  fatalError("it does not terminate")
}

/// Durations of a packet in samples at 48 kHz: 2.5 to 120 ms, RFC 6716 section 3.2.5.
private let lengths = 120...5_760

private func check(_ packet: Found, heard: inout Int64?) {
  if packet.bytes.isEmpty || !lengths.contains(packet.samples) { fatalError("no packet: \(packet)") }
  let rest = packet.samples - packet.trimStart - packet.trimEnd
  if packet.trimStart < 0 || packet.trimEnd < 0 || rest < 0 {
    fatalError("it trims too much: \(packet)")
  }
  if rest == 0 { return }
  let start = packet.position + Int64(packet.trimStart)
  if let heard, start < heard { fatalError("heard before \(heard): \(packet)") }
  heard = start + Int64(rest)
}

// MARK: - Checksums

/// Sets the correct checksum of every page.
private func sum(_ bytes: inout [UInt8]) {
  var start = 0
  while start + 27 <= bytes.count {
    let end = pageEnd(bytes, start)
    guard Array(bytes[start..<start + 4]) == Array("OggS".utf8), end <= bytes.count else {
      start += 1
      continue
    }
    for index in 22..<26 { bytes[start + index] = 0 }
    let checksum = bytes[start..<end].reduce(UInt32(0)) {
      $0 << 8 ^ table[Int(UInt8(truncatingIfNeeded: $0 >> 24) ^ $1)]
    }
    for index in 0..<4 {
      bytes[start + 22 + index] = UInt8(truncatingIfNeeded: checksum >> (8 * UInt32(index)))
    }
    start = end
  }
}

private func pageEnd(_ bytes: [UInt8], _ start: Int) -> Int {
  let segments = Int(bytes[start + 26])
  guard start + 27 + segments <= bytes.count else { return .max }
  return bytes[(start + 27)..<(start + 27 + segments)].reduce(start + 27 + segments) { $0 + Int($1) }
}

/// RFC 3533 section 6: CRC-32 with the polynomial 0x04C11DB7, high bit first, initial value 0.
private let table: [UInt32] = (0..<256).map { byte in
  (0..<8).reduce(UInt32(byte) << 24) { value, _ in
    value & 0x8000_0000 == 0 ? value << 1 : value << 1 ^ 0x04C1_1DB7
  }
}
