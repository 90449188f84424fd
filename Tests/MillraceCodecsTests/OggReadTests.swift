import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// Reads a file with `ogg.read`; returns packets and events.
func readOgg(
  _ path: String, _ parameters: [String: ParameterValue] = [:]
) throws -> (packets: [CapturedPacket], events: [BenchEvent]) {
  var parameters = parameters
  parameters["path"] = .string(path)
  let bench = try NodeBench(OggRead.self, parameters)
  try bench.run()
  #expect(bench.hasEnded)
  let result = (bench.packets(), bench.events())
  #expect(bench.close() == [])
  return result
}

/// A page with a corrected checksum (RFC 3533 section 6: polynomial 0x04C11DB7, nothing inverted).
func checked(_ page: [UInt8]) -> [UInt8] {
  var page = page
  for index in 22..<26 { page[index] = 0 }
  var sum: UInt32 = 0
  for byte in page {
    sum ^= UInt32(byte) << 24
    for _ in 0..<8 { sum = sum & 0x8000_0000 != 0 ? sum << 1 ^ 0x04C1_1DB7 : sum << 1 }
  }
  for index in 0..<4 { page[22 + index] = UInt8(truncatingIfNeeded: sum >> UInt32(8 * index)) }
  return page
}

private let sent = chirp(rate: 16_000, frames: 35_003)

/// A file of the chirp, written with `ogg.write`.
private func makeFile(_ path: String, _ parameters: [String: ParameterValue] = [:]) throws -> [CapturedPacket]
{
  let packets = try encode(sent, rate: 16_000, cut: 320)
  try writeOgg(packets, to: path, rate: 16_000, parameters)
  return packets
}

@Suite("ogg.read") struct OggReadTests {
  @Test(
    "packets come back as they were written, with place, length and padding", arguments: [16_000, 48_000])
  func roundTrip(rate: Int) throws {
    let folder = TemporaryFolder()
    let packets = try makeFile(folder.file("a.opus"))
    let (read, events) = try readOgg(folder.file("a.opus"), ["rate": .integer(rate)])
    let scale = rate / 16_000
    #expect(read.map(\.bytes) == packets.map(\.bytes))
    #expect(read.map(\.position) == packets.map { $0.position * Int64(scale) })
    #expect(read.map(\.duration) == packets.map { $0.duration * scale })
    #expect(read.map(\.trimEnd) == packets.map { $0.trimEnd * scale })
    #expect(read.allSatisfy { $0.flags == [] && $0.trimStart == 0 })
    #expect(events.map(\.name) == ["opened"])
    #expect(events[0].number("channels") == 1)
    #expect(events[0].number("preskip") == 312)
    #expect(events[0].number("input_rate") == 16_000)
    #expect(events[0].number("gain_db") == 0)
    #expect(try decode(read, rate: rate).count == sent.count * scale)
  }

  @Test("the link's format matches the file")
  func resolution() throws {
    let folder = TemporaryFolder()
    let packets = try encode(
      chirp(rate: 48_000, frames: 9000, channels: 2), rate: 48_000, channels: 2, cut: 480, ["frame": 60])
    try writeOgg(packets, to: folder.file("a.opus"), rate: 48_000, channels: 2)
    let resolution = try NodeBench.resolve(
      OggRead.self, ["path": .string(folder.file("a.opus")), "pace": true])
    #expect(resolution.outputs["out"]?.format == .opus(rate: 48_000, channels: 2))
    #expect(resolution.outputs["out"]?.packetDuration == .milliseconds(60))
    #expect(resolution.outputs["out"]?.packetBytes == packets.map(\.bytes.count).max())
    #expect(resolution.pacing == .paced)
  }

