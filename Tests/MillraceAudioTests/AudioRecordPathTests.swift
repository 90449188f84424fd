import Glibc
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceAudio

@Suite("audio.record: paths set while the graph runs")
struct AudioRecordPathTests {
  private let folder = TemporaryFolder()
  private static let rate = 8_000
  /// Frames of a packet, and its duration.
  private static let frames = 160
  private static let packet = Nanoseconds.milliseconds(20)

  private func bench(
    _ path: String, _ parameters: [String: ParameterValue] = [:], inputs: Int = 1
  ) throws -> NodeBench {
    try NodeBench(
      AudioRecord.self, parameters.merging(["path": .string(path)]) { first, _ in first },
      inputs: Dictionary(uniqueKeysWithValues: (1...inputs).map { ("in\($0)", shape(Self.rate)) }))
  }

  private func ramp(_ range: Range<Int>) -> [Int16] { range.map { Int16(truncatingIfNeeded: $0 &* 7 + 1) } }

  /// Delivers the packets of a stream whose samples are all different, each when its last sample is known.
  private func push(_ bench: NodeBench, packets: Range<Int>, to inputs: [String] = ["in1"]) throws {
    for number in packets {
      try bench.advance(to: Nanoseconds(number + 1) * Self.packet)
      for (index, input) in inputs.enumerated() {
        bench.push(
          ramp(number * Self.frames..<(number + 1) * Self.frames).map { $0 &+ Int16(index) }, to: input,
          timestamp: Nanoseconds(number) * Self.packet)
      }
      try bench.run()
    }
  }

  private func samples(_ path: String) throws -> [Int16] {
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.finish()
    defer { #expect(bench.close() == []) }
    return bench.int16()
  }

  /// Frames of a file at the recorder's rate; Opus plays at a rate of its own.
  private func frames(_ path: String) throws -> Int {
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.finish()
    defer { #expect(bench.close() == []) }
    return bench.int16().count * Self.rate / (bench.shape().format.rate ?? 1)
  }

  private func texts(_ bench: NodeBench) -> [String] {
    bench.events().filter { $0.name == "error" }.compactMap { $0.string("text") }
  }

  @Test(
    "each file continues with the sample after the last one of the file before",
    arguments: ["wav", "flac"])
  func continues(kind: String) throws {
    let paths = (0..<4).map { folder.file("part\($0).\(kind)") }
    let bench = try bench(paths[0], inputs: 2)
    // Not at the edge of a packet, and before the audio of that time has arrived.
    for number in 0..<4 {
      if number > 0 { try bench.set("path", .string(paths[number])) }
      try push(bench, packets: number * 10..<number * 10 + 10, to: ["in1", "in2"])
      try bench.advance(by: .milliseconds(5 + 2 * Int64(number)))
    }
    try bench.finish()
    let events = bench.events().filter { $0.name != "progress" }
    #expect(
      events.map(\.name)
        == ["began", "completed", "began", "completed", "began", "completed", "began", "completed"])
    let completed = events.filter { $0.name == "completed" }
    #expect(completed.map { $0.string("path") } == paths)
    #expect(
      completed.map { $0.string("reason") } == ["replaced", "replaced", "replaced", "ended"])
    #expect(completed.map { $0.number("bytes").map { Int($0) } } == paths.map { contents($0).count })
    #expect(bench.close() == [])
    let parts = try paths.map { try samples($0) }
    // The changes were at 205, 407 and 609 ms of 800 ms.
    #expect(parts.map { $0.count / 2 } == [1_640, 1_616, 1_616, 1_528])
    let whole = parts.flatMap { $0 }
    let input = ramp(0..<40 * Self.frames)
    #expect(whole == input.flatMap { [$0, $0 &+ 1] })
  }

  @Test("every format's files are complete", arguments: ["opus", "aac", "m4a"])
  func complete(kind: String) throws {
    let paths = (0..<2).map { folder.file("part\($0).\(kind)") }
    let bench = try bench(paths[0])
    try push(bench, packets: 0..<25)
    try bench.set("path", .string(paths[1]))
    try push(bench, packets: 25..<60)
    // The second file is complete, too, if the run is stopped.
    #expect(bench.close() == [])
    let counts = try paths.map { try frames($0) }
    // AAC keeps the encoder's delay and the padding of the last block, of 1,024 samples each.
    let most = kind == "opus" ? 0 : 2 * 1_024
    #expect((4_000...4_000 + most).contains(counts[0]), "\(counts)")
    #expect((5_600...5_600 + most).contains(counts[1]), "\(counts)")
  }

