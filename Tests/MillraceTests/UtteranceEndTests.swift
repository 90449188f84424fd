import Foundation
import Millrace
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

/// `endOfUtterance` passes through every audio node: after the last sample of its utterance, once, and without delay.
@Suite("The end of an utterance in every audio node")
struct UtteranceEndTests {
  enum Carrier: Sendable { case pcm, opus, mp3 }

  struct Kind: CustomTestStringConvertible, Sendable {
    let type: String
    var parameters: [String: ParameterValue] = [:]
    /// The first input gets the utterances, the others silence at the same time.
    var inputs = ["in"]
    var carrier = Carrier.pcm
    /// True when the node emits sound all the time, so that the end is followed by more sound.
    var isContinuous = false
    /// True when the node may emit less or more sound than it received.
    var isInexact = false

    var testDescription: String {
      "\(type), \(inputs.count) \(carrier)"
        + parameters.sorted { $0.key < $1.key }.map { ", \($0.key) \($0.value)" }.joined()
    }
  }

  static let kinds = [
    Kind(type: "audio.convert", parameters: ["channels": 2, "sample": "f32"]),
    Kind(type: "audio.convert"),
    Kind(type: "audio.convert", parameters: ["frame": 8]),
    Kind(type: "audio.convert", parameters: ["frame": 30]),
    Kind(type: "audio.convert", parameters: ["samples": 1_710]),
    Kind(type: "audio.convert", parameters: ["frame": 30, "pad": true], isInexact: true),
    Kind(type: "audio.gain", parameters: ["gain": -6]),
    Kind(type: "audio.gain"),
    Kind(type: "audio.level"),
    Kind(type: "audio.resample", parameters: ["rate": 48_000]),
    Kind(type: "audio.resample", parameters: ["rate": 8_000]),
    Kind(type: "audio.resample", parameters: ["rate": 24_000, "align": "file"]),
    Kind(type: "audio.resample", parameters: ["rate": 16_000]),
    Kind(type: "audio.mix", inputs: ["in1"]),
    Kind(type: "audio.fileMix"),
    Kind(type: "audio.autoGain"),
    Kind(type: "audio.denoise", parameters: ["engine": "wiener"]),
    Kind(type: "audio.denoise", parameters: ["engine": "speex"]),
    Kind(type: "audio.echoCancel", inputs: ["near", "reference"]),
    Kind(type: "audio.echoCancel", parameters: ["engine": "speex"], inputs: ["near", "reference"]),
    Kind(type: "audio.vad", parameters: ["engine": "energy"]),
    Kind(type: "audio.vad", parameters: ["engine": "energy", "gate": true], isInexact: true),
    Kind(type: "audio.jitter", isContinuous: true),
    Kind(type: "audio.jitter", carrier: .opus, isContinuous: true),
    Kind(type: "opus.encode"),
    Kind(type: "opus.encode", parameters: ["frame": 60]),
    Kind(type: "opus.encode", parameters: ["frame": 2.5, "dtx": true]),
    Kind(type: "opus.decode", carrier: .opus),
    Kind(type: "opus.decode", parameters: ["rate": 48_000, "fec": false], carrier: .opus),
    Kind(type: "speech.play", parameters: ["rate": 16_000]),
    Kind(type: "speech.play", parameters: ["rate": 24_000]),
    Kind(type: "speech.play", parameters: ["rate": 16_000], carrier: .opus),
    Kind(type: "mp3.decode", parameters: ["rate": 16_000], carrier: .mp3),
    Kind(type: "speech.play", parameters: ["rate": 16_000], carrier: .mp3),
  ]

  /// Nodes that have no audio output. The end of an utterance does not change what they write or play.
  static let sinks: [(type: String, input: String, file: String?)] = [
    ("audio.write", "in", "written.wav"), ("audio.record", "in1", "record.wav"),
    ("ogg.write", "in", "written.ogg"),
  ]
  static let players = ["audio.play"]

  /// How the end of an utterance is marked.
  enum Ending: CaseIterable, Sendable {
    /// By a separate packet.
    case bare
    /// On the last packet with sound.
    case marked
    /// On a lost packet.
    case lost
  }