  @Test("unreadable files are refused before anything starts, with a cure")
  func refusals() throws {
    let folder = TemporaryFolder()
    func message(_ name: String) -> String {
      refusal(OggRead.self, ["path": .string(folder.file(name))])
        .replacingOccurrences(of: folder.path + "/", with: "")
    }
    #expect(
      message("none.opus")
        == "\"path\": there is no file \"none.opus\"; check the path: in a graph it is relative to the graph file, "
        + "with --set to the current directory")
    #expect(
      refusal(OggRead.self, ["path": .string(folder.path)])
        == "\"path\": \"\(folder.path)\" is a directory; name a file in it")
    put([], at: folder.file("empty"))
    #expect(message("empty") == "\"path\": \"empty\" is empty; record it again")
    put(Array("RIFF this is a wave file, or might be one".utf8), at: folder.file("wave"))
    #expect(
      message("wave")
        == "\"path\": \"wave\" is not an Ogg file; convert it, for example with ffmpeg -i IN OUT.opus"
    )
    _ = try makeFile(folder.file("a.opus"))
    let bytes = contents(folder.file("a.opus"))
    put(Array(bytes[..<40]), at: folder.file("cut"))
    #expect(
      message("cut")
        == "\"path\": \"cut\" ends inside its first page; use a complete file")
    let first = try #require(
      bytes.indices.filter { bytes[$0...].starts(with: "OggS".utf8) }.dropFirst(3).first)
    var broken = Array(bytes[..<first])
    broken[first - 1] ^= 1
    put(broken, at: folder.file("broken"))
    #expect(
      message("broken")
        == "\"path\": \"broken\" is damaged before its first Opus packet; use a complete file")
    put(Array(bytes[..<120]), at: folder.file("short"))
    #expect(
      message("short")
        == "\"path\": \"short\" ends before its first Opus packet; use a complete file")
    #expect(
      refusal(OggRead.self, ["path": .string(folder.file("a.opus")), "rate": 44_100])
        == "\"rate\": Opus does not support 44100 Hz; use 8000, 12000, 16000, 24000 or 48000")
  }

  @Test(
    "an Ogg file without Opus and one with more than two channels have different errors",
    .enabled(if: TestProgram.isInstalled("ffmpeg"), "ffmpeg is not installed"))
  func foreign() throws {
    let folder = TemporaryFolder()
    func make(_ name: String, _ arguments: [String]) throws {
      let input = ["-v", "error", "-f", "lavfi", "-i", "sine=frequency=300:duration=0.5"]
      #expect(try runProgram("ffmpeg", input + arguments + [folder.file(name)]).status == 0)
    }
    try make("flac.ogg", ["-c:a", "flac", "-f", "ogg"])
    #expect(
      refusal(OggRead.self, ["path": .string(folder.file("flac.ogg"))])
        == "\"path\": \"\(folder.file("flac.ogg"))\" is an Ogg file without an Opus stream; "
        + "convert it, for example with ffmpeg -i IN OUT.opus")
    try make("six.opus", ["-af", "aformat=sample_rates=48000:channel_layouts=5.1", "-c:a", "libopus"])
    #expect(
      refusal(OggRead.self, ["path": .string(folder.file("six.opus"))])
        == "\"path\": \"\(folder.file("six.opus"))\" contains Opus that is neither mono nor stereo, "
        + "or its header is damaged; convert it, for example with ffmpeg -i IN -ac 2 OUT.opus")
  }

  @Test(
    "a file from another writer yields exactly its samples",
    .enabled(if: TestProgram.isInstalled("ffmpeg"), "ffmpeg is not installed"))
  func otherWriter() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    let input = ["-v", "error", "-f", "lavfi", "-i", "sine=frequency=300:sample_rate=48000:duration=1.2345"]
    #expect(try runProgram("ffmpeg", input + ["-c:a", "libopus", "-b:a", "48k", path]).status == 0)
    let (read, events) = try readOgg(path)
    #expect(events.map(\.name) == ["opened"])
    #expect(try decode(read, rate: 48_000).count == 59_256)
  }

  @Test("a flipped bit costs only its page: the rest keeps its place, and the loss is reported")
  func damagedPage() throws {
    let folder = TemporaryFolder()
    let packets = try makeFile(folder.file("a.opus"), ["page": 100])
    var bytes = contents(folder.file("a.opus"))
    let pages = ParsedPage.all(bytes)
    let place = pages[..<6].reduce(0) { $0 + $1.byteCount } + 60
    bytes[place] ^= 0x10
    put(bytes, at: folder.file("b.opus"))
    let (read, events) = try readOgg(folder.file("b.opus"), ["rate": 16_000])
    let kept = Array(packets[..<20] + packets[25...])
    #expect(read.map(\.bytes) == kept.map(\.bytes))
    #expect(read.map(\.position) == kept.map(\.position))
    #expect(read[20].flags == .discontinuity)
    #expect(read.count { $0.flags == .discontinuity } == 1)
    #expect(events.filter { $0.name == "damaged" }.count >= 1)
    #expect(abs((events[1].number("position") ?? 0) - 0.3935) < 0.001)
    #expect(try decode(read, rate: 16_000).count == sent.count)
  }

  @Test("noise between pages is skipped and reported, and loses nothing")
  func noise() throws {
    let folder = TemporaryFolder()
    let packets = try makeFile(folder.file("a.opus"))
    let bytes = contents(folder.file("a.opus"))
    let pages = ParsedPage.all(bytes)
    let place = pages[..<4].reduce(0) { $0 + $1.byteCount }
    let noise = Array("Ogg, OggS and again OggS: this is nothing".utf8) + [UInt8](repeating: 0, count: 5000)
    put(Array(bytes[..<place]) + noise + Array(bytes[place...]), at: folder.file("b.opus"))
    let (read, events) = try readOgg(folder.file("b.opus"))
    #expect(read.map(\.bytes) == packets.map(\.bytes))
    #expect(events.last?.string("what") == "bytes outside valid pages")
    #expect(try decode(read, rate: 48_000).count == 3 * sent.count)
  }

  @Test("damage of a kind is reported at once, then together at the end of the file, with all its bytes")
  func damageIsGathered() throws {
    let folder = TemporaryFolder()
    _ = try makeFile(folder.file("a.opus"), ["page": 100])
    let bytes = contents(folder.file("a.opus"))
    let heads = ParsedPage.all(bytes)[..<3].reduce(0) { $0 + $1.byteCount }
    var random = SplitMix64(seed: 8)
    let noise = (0..<50_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    put(Array(bytes[..<heads]) + noise + bytes[heads...] + noise, at: folder.file("b.opus"))
    let (read, events) = try readOgg(folder.file("b.opus"))
    #expect(!read.isEmpty)
    let damage = events.filter { $0.string("what") == "bytes outside valid pages" }
    #expect(damage.count == 2 && damage.first?.number("count") == 1)
    #expect((damage.last?.number("count") ?? 0) > 100)
    let told = damage.reduce(0) { $0 + ($1.number("bytes") ?? 0) }
    #expect(told > 99_900 && told <= 100_000)
  }

  @Test("a file truncated anywhere yields what came before, and reports nothing about the rest")
  func truncated() throws {
    let folder = TemporaryFolder()
    let packets = try makeFile(folder.file("a.opus"))
    let bytes = contents(folder.file("a.opus"))
    let heads = ParsedPage.all(bytes)[..<3].reduce(0) { $0 + $1.byteCount }
    for count in stride(from: heads, to: bytes.count, by: 511) {
      put(Array(bytes[..<count]), at: folder.file("b.opus"))
      let (read, events) = try readOgg(folder.file("b.opus"))
      #expect(read.map(\.bytes) == Array(packets.map(\.bytes)[..<read.count]))
      #expect(read.count >= 10)
      #expect(events.last?.name == "truncated")
    }
  }

  @Test("chained streams follow each other without a gap, each with its own pre-skip trimmed")
  func chained() throws {
    let folder = TemporaryFolder()
    _ = try makeFile(folder.file("a.opus"))
    let bytes = contents(folder.file("a.opus"))
    put(bytes + bytes, at: folder.file("b.opus"))
    let (read, events) = try readOgg(folder.file("b.opus"), ["rate": 16_000])
    #expect(events.map(\.name) == ["opened", "opened"])
    let half = read.count / 2
    #expect(read[half].position == Int64(sent.count - 104))
    #expect(read[half].trimStart == 104)
    #expect(read[half].flags == .discontinuity)
    let heard = try decode(read, rate: 16_000)
    #expect(heard.count == 2 * sent.count)
    #expect(Array(heard[..<sent.count]) == Array(heard[sent.count...]))
  }

  @Test("a looped file starts again at its end, and positions continue")
  func loop() throws {
    let folder = TemporaryFolder()
    let packets = try makeFile(folder.file("a.opus"))
    let bench = try NodeBench(
      OggRead.self, ["path": .string(folder.file("a.opus")), "loop": true, "rate": 16_000])
    try bench.run(calls: 3 * packets.count)
    #expect(!bench.hasEnded)
    let read = bench.packets()
    #expect(read.count == 3 * packets.count)
    let heard = try decode(read, rate: 16_000)
    #expect(heard.count == 3 * sent.count)
    #expect(Array(heard[..<sent.count]) == Array(heard[(2 * sent.count)...]))
    #expect(bench.events().count == 3)
  }

  @Test("with pace, packets follow the clock, each at the start plus its position")
  func paced() throws {
    let folder = TemporaryFolder()
    _ = try makeFile(folder.file("a.opus"))
    let bench = try NodeBench(OggRead.self, ["path": .string(folder.file("a.opus")), "pace": true])
    try bench.run()
    #expect(bench.packets().map(\.timestamp) == [-6_500_000])
    #expect(bench.timerRequest == 20_000_000)
    try bench.advance(to: 19_999_999)
    #expect(bench.packets().isEmpty)
    try bench.advance(to: 1_000_000_000)
    let read = bench.packets()
    #expect(read.count == 50)
    #expect(read.last?.timestamp == 993_500_000)
    try bench.advance(to: 5_000_000_000)
    #expect(bench.hasEnded)
  }

  @Test(
    "with pace, a gap of more than ten minutes is not waited for, and is reported", arguments: [599, 601])
  func longGap(seconds: Int) throws {
    let folder = TemporaryFolder()
    _ = try makeFile(folder.file("a.opus"))
    var bytes = contents(folder.file("a.opus"))
    // The pages after the first audio page are later by that much.
    var start = 0
    for (index, page) in ParsedPage.all(bytes).enumerated() {
      let range = start..<start + page.byteCount
      let granule = page.granule + Int64(seconds * 48_000)
      for place in 0..<8 where index > 2 {
        bytes[start + 6 + place] = UInt8(truncatingIfNeeded: granule >> Int64(8 * place))
      }
      bytes.replaceSubrange(range, with: checked(Array(bytes[range])))
      start += page.byteCount
    }
    put(bytes, at: folder.file("b.opus"))
    let (all, _) = try readOgg(folder.file("b.opus"))
    let bench = try NodeBench(OggRead.self, ["path": .string(folder.file("b.opus")), "pace": true])
    try bench.run()
    try bench.advance(to: 5_000_000_000)
    let isWaitedFor = seconds < 600
    #expect(bench.hasEnded != isWaitedFor)
    let told = bench.events().filter { $0.name == "damaged" }.compactMap { $0.string("what") }
    #expect(told == (isWaitedFor ? [] : ["gap of more than ten minutes, not waited for"]))
    let read = bench.packets()
    #expect((read.count == all.count) != isWaitedFor)
    // Positions are the file's; times are the clock's.
    #expect(read.map(\.position) == all.prefix(read.count).map(\.position))
    #expect(read.allSatisfy { $0.timestamp < 5_000_000_000 })
  }

  @Test("other streams in the file are skipped")
  func multiplexed() throws {
    let folder = TemporaryFolder()
    let packets = try makeFile(folder.file("a.opus"))
    let bytes = contents(folder.file("a.opus"))
    // The same file with another serial number and codec name is the other stream.
    var foreign = bytes
    var places: [Range<Int>] = []
    var start = 0
    for page in ParsedPage.all(bytes) {
      places.append(start..<start + page.byteCount)
      foreign[start + 14] ^= 0x55
      start += page.byteCount
    }
    for index in 0..<4 { foreign[places[0].lowerBound + 28 + index] = UInt8(ascii: "x") }
    for place in places { foreign.replaceSubrange(place, with: checked(Array(foreign[place]))) }
    let mixed = places.flatMap { Array(foreign[$0]) + Array(bytes[$0]) }
    put(mixed, at: folder.file("b.ogg"))
    let (read, events) = try readOgg(folder.file("b.ogg"), ["rate": 16_000])
    #expect(read.map(\.bytes) == packets.map(\.bytes))
    #expect(read.map(\.position) == packets.map(\.position))
    #expect(events.map(\.name) == ["opened"])
  }

  @Test("the header's gain is reported")
  func gain() throws {
    let folder = TemporaryFolder()
    _ = try makeFile(folder.file("a.opus"))
    var bytes = contents(folder.file("a.opus"))
    let length = ParsedPage.all(bytes)[0].byteCount
    // -3.5 dB in 1/256 dB.
    let gain = UInt16(bitPattern: -896)
    bytes[28 + 16] = UInt8(gain & 255)
    bytes[28 + 17] = UInt8(gain >> 8)
    put(checked(Array(bytes[..<length])) + Array(bytes[length...]), at: folder.file("b.opus"))
    #expect(try readOgg(folder.file("b.opus")).events.first?.number("gain_db") == -3.5)
  }

  @Test("bytes changed anywhere never stop it, and the output still decodes")
  func fuzz() throws {
    let folder = TemporaryFolder()
    _ = try makeFile(folder.file("a.opus"), ["page": 60])
    let bytes = contents(folder.file("a.opus"))
    var random = SplitMix64(seed: 21)
    for _ in 0..<60 {
      var broken = bytes
      for _ in 0..<1 + Int(random.next() % 20) {
        broken[Int(random.next() % UInt64(broken.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      if random.next() % 4 == 0 { broken.removeSubrange(200..<200 + Int(random.next() % 2000)) }
      put(broken, at: folder.file("b.opus"))
      guard let (read, _) = try? readOgg(folder.file("b.opus")) else { continue }
      #expect(read.allSatisfy { $0.duration > 0 && $0.duration <= 5760 })
      _ = try decode(read, rate: 48_000)
    }
  }

  @Test("changed bytes with corrected checksums never stop it either")
  func deepFuzz() throws {
    let folder = TemporaryFolder()
    _ = try makeFile(folder.file("a.opus"), ["page": 60])
    let bytes = contents(folder.file("a.opus"))
    let pages = ParsedPage.all(bytes)
    var random = SplitMix64(seed: 22)
    var readable = 0
    for _ in 0..<60 {
      var broken: [UInt8] = []
      var start = 0
      for page in pages {
        var piece = Array(bytes[start..<start + page.byteCount])
        start += page.byteCount
        if random.next() % 4 == 0 {
          // Granule position, number and content, but not the lengths, which determine where the page ends.
          let places = Array(6..<14) + Array(18..<22) + Array(27 + Int(piece[26])..<piece.count)
          piece[places[Int(random.next() % UInt64(places.count))]] = UInt8(truncatingIfNeeded: random.next())
        }
        broken += checked(piece)
      }
      put(broken, at: folder.file("b.opus"))
      guard let (read, _) = try? readOgg(folder.file("b.opus")) else { continue }
      readable += 1
      _ = try decode(read, rate: 48_000, ["fill": 500])
    }
    #expect(readable > 30, "most of the files are still read, or the decoder saw nothing: \(readable)")
  }

  @Test(
    "reading allocates nothing once the buffers have grown",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"))
  func heap() throws {
    let folder = TemporaryFolder()
    let packets = try makeFile(folder.file("a.opus"))
    let bench = try NodeBench(OggRead.self, ["path": .string(folder.file("a.opus")), "loop": true])
    try bench.run(calls: packets.count + 20)
    bench.resetHeapRequests()
    try bench.run(calls: 2 * packets.count)
    #expect(bench.heapRequests == 0)
  }
}
