import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

private let sent = chirp(rate: 16_000, frames: 8_003)

@Suite("how ogg.write ends files") struct OggEndingTests {
  /// The last input.
  enum Last: String, CaseIterable {
    case sound, lost, garbage, interruption, nothing, oddGap
  }

  /// A file with a given ending.
  private func write(_ last: Last, to path: String, channels: Int = 1) throws {
    let bench = try NodeBench(
      OggWrite.self, ["path": .string(path)], inputs: ["in": opusShape(rate: 16_000, channels: channels)])
    bench.interrupt()
    if last != .nothing {
      for var packet in try encode(sent, rate: 16_000, cut: 320) {
        packet.generation = last == .interruption ? 1 : 0
        if last == .oddGap, packet.position > 4_000 { packet.position += 50 }
        bench.push(packet)
      }
    }
    if last == .lost { bench.push(bytes: [], duration: 320, flags: .lost) }
    // Code 3 with no frame, which is invalid (RFC 6716 section 3.2.5).
    if last == .garbage { bench.push(bytes: [0x4B, 0], duration: 320) }
    try bench.run()
    if last == .interruption { bench.interrupt() }
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test(
    "whatever came last, the last page is marked and ogg.read finds the file whole", arguments: Last.allCases)
  func isMarked(last: Last) throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    try write(last, to: path)
    let pages = try ParsedPage.all(ofFile: path)
    #expect(pages.map { $0.flags & 4 } == pages.indices.map { $0 == pages.count - 1 ? 4 : 0 })
    let (packets, events) = try readOgg(path, ["rate": 16_000])
    #expect(events.map(\.name) == ["opened"])
    let heard = try decode(packets, rate: 16_000).count
    switch last {
    case .sound, .lost, .garbage: #expect(heard == sent.count)
    case .oddGap: #expect(heard == sent.count + 50)
    // The packet that was held back is dropped, and with it the look-ahead in it.
    case .interruption: #expect(heard == sent.count / 320 * 320 - 104)
    case .nothing: #expect(heard == 0)
    }
  }

  @Test(
    "opusinfo reports no problem, whatever came last",
    // It rightly reports a gap that is not a whole number of frames.
    .enabled(if: TestProgram.isInstalled("opusinfo"), "opusinfo is not installed"),
    arguments: Last.allCases.filter { $0 != .oddGap })
  func opusinfo(last: Last) throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    try write(last, to: path, channels: last == .nothing ? 2 : 1)
    let (_, text, status) = try runProgram("opusinfo", [path])
    #expect(status == 0)
    #expect(!text.lowercased().contains("warning"), "\(text)")
    if last == .nothing { #expect(text.contains("Playback length: 0m:00.000s"), "\(text)") }
  }

  @Test(
    "audio shorter than a frame makes a file of that length, according to opusinfo too",
    .enabled(if: TestProgram.isInstalled("opusinfo"), "opusinfo is not installed"),
    arguments: [1, 100, 215, 216, 319])
  func short(frames: Int) throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    try writeOgg(try encode(Array(sent[..<frames]), rate: 16_000, cut: 320), to: path, rate: 16_000)
    let (packets, events) = try readOgg(path, ["rate": 16_000])
    #expect(events.map(\.name) == ["opened"])
    #expect(try decode(packets, rate: 16_000).count == frames)
    let (_, text, _) = try runProgram("opusinfo", [path])
    #expect(!text.lowercased().contains("warning"), "\(text)")
  }

  @Test("an interruption does not affect microphone audio")
  func uplink() throws {
    let folder = TemporaryFolder()
    let packets = try encode(sent, rate: 16_000, cut: 320)
    try writeOgg(packets, to: folder.file("a.opus"), rate: 16_000)
    let bench = try NodeBench(
      OggWrite.self, ["path": .string(folder.file("b.opus"))], inputs: ["in": opusShape(rate: 16_000)])
    for packet in packets {
      bench.push(packet)
      try bench.run()
      bench.interrupt()
    }
    try bench.finish()
    let bytes = try ["a.opus", "b.opus"].map { try Data(contentsOf: URL(fileURLWithPath: folder.file($0))) }
    #expect(bytes[0] == bytes[1])
  }

  @Test("a file is recognized by any name, and keeps its content until something is written")
  func aliases() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    try writeOgg(try encode(sent, rate: 16_000, cut: 320), to: path, rate: 16_000)
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(link(path, folder.file("hard.opus")) == 0 && symlink(path, folder.file("soft.opus")) == 0)
    let names = [folder.path + "/./a.opus", folder.file("hard.opus"), folder.file("soft.opus")]
    let reader = try NodeBench(OggRead.self, ["path": .string(path)])
    for name in names {
      let words = refusal(OggWrite.self, ["path": .string(name)], inputs: ["in": opusShape(rate: 16_000)])
      #expect(words.hasPrefix("\"\(name)\" is being read or written"))
    }
    #expect(reader.close() == [])
    // A graph that another node prevents from starting.
    let writer = try NodeBench(
      OggWrite.self, ["path": .string(path)], inputs: ["in": opusShape(rate: 16_000)])
    #expect(writer.close() == [])
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  /// What a child process has until its exec: every descriptor of the file, with its lock.
  private func shared(_ path: String) throws -> [Int32] {
    let files = FileManager.default
    let all = try files.contentsOfDirectory(atPath: "/proc/self/fd").compactMap(Int32.init)
    return all.filter { (try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }
      .map { dup($0) }
  }

  @Test("a file is free for a writer once its reader is closed, even while a child process is being started")
  func freed() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    try writeOgg(try encode(sent, rate: 16_000, cut: 320), to: path, rate: 16_000)
    func check(_ reader: NodeBench) throws {
      let copies = try shared(path)
      defer { for copy in copies { close(copy) } }
      #expect(copies.count == 1)
      #expect(reader.close() == [])
      let writer = try NodeBench(
        OggWrite.self, ["path": .string(path)], inputs: ["in": opusShape(rate: 16_000)])
      #expect(writer.close() == [])
    }
    try check(try NodeBench(OggRead.self, ["path": .string(path)]))
    try check(try NodeBench(SpeechRead.self, ["path": .string(path)]))
  }

  @Test("a file that another node reads or writes is refused and keeps its content")
  func claimed() throws {
    let folder = TemporaryFolder()
    let path = folder.file("a.opus")
    let packets = try encode(sent, rate: 16_000, cut: 320)
    try writeOgg(packets, to: path, rate: 16_000)
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let input = ["in": opusShape(rate: 16_000)]
    let words =
      "\"\(path)\" is being read or written by another node or program; write to another file; "
      + "several instances need one each (put {instance} in the name)"
    let reader = try NodeBench(OggRead.self, ["path": .string(path)])
    #expect(refusal(OggWrite.self, ["path": .string(path)], inputs: input) == words)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    try reader.run()
    #expect(reader.packets().map(\.bytes) == packets.map(\.bytes))
    #expect(reader.close() == [])

    let writer = try NodeBench(OggWrite.self, ["path": .string(path)], inputs: input)
    for packet in packets[..<20] { writer.push(packet) }
    try writer.run()
    #expect(refusal(OggWrite.self, ["path": .string(path)], inputs: input) == words)
    #expect(
      refusal(OggRead.self, ["path": .string(path)])
        == "\"path\": \"\(path)\" is being written by another node or program; read it after its writer has finished, "
        + "or write to another file")
    for packet in packets[20...] { writer.push(packet) }
    try writer.finish()
    // The file is complete while the node still exists: others may use it.
    #expect(refusal(OggRead.self, ["path": .string(path)]) == "made")
    #expect(writer.close() == [])
  }
}