  @Test("arrives after the last sample, once, even when nothing follows", arguments: kinds, Ending.allCases)
  func arrives(kind: Kind, ending: Ending) throws {
    guard kind.carrier != .mp3 || MediaFile.canEncode("libmp3lame") else { return }
    let bench = try Feeder(kind)
    try bench.say(ending)
    let first = bench.taken()
    let ends = first.indices.filter { first[$0].flags.contains(.endOfUtterance) }
    #expect(ends.count == 1)
    let end = try #require(ends.first)
    if !kind.isContinuous { #expect(end == first.count - 1) }
    if !kind.isInexact { try expect(first[...end].reduce(0) { $0 + $1.duration }, kind, ending) }
    try bench.say(ending)
    try bench.finish()
    let second = bench.taken()
    #expect(second.count { $0.flags.contains(.endOfUtterance) } == 1)
    if !kind.isContinuous { #expect(second.last?.flags.contains(.endOfUtterance) == true) }
    if ending != .lost {
      #expect(second.allSatisfy { !$0.flags.contains(.discontinuity) })
      if !kind.isInexact {
        #expect(second.first?.position == first.last.map { $0.position + Int64($0.duration) })
      }
    }
    #expect(bench.close() == [])
  }

  /// Expects as much sound as the node emits for the utterance alone at the end of its input.
  private func expect(_ sound: Int, _ kind: Kind, _ ending: Ending) throws {
    let alone = try Feeder(kind)
    try alone.say(nil, isLost: ending == .lost)
    try alone.finish()
    let whole = alone.taken().reduce(0) { $0 + $1.duration }
    #expect(alone.close() == [])
    if kind.isContinuous {
      // Packets of 10 ms, and samples that a splice added or removed.
      #expect((Feeder.frames - 160...Feeder.frames + 480).contains(sound), "\(sound)")
    } else {
      #expect(abs(sound - whole) <= 1, "\(sound) of \(whole)")
    }
  }

  @Test("arrives even without any sound before it", arguments: kinds)
  func empty(kind: Kind) throws {
    let bench = try Feeder(kind)
    try bench.end()
    let packets = bench.taken()
    #expect(packets.count == 1 && packets.first?.flags.contains(.endOfUtterance) == true)
    #expect(packets.first?.duration == 0)
    try bench.finish()
    #expect(bench.taken().isEmpty)
    #expect(bench.close() == [])
  }

  @Test("does not change what is written", arguments: sinks.map(\.type))
  func kept(type: String) throws {
    let sink = try #require(Self.sinks.first { $0.type == type })
    func file(_ ending: Ending?) throws -> Data {
      let folder = TemporaryFolder()
      let path = folder.file(sink.file ?? "")
      let carrier = type == "ogg.write" ? Carrier.opus : .pcm
      let bench = try Feeder(
        Kind(type: type, parameters: ["path": .string(path)], inputs: [sink.input], carrier: carrier))
      for _ in 0..<2 { try bench.say(ending) }
      try bench.finish()
      #expect(bench.close() == [])
      return try Data(contentsOf: URL(fileURLWithPath: path))
    }
    let plain = try file(nil)
    #expect(plain.count > 500)
    #expect(try file(.bare) == plain && file(.marked) == plain)
  }

  @Test("is tested with every audio node")
  func complete() {
    let families = ["audio.", "opus.", "mp3.", "speech.", "ogg."]
    let types = Catalogue.standard.entries.values.map(\.contract).filter { contract in
      !contract.inputs.isEmpty && families.contains { contract.type.hasPrefix($0) }
    }
    let known = Set(Self.kinds.map(\.type) + Self.sinks.map(\.type) + Self.players)
    #expect(Set(types.map(\.type)) == known)
  }
}

/// Feeds utterances to a node, packet by packet in time.
private final class Feeder {
  /// Samples of an utterance: five packets of 20 ms and a shorter one.
  static let frames = 1_710
  static let rate = 16_000
  private static let sound = Fixture.sine16(440, rate: rate, frames: frames, amplitude: 0.4, from: 0)
  private static let shape = OutputShape.pcm(rate: rate, channels: 1, sample: .s16, frames: 320)

  private let kind: UtteranceEndTests.Kind
  private let bench: NodeBench
  private var position: Int64 = 0
  private var spoken = 0

  init(_ kind: UtteranceEndTests.Kind) throws {
    self.kind = kind
    let entry = try #require(Catalogue.standard.entries[kind.type])
    let shape =
      switch kind.carrier {
      case .pcm: Self.shape
      case .opus: try Self.encoder().shape()
      case .mp3: OutputShape(.mp3, packetDuration: nil, packetBytes: 1 << 16)
      }
    bench = try NodeBench(
      entry, kind.parameters, inputs: Dictionary(uniqueKeysWithValues: kind.inputs.map { ($0, shape) }),
      outputLimit: 1_000)
  }

  private static func encoder() throws -> NodeBench {
    try NodeBench(
      try #require(Catalogue.standard.entries["opus.encode"]), inputs: ["in": shape], outputLimit: 1_000)
  }

  /// Feeds an utterance; nil for one without a marked end.
  func say(_ ending: UtteranceEndTests.Ending?, isLost: Bool = false) throws {
    var packets = try kind.carrier == .pcm ? pcm() : kind.carrier == .opus ? opus() : mp3()
    if ending == .lost || isLost {
      packets[packets.count - 1].bytes = []
      packets[packets.count - 1].flags = .lost
    }
    if ending == .marked || ending == .lost {
      packets[packets.count - 1].flags.insert(.endOfUtterance)
    }
    for packet in packets { try push(packet) }
    if ending == .bare { try end() }
    if bench.contract.outputs.isEmpty { return }
    try bench.advance(by: .milliseconds(600))
    spoken += 1
    // Continuous output advances with time.
    if kind.isContinuous { position = bench.now * Int64(Self.rate) / 1_000_000_000 }
  }

  /// Feeds the end of an utterance as a separate packet.
  func end() throws {
    bench.push(
      CapturedPacket(
        bytes: [], timestamp: .samples(position, rate: Self.rate), position: position,
        flags: .endOfUtterance),
      to: kind.inputs[0])
    try bench.advance(by: .milliseconds(100))
  }

  private func push(_ packet: CapturedPacket) throws {
    try bench.advance(to: max(bench.now, packet.timestamp))
    bench.push(packet, to: kind.inputs[0])
    silence(packet.duration)
    try bench.run()
    position = packet.position + Int64(packet.duration)
  }

  /// Feeds silence to the other inputs.
  private func silence(_ frames: Int) {
    for input in kind.inputs.dropFirst() { bench.push([Int16](repeating: 0, count: frames), to: input) }
  }

  func finish() throws {
    try bench.finish()
    #expect(bench.fault == nil && bench.hasEnded)
  }

  func close() -> [String] { bench.close() }

  /// The packets emitted since the last call.
  func taken() -> [CapturedPacket] { bench.packets() }

  private func pcm() -> [CapturedPacket] {
    stride(from: 0, to: Self.frames, by: 320).map { first in
      let part = Self.sound[first..<min(first + 320, Self.frames)]
      let place = position + Int64(first)
      return CapturedPacket(
        bytes: part.withUnsafeBytes(Array.init), timestamp: .samples(place, rate: Self.rate), position: place,
        duration: part.count)
    }
  }

  /// An utterance without a marked end, encoded by `opus.encode`, directly after the previous one.
  private func opus() throws -> [CapturedPacket] {
    let encoder = try Self.encoder()
    encoder.push(Self.sound)
    try encoder.finish()
    var packets = encoder.packets()
    let start = position - (spoken == 0 || kind.isContinuous ? 0 : packets[0].position)
    for index in packets.indices {
      // Keeps the padding, so that utterances are contiguous.
      packets[index].trimEnd = 0
      packets[index].position += start
      packets[index].timestamp += .samples(start, rate: Self.rate)
    }
    #expect(encoder.close() == [])
    return packets
  }

  private func mp3() throws -> [CapturedPacket] {
    let folder = TemporaryFolder()
    let path = folder.file("said.mp3")
    MediaFile.write(
      Self.sound, codec: "libmp3lame", rate: Self.rate, channels: 1, bitRate: 64_000, to: path)
    let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    return stride(from: 0, to: bytes.count, by: 300).map {
      CapturedPacket(bytes: Array(bytes[$0..<min($0 + 300, bytes.count)]), timestamp: bench.now)
    }
  }
}
