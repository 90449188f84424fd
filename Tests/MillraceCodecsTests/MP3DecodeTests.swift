import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import Testing

private let length = 48_000
private let sent = chirp(rate: 24_000, frames: length)

private func bench(_ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
  try NodeBench(MP3Decode.self, parameters, inputs: ["in": mp3Shape])
}

private func decode(_ bytes: [UInt8], cut: Int = 1_000, _ parameters: [String: ParameterValue] = [:]) throws
  -> (samples: [Int16], events: [BenchEvent])
{
  let bench = try bench(parameters)
  bench.push(bytes, cut: cut)
  try bench.finish()
  let heard = bench.int16()
  let events = bench.events()
  #expect(bench.close() == [])
  return (heard, events)
}

@Suite("mp3.decode", .enabled(if: MP3Pieces.canMake, "FFmpeg here has no MP3 encoder"))
struct MP3DecodeTests {
  private let whole: MP3Pieces

  init() throws { whole = try MP3Pieces.made(sent, rate: 24_000) }

  @Test("the samples do not depend on how the stream is cut, and their number is what was encoded")
  func cuts() throws {
    let first = try decode(whole.bytes, cut: whole.bytes.count)
    #expect(first.samples.count == length)
    #expect(lag(sent, first.samples, reach: 30, from: 4_000, count: 6_000) == 0)
    #expect(signalToNoise(sent[4_000..<10_000], first.samples[4_000..<10_000]) > 25)
    for cut in [1, 7, 100, 417, 4_096, 5_000] {
      let other = try decode(whole.bytes, cut: cut)
      #expect(other.samples == first.samples, "cut into \(cut) bytes")
      #expect(other.events.map(\.json).count == 1)
    }
  }

  @Test(
    "random cuts and every rate of the output give the same samples too", arguments: [8_000, 16_000, 48_000])
  func randomCuts(rate: Int) throws {
    let parameters: [String: ParameterValue] = ["rate": .integer(rate), "channels": 2]
    let first = try decode(whole.bytes, cut: whole.bytes.count, parameters)
    #expect(first.samples.count == length * rate / 24_000 * 2)
    var random = SplitMix64(seed: 4)
    let bench = try bench(parameters)
    var at = 0
    while at < whole.bytes.count {
      let end = min(at + Int.random(in: 1...2_000, using: &random), whole.bytes.count)
      bench.push(bytes: Array(whole.bytes[at..<end]))
      at = end
    }
    try bench.finish()
    #expect(bench.int16() == first.samples)
    #expect(bench.close() == [])
  }

  @Test(
    "the first frame is decoded once the next header arrives, the others with their last byte",
    arguments: [24_000, 48_000])
  func firstFrame(rate: Int) throws {
    let pieces = try MP3Pieces.made(chirp(rate: rate, frames: 20_000), rate: rate)
    let bytes = pieces.bare
    let first = pieces.hasInfo ? 1 : 0
    let (size, second) = (pieces.frames[first].count, pieces.frames[first + 1].count)
    let bench = try bench(["rate": .integer(rate)])
    let frame = rate == 24_000 ? 576 : 1_152
    var place = 0
    for (end, count) in [(size + 3, 0), (size + 4, 1), (size + second - 1, 0), (size + second, 1)] {
      bench.push(bytes: Array(bytes[place..<end]))
      try bench.run()
      #expect(bench.packets().map(\.duration) == Array(repeating: frame, count: count), "after \(end) bytes")
      place = end
    }
  }

  @Test("each utterance has the length that was encoded, and its end is marked")
  func utterances() throws {
    let parts = [12_000, 7_000, 20_001].map { Array(sent[..<$0]) }
    let bench = try bench()
    for part in parts {
      bench.push(try MP3Pieces.made(part, rate: 24_000).bytes, cut: 700, ends: true)
    }
    try bench.finish()
    var lengths: [Int] = []
    var length = 0
    let packets = bench.packets()
    for packet in packets {
      #expect(packet.position == Int64(lengths.reduce(0, +) + length))
      length += packet.duration
      if packet.flags.contains(.endOfUtterance) {
        lengths.append(length)
        length = 0
      }
    }
    #expect(lengths == parts.map(\.count) && length == 0)
    #expect(packets.filter { $0.flags.contains(.discontinuity) }.map(\.position) == [0])
    #expect(bench.events().map(\.name) == ["format", "format", "format"])
    #expect(bench.close() == [])
  }