  @Test("without a path nothing is recorded until one is set, and the same file may be recorded again")
  func atWill() throws {
    let (first, second) = (folder.file("first.wav"), folder.file("second.flac"))
    let bench = try bench("")
    try push(bench, packets: 0..<5)
    #expect(folder.names == [] && bench.events().isEmpty)
    try bench.set("path", .string(first))
    try push(bench, packets: 5..<10)
    try bench.set("path", "")
    try push(bench, packets: 10..<15)
    #expect(try samples(first) == ramp(800..<1_600))
    try bench.set("path", .string(second))
    try push(bench, packets: 15..<20)
    try bench.set("path", "")
    try bench.set("path", .string(first))
    try push(bench, packets: 20..<25)
    #expect(!bench.hasEnded)
    try bench.finish()
    #expect(bench.hasEnded)
    #expect(
      bench.events().filter { $0.name == "completed" }.map { $0.string("reason") }
        == ["stopped", "stopped", "ended"])
    #expect(bench.close() == [])
    #expect(try samples(second) == ramp(2_400..<3_200))
    #expect(try samples(first) == ramp(3_200..<4_000))
  }

  @Test("stop, cancel and duration end a file, not a node that began without one")
  func staysReady() throws {
    let names = ["stopped.wav", "cancelled.wav", "timed.wav"].map { folder.file($0) }
    let bench = try bench("", ["duration": 100])
    for (number, end) in ["stop", "cancel", ""].enumerated() {
      try bench.set("path", .string(names[number]))
      try push(bench, packets: number * 10..<number * 10 + 4)
      if !end.isEmpty { try bench.set(end, true) }
      try push(bench, packets: number * 10 + 4..<number * 10 + 10)
    }
    #expect(!bench.hasEnded)
    let events = bench.events().filter { $0.name != "progress" }
    #expect(events.map(\.name) == ["began", "completed", "began", "cancelled", "began", "completed"])
    #expect(events.compactMap { $0.string("reason") } == ["stopped", "duration"])
    try bench.finish()
    #expect(bench.close() == [])
    #expect(folder.names == ["stopped.wav", "timed.wav"])
    #expect(try samples(names[0]) == ramp(0..<640) && samples(names[2]) == ramp(3_200..<4_000))
  }

  @Test("a path that cannot be recorded to is an event with the cure, and the recording continues")
  func refused() throws {
    let path = folder.file("kept.wav")
    let bench = try bench(path, ["layout": "channels"], inputs: 2)
    mkfifo(folder.file("pipe.wav"), 0o600)
    // Its header cannot be written.
    #expect(symlink("/dev/full", folder.file("full.wav")) == 0)
    let other = try NodeBench(AudioRead.self, ["path": .string(try written("other.wav"))])
    let names = [
      "gone/a.wav", "a.mp3", "pipe.wav", "kept.wav", "other.wav", "full.wav", "a.flac",
    ]
    for (number, name) in names.enumerated() {
      try push(bench, packets: number * 2..<number * 2 + 2, to: ["in1", "in2"])
      try bench.set("path", .string(folder.file(name)))
    }
    try push(bench, packets: 14..<20, to: ["in1", "in2"])
    let texts = texts(bench)
    #expect(texts.count == 6, "\(texts)")
    #expect(
      texts.first
        == "cannot write \"\(folder.path)/gone/a.wav\": the directory \"\(folder.path)/gone\" does not exist; create it: mkdir -p \"\(folder.path)/gone\""
    )
    #expect(
      texts[1].hasSuffix(
        "a.mp3\" has no known audio file extension; use .wav, .flac, .opus, .aac or .m4a, or set \"format\""))
    #expect(texts[2].contains("is a pipe, but a recording is completed by rewriting its beginning"))
    #expect(
      texts[3]
        == "\"\(path)\" is being recorded already; to begin it again, which replaces it, set \"path\" to \"\" first"
    )
    #expect(texts[4].contains("is being read or written by another node or program; write to another file"))
    #expect(texts[5].contains("full.wav\" failed: "), "\(texts[5])")
    try bench.finish()
    #expect(bench.close() == [] && other.close() == [])
    // 14 packets are in the first file, whatever was refused meanwhile, and all others in the second.
    #expect(try samples(path).count == 2 * 14 * Self.frames)
    #expect(try samples(folder.file("a.flac")).count == 2 * 6 * Self.frames)
  }

  /// A file that another node may hold.
  private func written(_ name: String) throws -> String {
    try writeWAV([1, 2, 3], rate: Self.rate, to: folder.file(name))
    return folder.file(name)
  }

  @Test("a directory that vanishes between two recordings is an event, and recording begins when it is back")
  func vanished() throws {
    let (directory, path) = (folder.file("gone"), folder.file("gone/call.wav"))
    #expect(mkdir(directory, 0o700) == 0)
    let bench = try bench(path)
    try push(bench, packets: 0..<5)
    try bench.set("path", "")
    try push(bench, packets: 5..<6)
    #expect(unlink(path) == 0 && rmdir(directory) == 0)
    try bench.set("path", .string(path))
    try push(bench, packets: 6..<8)
    #expect(texts(bench).count == 1)
    #expect(mkdir(directory, 0o700) == 0)
    try bench.set("path", .string(path))
    try push(bench, packets: 8..<10)
    try bench.finish()
    #expect(bench.close() == [])
    #expect(try samples(path) == ramp(1_280..<1_600))
  }

  @Test("what a format does not support is refused when its path is set")
  func unsupported() throws {
    let stereo = OutputShape.pcm(rate: 44_100, channels: 2, sample: .s16, frames: 882)
    let bench = try NodeBench(
      AudioRecord.self, ["path": "", "bitrate": 64_000],
      inputs: ["in1": stereo, "in2": stereo, "in3": stereo])
    for name in ["a.wav", "a.opus", "a.m4a"] { try bench.set("path", .string(folder.file(name))) }
    try bench.run()
    #expect(
      texts(bench) == [
        "WAV is lossless and has no bit rate; remove it",
        "Ogg Opus does not support 44100 Hz; put audio.resample (rate 48000) before each input",
        "the file would have 6 channels; MP4 supports 5; put audio.convert (channels 1) before stereo inputs, or set \"layout\" to \"mix\"",
      ])
    #expect(folder.names == [] && bench.close() == [])
    #expect(
      refusal(AudioRecord.self, ["path": "", "format": "flac", "bitrate": 64_000], inputs: ["in1": shape()])
        == "\"bitrate\": FLAC is lossless and has no bit rate; remove it")
  }

  @Test("an input that has stopped does not keep a file open for longer than the patience")
  func stalled() throws {
    let (first, second) = (folder.file("first.wav"), folder.file("second.wav"))
    let bench = try bench(first, ["patience": 100])
    try push(bench, packets: 0..<5)
    // The change is at 130 ms, and only 100 ms have arrived.
    try bench.advance(to: .milliseconds(130))
    try bench.set("path", .string(second))
    try bench.advance(to: .milliseconds(229))
    #expect(!bench.events().contains { $0.name == "completed" })
    try bench.advance(to: .milliseconds(230))
    #expect(bench.events().map(\.name) == ["completed", "began"])
    try push(bench, packets: 11..<13)
    try bench.finish()
    #expect(bench.close() == [])
    #expect(try samples(first) == ramp(0..<800))
    #expect(try samples(second) == ramp(1_760..<2_080))
  }

  @Test("a change while the graph drains leaves complete files")
  func draining() throws {
    let (first, second) = (folder.file("first.flac"), folder.file("second.flac"))
    let bench = try bench(first)
    try push(bench, packets: 0..<5)
    try bench.advance(to: .milliseconds(110))
    try bench.set("path", .string(second))
    try bench.finish()
    #expect(
      bench.events().filter { $0.name == "completed" }.map { $0.number("samples") } == [800, 0])
    #expect(bench.close() == [])
    #expect(try samples(first) == ramp(0..<800))
    #expect(contents(second).starts(with: "fLaC".utf8))
  }

  /// A recorder that is recreated in a graph that started without a path.
  private struct Recreated: ~Copyable, Node {
    static var contract: NodeContract { AudioRecord.contract }
    private var node: AudioRecord

    init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
      var setup = copy setup
      setup.initial["path"] = .string("")
      node = try AudioRecord(setup)
    }

    mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
    mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.finish(&ports) }
    mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
      try node.receive(message, &ports)
    }
  }

  @Test("a recreated node reports that the last path cannot be recorded to, and waits for the next one")
  func recreatedWithoutFile() throws {
    let (held, path) = (try written("held.wav"), folder.file("call.wav"))
    let other = try NodeBench(AudioRead.self, ["path": .string(held)])
    let bench = try NodeBench(
      Recreated.self, ["path": .string(held)], inputs: ["in1": shape(Self.rate)])
    try push(bench, packets: 0..<5)
    let texts = texts(bench)
    #expect(texts.count == 1)
    #expect(texts.first?.contains("is being read or written by another node or program") == true, "\(texts)")
    try bench.set("path", .string(path))
    try push(bench, packets: 5..<10)
    try bench.finish()
    #expect(self.texts(bench).isEmpty && bench.close() == [] && other.close() == [])
    #expect(try samples(path) == ramp(5 * Self.frames..<10 * Self.frames))
  }

  @Test("a recreated node of a graph that started without a path does not end with its file")
  func recreatedWithFile() throws {
    let path = folder.file("call.wav")
    let bench = try NodeBench(
      Recreated.self, ["path": .string(path), "duration": 40], inputs: ["in1": shape(Self.rate)])
    try push(bench, packets: 0..<5)
    #expect(!bench.hasEnded)
    try bench.finish()
    #expect(bench.close() == [])
    #expect(try samples(path) == ramp(0..<2 * Self.frames))
  }

  @Test("a graph that is stopped completes its file")
  func stopped() throws {
    let path = folder.file("call.wav")
    let bench = try bench(path)
    try push(bench, packets: 0..<7)
    #expect(bench.close() == [])
    #expect(try samples(path) == ramp(0..<7 * Self.frames))
  }

  @Test("a node that ends with its file does so with one that was set while it ran")
  func endsWithFile() throws {
    let (first, second) = (folder.file("first.wav"), folder.file("second.wav"))
    let bench = try bench(first, ["duration": 200])
    try push(bench, packets: 0..<5)
    try bench.set("path", .string(second))
    try push(bench, packets: 5..<15)
    #expect(bench.hasEnded)
    let completed = bench.events().filter { $0.name == "completed" }
    #expect(completed.map { $0.string("reason") } == ["replaced", "duration"])
    #expect(bench.close() == [])
    #expect(try samples(first) == ramp(0..<800) && samples(second) == ramp(800..<2_400))
  }

  @Test("a node that lives on for a change of path alone ends when that path cannot be recorded to")
  func durationBeforeRefusal() throws {
    let (first, second) = (folder.file("first.wav"), folder.file("missing/second.wav"))
    for isAsked in [false, true] {
      let bench = try bench(first, ["duration": 100])
      try push(bench, packets: 0..<4)
      // The audio has got to 80 ms.
      try bench.advance(to: .milliseconds(200))
      // An empty path asks the node to wait for another one.
      if isAsked { try bench.set("path", "") }
      try bench.set("path", .string(second))
      try push(bench, packets: 4..<20)
      #expect(bench.hasEnded != isAsked)
      let events = bench.events().filter { $0.name != "progress" }
      #expect(events.map(\.name) == ["began", "completed", "error"])
      #expect(events.last?.string("path") == second)
      #expect(bench.close() == [])
      #expect(try samples(first) == ramp(0..<800))
    }
  }

  @Test("a file that has its duration before a change of path is followed by that change")
  func durationBeforeChange() throws {
    let (first, second) = (folder.file("first.wav"), folder.file("second.wav"))
    let bench = try bench(first, ["duration": 100])
    try push(bench, packets: 0..<4)
    // The audio has got to 80 ms.
    try bench.advance(to: .milliseconds(200))
    try bench.set("path", .string(second))
    try push(bench, packets: 4..<20)
    #expect(bench.hasEnded)
    let completed = bench.events().filter { $0.name == "completed" }
    #expect(completed.map { $0.string("path") } == [first, second])
    #expect(completed.map { $0.string("reason") } == ["duration", "duration"])
    #expect(bench.close() == [])
    #expect(try samples(first) == ramp(0..<800) && samples(second) == ramp(1_600..<2_400))
  }
}
