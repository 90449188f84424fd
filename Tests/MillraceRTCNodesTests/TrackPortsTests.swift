import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceTesting
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

/// A node with outputs of single participants beside those of all, whose call is the test.
struct TracksNode: ~Copyable, Node {
  /// Bytes of the largest picture.
  static let pictureBytes = 400_000

  static let contract = NodeContract(
    "test.tracks", "plays sound and shows pictures",
    outputs: [
      RTCPortContracts.audioOut, sound("audio1"), sound("audio2"), pictures("video1"), pictures("video2"),
    ],
    parameters: RTCParameters.session + [
      ParameterContract("slots", .integer(0...16), default: .integer(8), text: "participants")
    ],
    events: DialogEvent.contracts, drive: .itself,
    resolve: { resolution in
      resolution.pacing = .live
      for name in ["audio", "audio1", "audio2"] {
        resolution.outputs[name] = .pcm(
          rate: 48_000, channels: 1, sample: name == "audio2" ? .s16 : .f32, frames: 480, burst: 0)
      }
      for name in ["video1", "video2"] {
        resolution.outputs[name] = OutputShape(
          .vp8, packetDuration: nil, packetBytes: TracksNode.pictureBytes, burst: 0)
      }
    })

  private static func sound(_ name: String) -> PortContract {
    PortContract(name, RTCPortContracts.soundOut.formats, text: "one participant", required: false)
  }

  private static func pictures(_ name: String) -> PortContract {
    PortContract(name, RTCPortContracts.videoOut.formats, text: "one participant", required: false)
  }

  private var session: RTCPorts

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let probe = PortsProbe.current else { throw NodeProblem("there is no probe") }
    var outputs = RTCPorts.Outputs(audio: 0)
    for medium in 0..<2 {
      outputs.audios.append(RTCPorts.Track(output: 1 + medium, medium: UInt8(medium)))
      outputs.videos.append(RTCPorts.Track(output: 3 + medium, medium: UInt8(medium)))
    }
    session = try RTCPorts(setup, RTCPorts.Inputs(), outputs) { (exchange) throws(NodeProblem) in
      probe.exchange = exchange
      return nil
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.process(&ports) }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.finish(&ports) }
}

/// The outputs of single participants.
@Suite("participants at outputs of their own") struct TrackPortsTests {
  private let probe = PortsProbe()

  private func bench(
    _ outputs: [String], _ parameters: [String: ParameterValue] = [:], outputLimit: Int = 64
  ) throws -> NodeBench {
    try PortsProbe.$current.withValue(probe) {
      try NodeBench(
        TracksNode.self, parameters, outputs: outputs + ["events"], outputLimit: outputLimit)
    }
  }

  // MARK: Sound

  private static let frequencies = [440.0, 1_000, 1_500]

  /// Tones of three participants, who come in the media 0 to 2.
  private func tones(_ seconds: Int) throws -> [(packet: SoundPacket, time: Double)] {
    var all: [(packet: SoundPacket, time: Double)] = []
    for (medium, frequency) in Self.frequencies.enumerated() {
      for (packet, time) in onTime(try SoundProbe.tone(seconds, frequency: frequency)) {
        var packet = packet
        packet.source = 1 << 32 | UInt64(medium)
        packet.medium = UInt8(medium)
        all.append((packet, time))
      }
    }
    return all.sorted { $0.time < $1.time }
  }

  /// Packets arrive at their times.
  private func play(
    _ arrivals: [(packet: SoundPacket, time: Double)], _ bench: NodeBench, _ body: (Double) -> Void = { _ in }
  ) throws {
    for (packet, time) in arrivals {
      body(time)
      try bench.advance(to: max(bench.now, Nanoseconds(time * 1e6)))
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
    }
  }

  private func level(_ sound: [Float], _ frequency: Double) -> Double {
    toneLevel(Array(sound[60_000..<84_000]), frequency, rate: 48_000).level
  }

  @Test("a participant is heard at its own output and in the mix, in the same 10 ms, in either format")
  func sounds() throws {
    let bench = try bench(["audio", "audio1", "audio2"])
    try play(try tones(2), bench)
    let mix = bench.packets("audio")
    let (one, two) = (bench.packets("audio1"), bench.packets("audio2"))
    #expect(mix.count > 180 && one.count == mix.count && two.count == mix.count)
    for single in [one, two] {
      #expect(single.map(\.timestamp) == mix.map(\.timestamp))
      #expect(single.map(\.position) == mix.map(\.position))
      #expect(single.allSatisfy { $0.duration == 480 && !$0.flags.contains(.discontinuity) })
    }
    #expect(two.allSatisfy { $0.bytes.count == 960 })
    let sounds = [
      mix.flatMap(\.float), one.flatMap(\.float), two.flatMap(\.int16).map { Float($0) / 32_768 },
    ]
    // At which outputs each tone is.
    for (frequency, places) in zip(Self.frequencies, [[0, 1], [0, 2], [0]]) {
      for index in sounds.indices {
        let level = level(sounds[index], frequency)
        if places.contains(index) {
          #expect(abs(level - -15.05) < 0.5, "\(frequency) Hz at \(index)")
        } else {
          #expect(level < -45, "\(frequency) Hz at \(index)")
        }
      }
    }
    #expect(bench.close() == [])
  }