  @Test("a stream whose rate and channels change keeps the output's format")
  func change() throws {
    let stereo = try MP3Pieces.made(
      chirp(rate: 48_000, frames: 48_000, channels: 2), rate: 48_000, channels: 2, bitRate: 128_000)
    let low = try MP3Pieces.made(chirp(rate: 16_000, frames: 16_000), rate: 16_000, bitRate: 48_000)
    let (samples, events) = try decode(whole.bare + stereo.bare + low.bare)
    let formats = events.filter { $0.name == "format" }
    #expect(formats.map { $0.number("rate") } == [24_000, 48_000, 16_000])
    #expect(formats.map { $0.number("channels") } == [1, 2, 1])
    #expect(
      formats.map { $0.number("byte") } == [
        0, Double(whole.bare.count), Double(whole.bare.count + stereo.bare.count),
      ])
    // The encoders add no more than a few frames per part.
    #expect(samples.count >= length + 24_000 + 24_000)
    #expect(samples.count < length + 24_000 + 24_000 + 12_000)
  }

  @Test("a rate in a single frame is damage, not a change")
  func falseHeader() throws {
    var bytes = whole.bare
    let frame = whole.frames[20].lowerBound - whole.frames[whole.hasInfo ? 1 : 0].lowerBound
    // 24 kHz becomes 22.05 kHz: two bits of the header.
    bytes[frame + 2] &= 0xF3
    let (samples, events) = try decode(bytes)
    #expect(events.filter { $0.name == "format" }.count == 1)
    #expect(events.contains { $0.name == "damaged" })
    #expect(abs(samples.count - (whole.frames.count - 1) * 576) <= 4 * 576)
  }

  @Test("damage is skipped and reported with its position", arguments: [1, 300, 4_000])
  func damage(count: Int) throws {
    var bytes = whole.bare
    let at = bytes.count / 2
    for index in at..<at + count { bytes[index] = UInt8(truncatingIfNeeded: index &* 7 | 1) & 0x7F }
    let (samples, events) = try decode(bytes)
    let lost = whole.frames.count * 576 - samples.count
    #expect(lost >= 0 && lost <= (count / 280 + 6) * 576)
    if count >= 300 {
      let damage = events.filter { $0.name == "damaged" }
      let place = try #require(damage.first?.number("byte"))
      #expect(abs(place - Double(at)) < 600)
      #expect(damage.reduce(0) { $0 + ($1.number("bytes") ?? 0) } >= Double(count - 600))
    }
    // Later audio is unchanged.
    let clean = try decode(whole.bare).samples
    #expect(signalToNoise(clean.suffix(8_000), samples.suffix(8_000)) > 30)
  }

  @Test(
    "a damaged stream gives as many samples and tells the same damage, however it is cut", arguments: 1...8)
  func damageInPieces(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var bytes = whole.bare
    for _ in 0..<40 {
      let at = Int.random(in: 0..<bytes.count - 40, using: &random)
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes[at] ^= (1 as UInt8) << Int.random(in: 0..<8, using: &random)
      case 1: bytes.removeSubrange(at..<at + Int.random(in: 1..<40, using: &random))
      default: bytes.insert(contentsOf: bytes[at..<at + 30], at: at / 2)
      }
    }
    let first = try decode(bytes, cut: bytes.count)
    let damage = first.events.filter { $0.name == "damaged" }.map(\.json)
    #expect(!damage.isEmpty)
    for cut in [1, 3, 48, 417, 4_097] {
      let other = try decode(bytes, cut: cut)
      #expect(other.samples.count == first.samples.count, "cut into \(cut) bytes")
      #expect(other.events.filter { $0.name == "damaged" }.map(\.json) == damage, "cut into \(cut) bytes")
    }
  }

  @Test("continuous damage is reported at once, then once a second, and completely at the end")
  func damageIsGathered() throws {
    let bench = try bench()
    var damaged = 0
    // Every fourth frame has its header erased; a later frame is confirmed by its successor.
    for (index, frame) in whole.frames.enumerated() {
      var bytes = Array(whole.bytes[frame])
      if index % 4 == 3 {
        for place in 0..<4 { bytes[place] = 0 }
        damaged += 1
      }
      bench.push(bytes: bytes)
      try bench.advance(by: .milliseconds(100))
    }
    try bench.finish()
    let damage = bench.events().filter { $0.name == "damaged" }
    let first = try #require(damage.first)
    let told = expectGathered(damage, from: first.time, seconds: Double(whole.frames.count) / 10)
    #expect(told.count == damaged)
    #expect(bench.close() == [])
  }

  @Test("a stream that ends inside a frame yields what it has and reports it")
  func cutOff() throws {
    let end = whole.frames[20].lowerBound - whole.frames[whole.hasInfo ? 1 : 0].lowerBound
    let (samples, events) = try decode(Array(whole.bare[..<(end + 100)]))
    #expect(samples.count == (whole.hasInfo ? 19 : 20) * 576)
    #expect(events.map(\.name) == ["format", "truncated"])
    #expect(events[1].number("byte") == Double(end) && events[1].number("bytes") == 100)
  }

  @Test("a tag of any length is skipped and is not damage")
  func tag() throws {
    let size = 70_000
    let digits = [21, 14, 7, 0].map { UInt8(size >> $0 & 127) }
    let tag = Array("ID3".utf8) + [4, 0, 0] + digits + [UInt8](repeating: 0, count: size)
    let plain = MP3Pieces(whole.bytes)
    let (samples, events) = try decode(tag + plain.bytes[plain.frames[0].lowerBound...])
    #expect(samples.count == length)
    #expect(events.map(\.name) == ["format"])
  }

  @Test("a tag of 128 bytes after the audio is not damage either")
  func oldTag() throws {
    let tag = Array("TAG".utf8) + [UInt8](repeating: 0x20, count: 125)
    let (samples, events) = try decode(whole.bytes + tag, cut: 129)
    #expect(samples.count == length)
    #expect(events.map(\.name) == ["format"])
  }

  @Test(
    "bytes that are not MP3 are reported at the end of the utterance, and fail the node if nothing else arrived"
  )
  func silent() throws {
    let text = Array(#"{"code":"InvalidApiKey","message":"Invalid API-key provided."}"#.utf8)
    let lone = try bench()
    lone.push(text, cut: 1_000)
    let fault = #expect(throws: BenchFault.self) { try lone.finish() }
    #expect(
      fault?.text == "none of the \(text.count) bytes received is MP3; "
        + "check what the previous node sends: it may be an error message, or another format")
    let events = lone.events()
    #expect(lone.packets().isEmpty && events.map(\.name) == ["silent"])
    #expect(events.first?.number("bytes") == Double(text.count))
    // One reply of several.
    let mixed = try bench()
    mixed.push(text, cut: 1_000, ends: true)
    mixed.push(whole.bytes, cut: 1_000, ends: true)
    try mixed.finish()
    #expect(mixed.int16().count == length)
    #expect(mixed.events().map(\.name) == ["silent", "format"])
    // It does not hide the audio that follows.
    let behind = try decode(text + whole.bytes)
    #expect(abs(behind.samples.count - length) < 3 * 576)
  }

  @Test("an interruption discards the stream; the next reply starts at 0")
  func interruption() throws {
    let bench = try bench()
    bench.setGeneration(1)
    bench.push(Array(whole.bytes[..<5_000]), cut: 500)
    try bench.run()
    bench.push(Array(whole.bytes[5_000..<9_000]), cut: 4_000)
    bench.interrupt()
    bench.setGeneration(2)
    _ = bench.packets()
    bench.push(whole.bytes, cut: 700)
    try bench.finish()
    let next = bench.packets()
    #expect(next.allSatisfy { $0.generation == 2 })
    #expect(next.first?.position == 0 && next.first?.flags == .discontinuity)
    #expect(next.reduce(0) { $0 + $1.duration } == length)
    #expect(bench.close() == [])
  }

  @Test("random bytes never cause a fault, however they are cut", arguments: 1...6)
  func noise(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var bytes = (0..<60_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    // False headers here and there, and a real one.
    for _ in 0..<200 {
      let at = Int.random(in: 0..<bytes.count - 4, using: &random)
      bytes[at] = 0xFF
      bytes[at + 1] = 0xF3
    }
    bytes.replaceSubrange(30_000..<30_000 + 4_000, with: whole.bare[..<4_000])
    let first = try decode(bytes, cut: Int.random(in: 1...900, using: &random))
    let whole = try decode(bytes, cut: 60_000)
    #expect(whole.samples.count == first.samples.count)
    let floats = try bench(["sample": "f32"])
    floats.push(bytes, cut: 512)
    try floats.finish()
    #expect(floats.float().allSatisfy { abs($0) <= 2 })
  }

  @Test(
    "decoding a stream allocates nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let bench = try bench(["rate": 16_000])
    bench.push(Array(whole.bare[..<6_000]), cut: 250)
    try bench.run()
    bench.resetHeapRequests()
    bench.push(Array(whole.bare[6_000...]), cut: 250)
    bench.push(whole.bare, cut: 1 << 20)
    try bench.run()
    #expect(bench.heapRequests == 0)
    _ = bench.packets()
  }
}
