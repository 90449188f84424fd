import MillraceCore
import MillraceDSP
import MillraceNet
import MillraceTesting
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

/// What a test and the node under it share: settings go in, counts come out. On the thread of the test.
final class SoundProbe: @unchecked Sendable {
  @TaskLocal static var current: SoundProbe?

  /// The output of the node; not used by the uplink.
  let shape: OutputShape
  var up = SoundUplinkSettings()
  var down = SoundDownlinkSettings()
  /// Made by the node.
  var exchange: RTCExchange!
  var isMuted = false
  var bitrate: Int?
  /// Sources that are heard at the same time.
  var most = SoundMixer.usualSources
  var discards = false
  /// A time of capture to ask for.
  var capture: Int64?
  /// Whose sound is asked for, as in the head of a picture.
  var sound = PictureDownHead.anySound
  /// Reading the sources allocates.
  var readsSources = false

  var sent = SoundUplinkCounts()
  /// Nothing can be heard in the latest packet that was sent.
  var isSilent: Bool?
  var heard = HeardSound()
  /// The delay when the last packet of `hear` had come: afterwards sound that does not come any more is waited for.
  var lastDelay: Nanoseconds = 0
  var refusals: [SoundRefusal] = []
  var sources: [HeardSource] = []
  var playTime: Nanoseconds?
  var hasSound = false

  init(_ shape: OutputShape = .pcm(rate: 48_000, channels: 1, sample: .f32, frames: 480, burst: 0)) {
    self.shape = shape
  }

  /// The sessions agree on a codec.
  func agree(_ codec: SoundCodec?, takers: Int = 1) {
    exchange.soundCodec.store(codec?.packed ?? 0, ordering: .releasing)
    exchange.takers.store(takers, ordering: .releasing)
  }

  func upBench(_ input: OutputShape) throws -> NodeBench {
    try Self.$current.withValue(self) { try NodeBench(SoundUplinkNode.self, inputs: ["in": input]) }
  }

  func downBench() throws -> NodeBench {
    try Self.$current.withValue(self) { try NodeBench(SoundDownlinkNode.self, outputLimit: 64) }
  }
}

/// A node that sends sound.
struct SoundUplinkNode: ~Copyable, Node {
  static var contract: NodeContract {
    NodeContract(
      "test.soundUp", "sends sound",
      inputs: [
        PortContract(
          "in",
          .pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16, .f32])
            .or(.opus(rates: .oneOf([8_000, 16_000, 48_000]), channels: .range(1...2))),
          text: "sound", holds: 1)
      ])
  }

  let probe: SoundProbe
  var uplink: SoundUplink

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let probe = SoundProbe.current, let shape = setup.inputs[0].shape else {
      throw NodeProblem("there is no probe")
    }
    let use = RTCExchange.Use(sendsSound: true)
    probe.exchange = RTCExchange(use, events: 4_096, waker: setup.waker)
    uplink = try SoundUplink(shape, probe.up)
    self.probe = probe
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    uplink.isMuted = probe.isMuted
    if let bitrate = probe.bitrate { uplink.bitrate = bitrate }
    let worked = uplink.process(&ports, input: 0, exchange: probe.exchange)
    probe.sent = uplink.counts
    probe.isSilent = uplink.isSilent
    if let refusal = uplink.takeRefusal() { probe.refusals.append(refusal) }
    return worked ? .again : .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try process(&ports) == .again ? .again : .ended
  }

  mutating func interrupted(_ ports: inout Ports) { uplink.interrupted(at: ports.generation) }
}

/// A node that plays received sound.
struct SoundDownlinkNode: ~Copyable, Node {
  static var contract: NodeContract {
    NodeContract(
      "test.soundDown", "plays sound",
      outputs: [
        PortContract(
          "out",
          .pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16, .f32])
            .or(.opus(rates: .oneOf([8_000, 16_000, 48_000]), channels: .range(1...2))),
          text: "sound")
      ], drive: .itself,
      resolve: { resolution in
        resolution.pacing = .live
        if let probe = SoundProbe.current { resolution.outputs["out"] = probe.shape }
      })
  }

  let probe: SoundProbe
  var downlink: SoundDownlink

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let probe = SoundProbe.current else { throw NodeProblem("there is no probe") }
    let use = RTCExchange.Use(hearsSound: true)
    probe.exchange = RTCExchange(use, events: 4_096, waker: setup.waker)
    downlink = try SoundDownlink(setup.outputs[0].shape, probe.down, sources: probe.most)
    self.probe = probe
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if probe.discards {
      probe.discards = false
      downlink.discard(probe.exchange)
    }
    let worked = try downlink.process(&ports, output: 0, exchange: probe.exchange)
    probe.heard = downlink.counts
    probe.hasSound = downlink.hasSound
    if let capture = probe.capture {
      probe.playTime = downlink.playTime(ofCapture: capture, sound: probe.sound)
    }
    if probe.readsSources {
      let probe = probe
      probe.sources = []
      downlink.forEachSource { probe.sources.append($0) }
    }
    return worked ? .again : .done
  }
}

/// A packet of sound on a network that a test imitates.
struct SoundPacket {
  var codec: UInt64
  var payload: [UInt8]
  var duration: Int
  var pause: Int
  var level: UInt8
  var isVoice: Bool
  /// As a receiver of RTP counts them.
  var sequence: Int64 = 0
  var timestamp: Int64 = 0
  var source: UInt64 = 1 << 32 | 7
  var capture: Int64 = 0
  var marker = false
  var restarts = false
  var medium: UInt8 = 0
}