  @Test("single participants are heard without the mix")
  func noMix() throws {
    let bench = try bench(["audio2"])
    try play(try tones(2), bench)
    let sound = bench.int16("audio2").map { Float($0) / 32_768 }
    #expect(abs(level(sound, 1_000) - -15.05) < 0.5 && level(sound, 440) < -45)
    #expect(bench.close() == [])
  }

  @Test("an output without room stops no other; what it misses is marked as a gap")
  func gaps() throws {
    let bench = try bench(["audio", "audio1", "audio2"], outputLimit: 4)
    try play(try tones(2), bench) { time in
      if (500..<510).contains(time) { bench.hold("audio1") }
      if (1_000..<1_010).contains(time) { bench.release("audio1") }
    }
    let (mix, one, two) = (bench.packets("audio"), bench.packets("audio1"), bench.packets("audio2"))
    #expect(mix.count > 180 && two.count == mix.count)
    #expect(zip(mix, mix.dropFirst()).allSatisfy { $1.position == $0.position + 480 })
    // Half a second, but for what its link holds.
    let missing = mix.count - one.count
    #expect((30...50).contains(missing))
    let behind = one.indices.filter { one[$0].flags.contains(.discontinuity) }
    let index = try #require(behind.first)
    #expect(behind.count == 1 && index > 0)
    let gap = one[index].position - one[max(0, index - 1)].position
    #expect(gap == Int64(480 * (missing + 1)))
    #expect(mix.allSatisfy { !$0.flags.contains(.discontinuity) })
    #expect(bench.close() == [])
  }

  @Test("with more slots than eight, so many sources are heard and the queue is longer", arguments: [8, 16])
  func slots(_ slots: Int) throws {
    let bench = try bench(["audio"], ["slots": .integer(slots)])
    let tone = try SoundProbe.tone(2)
    let begun = (2..<13).map { source in
      var packet = tone[0]
      packet.source = UInt64(source)
      return (packet: packet, time: 1.0)
    }
    let room = SoundDownHead.byteCount + 7_000
    #expect(probe.exchange.soundDown.hasRoom(room))
    try play(begun + onTime(tone), bench)
    let heard = bench.float("audio")
    #expect((level(heard, 440) > -20) == (slots == 16))
    // Two packets of this size in 16 KB, four in 32.
    var count = 0
    while probe.exchange.soundDown.hasRoom(room) {
      probe.exchange.soundDown.put(9, count: room) { target in
        for index in 0..<room { target[index] = 0 }
      }
      count += 1
    }
    #expect((count > 2) == (slots == 16))
    try bench.run()
    _ = bench.packets("audio")
    #expect(bench.close() == [])
  }

  // MARK: Pictures

  /// A picture arrives in a medium, this long ago by the clock of arrivals, which is not that of the bench.
  private func show(
    _ medium: UInt8, source: UInt64? = nil, isKey: Bool = false, ago: Nanoseconds, _ mark: UInt8 = 0,
    count: Int = 0, _ bench: NodeBench
  ) throws {
    var head = PictureDownHead.made(source: source ?? UInt64(medium) + 1, codec: .vp8, isKey: isKey)
    head.arrival = Clock(.realtime).now - ago
    head.medium = medium
    let bytes = CodedPicture.vp8(isKey: isKey) + [UInt8](repeating: 7, count: count) + [mark]
    probe.exchange.pictureDown.put(
      MediaRecord.picture, count: PictureDownHead.byteCount + bytes.count
    ) { target in
      head.store(to: target)
      for index in bytes.indices { target[PictureDownHead.byteCount + index] = bytes[index] }
    }
    probe.exchange.waker.wake()
    try bench.run()
  }

  private func end(source: UInt64, _ bench: NodeBench) throws {
    probe.exchange.pictureDown.put(MediaRecord.pictureEnd, count: PictureDownHead.byteCount) { target in
      PictureDownHead.made(source: source).store(to: target)
    }
    probe.exchange.waker.wake()
    try bench.run()
  }

