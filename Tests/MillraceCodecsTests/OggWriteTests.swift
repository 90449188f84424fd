import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// One page of an Ogg file, as far as these tests need it (RFC 3533 section 6).
struct ParsedPage {
  var flags: UInt8
  var granule: Int64
  var packets: [[UInt8]]
  var byteCount: Int

  /// The pages of a file whose packets all end in the page they start in.
  static func all(_ bytes: [UInt8]) -> [ParsedPage] {
    var pages: [ParsedPage] = []
    var start = 0
    while start + 27 <= bytes.count, Array(bytes[start..<start + 4]) == Array("OggS".utf8) {
      let count = Int(bytes[start + 26])
      guard start + 27 + count <= bytes.count else { break }
      let granule = (0..<8).reduce(Int64(0)) { $0 | Int64(bytes[start + 6 + $1]) << Int64(8 * $1) }
      var place = start + 27 + count
      var packet: [UInt8] = []
      var packets: [[UInt8]] = []
      for lacing in bytes[start + 27..<start + 27 + count] {
        guard place + Int(lacing) <= bytes.count else { return pages }
        packet += bytes[place..<place + Int(lacing)]
        place += Int(lacing)
        if lacing < 255 {
          packets.append(packet)
          packet = []
        }
      }
      pages.append(
        ParsedPage(flags: bytes[start + 5], granule: granule, packets: packets, byteCount: place - start))
      start = place
    }
    return pages
  }

  static func all(ofFile path: String) throws -> [ParsedPage] {
    all(Array(try Data(contentsOf: URL(fileURLWithPath: path))))
  }
}

/// Writes packets with `ogg.write` and returns its `written` event.
@discardableResult
func writeOgg(
  _ packets: [CapturedPacket], to path: String, rate: Int, channels: Int = 1,
  _ parameters: [String: ParameterValue] = [:]
) throws -> BenchEvent? {
  var parameters = parameters
  parameters["path"] = .string(path)
  let bench = try NodeBench(
    OggWrite.self, parameters, inputs: ["in": opusShape(rate: rate, channels: channels)])
  for packet in packets { bench.push(packet) }
  try bench.finish()
  let event = bench.events().last
  #expect(bench.close() == [])
  return event
}

private let sent = chirp(rate: 16_000, frames: 35_003)