extension RTCExchange {
  /// Takes what a node has sent.
  func takeSent() -> [SoundPacket] {
    var packets: [SoundPacket] = []
    while let record = soundUp.peek() {
      if let head = SoundUpHead.load(record.bytes) {
        packets.append(
          SoundPacket(
            codec: head.codec, payload: Array(record.bytes[SoundUpHead.byteCount...]),
            duration: Int(head.duration), pause: Int(head.pause), level: head.level, isVoice: head.isVoice))
      }
      soundUp.drop(record)
    }
    return packets
  }

  /// Puts a packet in the way of a node that hears, as it arrives; false without room.
  @discardableResult
  func deliver(_ packet: SoundPacket, at arrival: Nanoseconds, kind: UInt8 = MediaRecord.sound) -> Bool {
    let count = SoundDownHead.byteCount + packet.payload.count
    guard soundDown.hasRoom(count) else { return false }
    let head = SoundDownHead(
      source: packet.source, sequence: packet.sequence, timestamp: packet.timestamp, arrival: arrival,
      capture: packet.capture, codec: packet.codec, level: packet.level, marker: packet.marker,
      restarts: packet.restarts, medium: packet.medium)
    soundDown.put(kind, count: count) { target in
      head.store(to: target)
      for index in packet.payload.indices { target[SoundDownHead.byteCount + index] = packet.payload[index] }
    }
    waker.wake()
    return true
  }
}

extension [SoundPacket] {
  /// With the numbers and timestamps that a sender of RTP gives them.
  func numbered(sequence: Int64 = 100, timestamp: Int64 = 5_000) -> [SoundPacket] {
    var (sequence, timestamp) = (sequence, timestamp)
    return map { packet in
      var packet = packet
      timestamp += Int64(packet.pause)
      (packet.sequence, packet.timestamp) = (sequence, timestamp)
      packet.marker = packet.pause > 0
      sequence += 1
      timestamp += Int64(packet.duration)
      return packet
    }
  }
}

extension SoundProbe {
  /// What a node sends of some sound, 20 ms at a time.
  func send(
    _ samples: [Float], rate: Int, channels: Int = 1, codec: SoundCodec
  ) throws -> [SoundPacket] {
    let bench = try upBench(.pcm(rate: rate, channels: channels, sample: .f32, frames: rate / 50))
    agree(codec)
    var packets: [SoundPacket] = []
    let piece = rate / 50 * channels
    for start in stride(from: 0, to: samples.count, by: piece) {
      bench.push(Array(samples[start..<Swift.min(start + piece, samples.count)]))
      try bench.run()
      packets += exchange.takeSent()
    }
    try bench.finish()
    packets += exchange.takeSent()
    #expect(bench.close() == [])
    return packets.numbered()
  }

  /// What a node plays of packets that arrive at times in milliseconds, and half a second more.
  func hear(_ arrivals: [(packet: SoundPacket, time: Double)]) throws -> [CapturedPacket] {
    let bench = try downBench()
    for (packet, time) in arrivals.sorted(by: { $0.time < $1.time }) {
      try bench.advance(to: Swift.max(bench.now, Nanoseconds(time * 1e6)))
      exchange.deliver(packet, at: bench.now)
      try bench.run()
    }
    lastDelay = heard.delay
    try bench.advance(by: .milliseconds(500))
    let packets = bench.packets()
    #expect(bench.close() == [])
    return packets
  }

  /// One second of a tone after another as Opus packets, on time.
  static func tone(
    _ seconds: Int, frequency: Double = 440, codec: SoundCodec = .opus
  ) throws -> [SoundPacket] {
    let probe = SoundProbe()
    probe.up.application = .audio
    if !probe.up.codecs.contains(codec) { probe.up.codecs.append(codec) }
    let samples = Fixture.sine(frequency, rate: 48_000, frames: 48_000 * seconds, amplitude: 0.25)
    return try probe.send(samples, rate: 48_000, codec: codec)
  }
}

/// Packets on time, each slightly after it was sent.
func onTime(_ packets: [SoundPacket], first: Double = 5) -> [(packet: SoundPacket, time: Double)] {
  guard let start = packets.first else { return [] }
  let rate = Double(SoundCodec(packed: start.codec)?.clockRate ?? 48_000)
  return packets.map { ($0, Double($0.timestamp - start.timestamp) / rate * 1_000 + first) }
}

/// The level of a tone within sound in dB, and how much of the sound is something else, 0 to 1.
func toneLevel(_ samples: [Float], _ frequency: Double, rate: Int) -> (level: Double, rest: Double) {
  let fit = ToneFit(samples.map(Double.init), frequency: frequency, rate: rate)
  return (Decibels.decibels(power: fit.tone), fit.rest / (fit.tone + fit.rest))
}

/// The longest stretch below -60 dBFS in milliseconds, in steps of 5 ms.
func longestSilence(_ samples: [Float], rate: Int) -> Int {
  let step = rate / 200
  var (longest, run) = (0, 0)
  for start in stride(from: 0, to: samples.count - step, by: step) {
    run = Fixture.rms(Array(samples[start..<start + step])) < 0.001 ? run + 5 : 0
    longest = max(longest, run)
  }
  return longest
}