  private func marks(_ bench: NodeBench, _ output: String) -> [UInt8] {
    bench.packets(output).map { $0.bytes.last ?? 255 }
  }

  private func commands() -> [String] {
    var result: [String] = []
    while let record = probe.exchange.commands.peek() {
      result.append(String(decoding: record.bytes, as: UTF8.self))
      probe.exchange.commands.drop(record)
    }
    return result
  }

  /// Longer than a picture may wait, and never: arrivals in the future have no age.
  private static let old = Nanoseconds.milliseconds(1_000)
  private static let fresh = -Nanoseconds.milliseconds(3_600_000)

  @Test("the pictures of each participant leave at its own output")
  func pictures() throws {
    let bench = try bench(["video1", "video2"])
    for number in UInt8(0)..<4 {
      for medium in UInt8(0)..<3 {
        try show(medium, isKey: number == 0, ago: Self.fresh, 10 * medium + number, bench)
      }
    }
    #expect(marks(bench, "video1") == [0, 1, 2, 3] && marks(bench, "video2") == [10, 11, 12, 13])
    #expect(probe.exchange.pictureDown.peek() == nil && commands() == [])
    #expect(bench.close() == [])
  }

  @Test("pictures of a participant whose output is not linked are dropped, and hold up nobody")
  func unlinked() throws {
    let bench = try bench(["video2"])
    for number in UInt8(0)..<4 {
      for medium in UInt8(0)..<2 {
        try show(medium, isKey: number == 0, ago: Self.fresh, 10 * medium + number, bench)
      }
    }
    #expect(marks(bench, "video2") == [10, 11, 12, 13])
    #expect(probe.exchange.pictureDown.peek() == nil && commands() == [])
    #expect(bench.close() == [])
  }

  @Test("the end of a source reaches the output where it was shown, whichever that is")
  func ends() throws {
    let bench = try bench(["video1", "video2"])
    for medium in UInt8(0)..<2 { try show(medium, isKey: true, ago: Self.fresh, medium, bench) }
    // Another source in the place of one that has not ended is not shown.
    try show(1, source: 9, isKey: true, ago: Self.fresh, 2, bench)
    try end(source: 2, bench)
    try show(1, source: 9, isKey: true, ago: Self.fresh, 3, bench)
    try show(0, ago: Self.fresh, 4, bench)
    #expect(marks(bench, "video1") == [0, 4] && marks(bench, "video2") == [1, 3])
    #expect(commands() == [])
    #expect(bench.close() == [])
  }

  @Test("an output without room holds the others up for half a second at most; then it needs a key frame")
  func blocked() throws {
    let bench = try bench(["video1", "video2"], outputLimit: 2)
    bench.hold("video1")
    for number in UInt8(0)..<12 {
      for medium in UInt8(0)..<2 { try show(medium, isKey: number == 0, ago: Self.old, number, bench) }
    }
    #expect(marks(bench, "video2") == Array(0..<12))
    // What finds no room is not asked for again.
    #expect(commands() == [])
    bench.release("video1")
    let before = marks(bench, "video1")
    #expect(before.count < 12 && before == Array(0..<UInt8(before.count)))
    try show(0, ago: Self.old, 20, bench)
    #expect(marks(bench, "video1") == [])
    #expect(commands() == [#"{"command":"extra","name":"requestKeyFrame","payload":{"medium":0}}"#])
    try show(0, isKey: true, ago: Self.old, 21, bench)
    let packets = bench.packets("video1")
    #expect(packets.map { $0.bytes.last } == [21])
    #expect(packets.first?.flags.contains(.discontinuity) == true)
    #expect(bench.close() == [])
  }

  @Test("a picture that is not old waits for room, until too many wait behind it", arguments: [false, true])
  func crowded(_ isCrowded: Bool) throws {
    let bench = try bench(["video1", "video2"], outputLimit: 2)
    bench.hold("video1")
    let bytes = isCrowded ? 300_000 : 10
    for number in UInt8(0)..<4 { try show(0, isKey: number == 0, ago: Self.fresh, number, bench) }
    for number in UInt8(0)..<9 {
      try show(1, isKey: number == 0, ago: Self.fresh, number, count: bytes, bench)
    }
    let shown = marks(bench, "video2")
    #expect(shown == (isCrowded ? Array(0..<9) : []))
    bench.release("video1")
    try bench.run()
    let (first, second) = (marks(bench, "video1"), marks(bench, "video2"))
    #expect(first == (isCrowded ? [0, 1] : [0, 1, 2, 3]))
    #expect(second == (isCrowded ? [] : Array(0..<9)))
    #expect(bench.close() == [])
  }
}