@Suite("ogg.write") struct OggWriteTests {
  @Test("a file starts with both headers on their own pages, and its pages have the requested length")
  func pages() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    let packets = try encode(sent, rate: 16_000, cut: 320)
    let event = try writeOgg(packets, to: path, rate: 16_000, ["tags": ["TITLE=test", "ARTIST=nobody"]])
    let pages = try ParsedPage.all(ofFile: path)
    let head: [UInt8] =
      Array("OpusHead".utf8) + [1, 1, 0x38, 0x01, 0x80, 0x3E, 0, 0, 0, 0, 0]
    #expect(pages[0].packets == [head])
    #expect(pages[0].flags == 2)
    #expect(pages[0].granule == 0)
    let tags = pages[1].packets[0]
    #expect(Array(tags.prefix(8)) == Array("OpusTags".utf8))
    #expect(String(decoding: tags, as: UTF8.self).contains("TITLE=test"))
    #expect(String(decoding: tags, as: UTF8.self).contains("millrace"))
    #expect(pages[1].granule == 0)
    #expect(pages[2].packets.count == 10)
    #expect(pages[2].granule == 9600)
    #expect(pages.last?.flags == 4)
    #expect(pages.last?.granule == Int64(35_003 * 3 + 312))
    #expect(pages.dropFirst(2).flatMap(\.packets) == packets.map(\.bytes))
    #expect(event?.number("packets") == Double(packets.count))
    #expect(event?.number("pages") == Double(pages.count))
    #expect(event?.number("bytes") == Double(pages.reduce(0) { $0 + $1.byteCount }))
    #expect(abs((event?.number("seconds") ?? 0) - 35_003.0 / 16_000) < 0.001)
  }

  @Test("the same packets produce the same bytes")
  func sameBytes() throws {
    let folder = TemporaryFolder()
    let packets = try encode(sent, rate: 16_000, cut: 320)
    try writeOgg(packets, to: folder.file("a.opus"), rate: 16_000)
    try writeOgg(packets, to: folder.file("b.opus"), rate: 16_000)
    let first = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.opus")))
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("b.opus"))) == first)
  }

  @Test("an incomplete file on disk is playable up to its last page")
  func killed() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    let bench = try NodeBench(
      OggWrite.self, ["path": .string(path), "page": 100], inputs: ["in": opusShape(rate: 16_000)])
    for packet in try encode(sent, rate: 16_000, cut: 320)[..<48] { bench.push(packet) }
    try bench.run()
    let copy = folder.file("copy.opus")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let (packets, events) = try readOgg(copy)
    #expect(packets.count == 45)
    #expect(events.map(\.name) == ["opened", "truncated"])
    try bench.finish()
  }

  @Test("untransmitted silence and lost packets keep their length: empty frames fill them")
  func gaps() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    let silent = Array(sent[..<8000]) + [Int16](repeating: 0, count: 32_000) + Array(sent[..<8000])
    var packets = try encode(silent, rate: 16_000, cut: 320, ["dtx": true])
    #expect(packets.count < 100)
    packets[5].bytes = []
    packets[5].flags = .lost
    packets.remove(at: 8)
    let event = try writeOgg(packets, to: path, rate: 16_000)
    #expect((event?.number("filled_s") ?? 0) > 1)
    let (read, events) = try readOgg(path)
    #expect(events.map(\.name) == ["opened"])
    #expect(zip(read, read.dropFirst()).allSatisfy { $1.position == $0.position + Int64($0.duration) })
    #expect(try decode(read, rate: 48_000, ["rate": 16_000]).count == silent.count)
  }

  @Test(
    "a jump that is not a whole number of frames, or longer than an hour, is a jump of the granule position")
  func oddGaps() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    var packets = try encode(sent, rate: 16_000, cut: 320)
    for index in 20..<packets.count { packets[index].position += 320 + 50 }
    for index in 40..<packets.count { packets[index].position += 16_000 * 4000 }
    try writeOgg(packets, to: path, rate: 16_000)
    let (read, _) = try readOgg(path, ["rate": 16_000])
    let total = packets.last!
    #expect(read.last!.position == total.position)
    #expect(read.last!.trimEnd == total.trimEnd)
    #expect(read.count == packets.count + 1)
    let jumps = zip(read, read.dropFirst()).map { $1.position - $0.position - Int64($0.duration) }
    #expect(jumps.filter { $0 != 0 } == [50, 16_000 * 4000])
  }

  @Test("an unwritable path is refused before anything starts, with a cure")
  func refusals() throws {
    let folder = TemporaryFolder()
    let input = ["in": opusShape(rate: 16_000)]
    let missing = folder.file("none/a.opus")
    #expect(
      refusal(OggWrite.self, ["path": .string(missing)], inputs: input)
        == "\"path\": cannot write \"\(missing)\": the directory \"\(folder.file("none"))\" does not exist; "
        + "create it: mkdir -p \"\(folder.file("none"))\"")
    #expect(
      refusal(OggWrite.self, ["path": .string(folder.path)], inputs: input)
        == "\"path\": \"\(folder.path)\" is a directory; name a file in it")
    let pipe = folder.file("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    #expect(
      refusal(OggWrite.self, ["path": .string(pipe)], inputs: input)
        == "the pipe \"\(pipe)\" has no reader; start its reader first")
    #expect(
      refusal(OggWrite.self, ["path": .string(folder.file("a.opus")), "tags": ["nonsense"]], inputs: input)
        == "\"tags\": \"nonsense\" is not a tag; write it as NAME=value, with a name of ASCII letters, digits and spaces"
    )
  }

  @Test("missing permission is reported")
  func permission() async {
    await #expect(processExitsWith: .success) {
      // A folder every user can reach; the system's temporary folder may be private to its owner.
      let folder = TemporaryFolder(in: "/dev/shm")
      // Root may write everywhere, so the folder and the rest of this process are given to nobody.
      if getuid() == 0 { #expect(chown(folder.path, 65_534, 65_534) == 0 && setuid(65_534) == 0) }
      #expect(chmod(folder.path, 0o500) == 0)
      let path = folder.file("a.opus")
      #expect(
        refusal(OggWrite.self, ["path": .string(path)], inputs: ["in": opusShape(rate: 16_000)])
          == "\"path\": cannot write \"\(path)\": Permission denied (errno 13); "
          + "grant this user write permission, or choose another path")
      #expect(chmod(folder.path, 0o700) == 0)
    }
  }

  @Test("a full disk fails the node with a message")
  func fullDisk() throws {
    let bench = try NodeBench(
      OggWrite.self, ["path": "/dev/full"], inputs: ["in": opusShape(rate: 16_000)])
    for packet in try encode(sent, rate: 16_000, cut: 320) { bench.push(packet) }
    let fault = #expect(throws: BenchFault.self) { try bench.finish() }
    #expect(
      fault?.text
        == "writing \"/dev/full\" failed: No space left on device (errno 28); the first 0 bytes were written and are playable; "
        + "free disk space"
    )
  }

  @Test("a pipe whose reader disappears fails the node, not the process")
  func closedPipe() throws {
    let folder = TemporaryFolder()
    let path = folder.file("pipe")
    #expect(mkfifo(path, 0o600) == 0)
    let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    #expect(reader >= 0)
    let bench = try NodeBench(
      OggWrite.self, ["path": .string(path)], inputs: ["in": opusShape(rate: 16_000)])
    let packets = try encode(sent, rate: 16_000, cut: 320)
    for packet in packets[..<20] { bench.push(packet) }
    try bench.run()
    try #require(closeReader(reader, of: path))
    for packet in packets[20...] { bench.push(packet) }
    let fault = #expect(throws: BenchFault.self) { try bench.finish() }
    #expect(fault?.fault.code == EPIPE)
    #expect(fault?.text?.hasPrefix("writing \"\(path)\" failed: Broken pipe (errno 32); the ") == true)
    #expect(fault?.text?.hasSuffix("; keep its reader running until the graph ends") == true)
  }

  @Test(
    "writing allocates nothing once the buffers have grown",
    .enabled(if: HeapScope.isCounting, "\(HeapScope.skipReason)"))
  func heap() throws {
    let folder = TemporaryFolder()
    let bench = try NodeBench(
      OggWrite.self, ["path": .string(folder.file("a.opus"))], inputs: ["in": opusShape(rate: 16_000)])
    let packets = try encode(sent, rate: 16_000, cut: 320)
    for packet in packets[..<50] { bench.push(packet) }
    try bench.run()
    bench.resetHeapRequests()
    for packet in packets[50...] { bench.push(packet) }
    try bench.finish()
    #expect(bench.heapRequests == 0)
  }

  @Test(
    "opusinfo reports no problem, and the exact length",
    .enabled(if: TestProgram.isInstalled("opusinfo"), "opusinfo is not installed"), arguments: [false, true])
  func opusinfo(dtx: Bool) throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    let silent = sent + [Int16](repeating: 0, count: 20_000) + sent
    let packets = try encode(silent, rate: 16_000, cut: 320, ["dtx": .bool(dtx)])
    try writeOgg(packets, to: path, rate: 16_000)
    let (_, text, status) = try runProgram("opusinfo", [path])
    #expect(status == 0)
    #expect(!text.lowercased().contains("warning"), "\(text)")
    #expect(text.contains("Pre-skip: 312"))
    #expect(text.contains("Playback length: 0m:05.625s"), "\(text)")
  }

  @Test(
    "another decoder yields the same number of samples at the same positions",
    .enabled(if: TestProgram.isInstalled("opusdec"), "opusdec is not installed"))
  func opusdec() throws {
    let folder = TemporaryFolder()
    try writeOgg(
      try encode(sent, rate: 16_000, cut: 320, ["bitrate": 40_000, "application": "audio"]),
      to: folder.file("a.opus"), rate: 16_000)
    let (_, text, status) = try runProgram(
      "opusdec", ["--quiet", "--rate", "48000", "--no-dither", folder.file("a.opus"), folder.file("a.wav")])
    #expect(status == 0, "\(text)")
    let wave = Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("a.wav"))).dropFirst(44))
    let heard = CapturedPacket(bytes: wave).int16
    #expect(heard.count == 3 * sent.count)
    #expect(lag(chirp(rate: 48_000, frames: 20_000), heard, reach: 30, from: 2000, count: 4000) == 0)
  }

  @Test(
    "ffprobe reads the file and its tags",
    .enabled(if: TestProgram.isInstalled("ffprobe"), "ffprobe is not installed"))
  func ffprobe() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    try writeOgg(
      try encode(sent, rate: 16_000, cut: 320), to: path, rate: 16_000, ["tags": ["TITLE=a test"]])
    let (_, text, status) = try runProgram(
      "ffprobe",
      [
        "-v", "error", "-show_entries", "stream=codec_name,channels:stream_tags=title:format=format_name",
        "-of", "default=nw=1", path,
      ])
    #expect(status == 0)
    #expect(text.contains("codec_name=opus"))
    #expect(text.contains("channels=1"))
    #expect(text.lowercased().contains("tag:title=a test"))
  }
}
