import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

private let rate = 24_000
/// Samples per millisecond.
private let ms = rate / 1_000

private func bench(
  _ parameters: [String: ParameterValue] = [:],
  input: OutputShape = .pcm(rate: rate, channels: 1, sample: .s16, frames: 2_400)
) throws -> NodeBench {
  try NodeBench(SpeechPlay.self, parameters, inputs: ["in": input], outputLimit: 100)
}

/// This many milliseconds of a voice-like signal, from an offset.
private func sound(_ length: Int, from: Int = 0) -> [Int16] {
  Fixture.sine16(200, rate: rate, frames: length * ms, amplitude: 0.4, from: from * ms)
}

private func int16(_ packets: some Sequence<CapturedPacket>) -> [Int16] {
  packets.flatMap(\.float).map { Int16(($0 * 32_768).rounded()) }
}

extension NodeBench {
  /// Pushes an utterance of 16-bit samples whose last packet is marked.
  fileprivate func say(_ samples: [Int16], generation: UInt32 = 1) {
    setGeneration(generation)
    let bytes = samples.withUnsafeBytes(Array.init)
    for start in stride(from: 0, to: bytes.count, by: 4_800) {
      let end = min(start + 4_800, bytes.count)
      push(
        bytes: Array(bytes[start..<end]), duration: (end - start) / 2,
        flags: end == bytes.count ? .endOfUtterance : [])
    }
  }

  fileprivate var soundPackets: [CapturedPacket] { packets().filter { $0.duration > 0 } }
}

@Suite("speech.play")
struct SpeechPlayTests {
  @Test("an utterance starts when enough is buffered")
  func starts() throws {
    let bench = try bench()
    bench.push(sound(100))
    try bench.advance(to: .milliseconds(150))
    #expect(bench.packets().isEmpty)
    bench.push(sound(100, from: 100))
    try bench.advance(to: .milliseconds(160))
    #expect(bench.packets().first?.timestamp == .milliseconds(150))
  }

  @Test("an utterance starts `patience` after the first byte at the latest")
  func patience() throws {
    let bench = try bench()
    try bench.advance(to: .milliseconds(40))
    bench.push(sound(100))
    try bench.advance(to: .milliseconds(289))
    #expect(bench.packets().isEmpty)
    try bench.advance(to: .milliseconds(291))
    #expect(bench.packets().first?.timestamp == .milliseconds(290))
    let started = try #require(bench.events().first)
    #expect(started.name == "started" && started.number("waited") == 250 && started.number("ms") == 100)
  }

  @Test("a service that stalls keeps no worker busy, before the first audio or in mid-reply")
  func stall() throws {
    let before = try bench(input: mp3Shape)
    before.push(bytes: [0xFF])
    try before.advance(to: .milliseconds(20_000))
    #expect(before.packets().isEmpty && before.callCount < 10)
    let within = try bench()
    within.push(sound(500))
    try within.advance(to: .milliseconds(20_000))
    #expect(within.packets().count < 80 && within.callCount < 200)
    #expect(within.events().filter { $0.name == "underrun" }.count == 1)
  }

  @Test("an utterance starts at its end, however short it is")
  func short() throws {
    let bench = try bench()
    bench.say(sound(35))
    try bench.advance(to: .milliseconds(100))
    let packets = bench.packets()
    #expect(int16(packets) == sound(35))
    #expect(packets.map { $0.flags.contains(.endOfUtterance) } == [false, false, false, true])
    #expect(packets.map(\.timestamp) == [0, 10, 20, 30].map { .milliseconds($0) })
    #expect(bench.events().map(\.name) == ["started", "finished"])
    #expect(bench.close() == [])
  }

  @Test("audio that arrives in time is unchanged, each packet emitted when it is due")
  func inTime() throws {
    let bench = try bench()
    bench.say(sound(2_000))
    var packets: [CapturedPacket] = []
    for time in stride(from: 0, to: 2_000, by: 50) as StrideTo<Int64> {
      try bench.advance(to: .milliseconds(time))
      packets += bench.packets()
      // Three packets ahead: `lead`, and the one that is due.
      #expect(packets.count == min(200, Int(time) / 10 + 3))
    }
    try bench.advance(to: .milliseconds(2_100))
    packets += bench.packets()
    #expect(int16(packets) == sound(2_000))
    #expect(zip(packets, packets.dropFirst()).allSatisfy { $1.position == $0.position + Int64($0.duration) })
    #expect(packets.indices.allSatisfy { packets[$0].timestamp == .milliseconds(Int64($0) * 10) })
    #expect(bench.close() == [])
  }

  @Test("speech slows down when a service falls behind, and every sample is accounted for")
  func behind() throws {
    let bench = try bench()
    // 100 ms of audio every 115 ms.
    for piece in 0..<60 {
      bench.push(sound(100, from: piece * 100), flags: piece == 59 ? .endOfUtterance : [])
      try bench.advance(by: .milliseconds(115))
    }
    try bench.advance(by: .milliseconds(1_000))
    let finished = try #require(bench.events().last { $0.name == "finished" })
    #expect(finished.number("underruns") == 0)
    let packets = bench.packets()
    let given = packets.reduce(0) { $0 + $1.duration }
    #expect(finished.number("samples") == Double(given))
    #expect(finished.number("stretched") == Double(given - 6_000 * ms))
    #expect(given > 6_500 * ms)
    let samples = int16(packets)
    var bend = 0
    for index in 2..<samples.count {
      let second = Int(samples[index]) - 2 * Int(samples[index - 1]) + Int(samples[index - 2])
      bend = max(bend, abs(second))
    }
    #expect(bend < 60, "a click")
  }

  @Test("on an underrun it fades and waits, for more audio each time")
  func underrun() throws {
    let bench = try bench(["slowest": 1])
    bench.setGeneration(1)
    var waits: [Double] = []
    var samples: [Int16] = []
    for round in 0..<5 {
      bench.push([Int16](repeating: 8_000, count: 1_200 * ms))
      try bench.advance(by: .milliseconds(3_000))
      let events = bench.events().filter { $0.name == "underrun" }
      #expect(events.count == 1)
      waits.append(try #require(events.last?.number("waits")))
      samples += int16(bench.packets())
      #expect(abs(Int(samples.last ?? 9_999)) < 100)
      #expect(samples.count == (round + 1) * 1_200 * ms)
    }
    #expect(waits == [200, 400, 800, 1_000, 1_000])
    for seam in 1..<5 {
      let place = seam * 1_200 * ms
      // 5 ms down and 5 ms up.
      #expect(samples[place - 5 * ms - 1] == 8_000 && samples[place + 5 * ms] == 8_000)
      for index in place - 5 * ms..<place + 5 * ms {
        let step = Int(samples[index]) - Int(samples[index - 1])
        #expect(abs(step) < 80)
      }
    }
  }

  @Test("less audio than needed is played after the longest wait")
  func longWait() throws {
    let bench = try bench(["slowest": 1])
    bench.push(sound(300))
    try bench.advance(to: .milliseconds(500))
    bench.push(sound(50, from: 300))
    try bench.advance(to: .milliseconds(1_200))
    #expect(bench.packets().reduce(0) { $0 + $1.duration } == 300 * ms)
    try bench.advance(to: .milliseconds(1_400))
    #expect(bench.packets().reduce(0) { $0 + $1.duration } == 50 * ms)
  }

  @Test("utterances are queued without a gap, each marked at its end")
  func queue() throws {
    let bench = try bench()
    bench.say(sound(300))
    bench.say(sound(455, from: 300))
    bench.say(sound(100, from: 755))
    try bench.advance(to: .milliseconds(900))
    let packets = bench.packets()
    #expect(int16(packets) == sound(855))
    var ends: [Int64] = []
    for packet in packets where packet.flags.contains(.endOfUtterance) {
      ends.append(packet.position + Int64(packet.duration))
    }
    #expect(ends == [300, 755, 855].map { Int64($0 * ms) })
    #expect(
      zip(packets, packets.dropFirst()).allSatisfy {
        $1.timestamp - $0.timestamp == .samples(Int64($0.duration), rate: rate)
      })
    #expect(
      bench.events().map(\.name) == ["started", "finished", "started", "finished", "started", "finished"])
  }

  @Test("an interruption drops the cancelled reply, queued parts included, and the next reply starts at 0")
  func interruption() throws {
    let bench = try bench()
    bench.say(sound(1_000))
    bench.say(sound(1_000))
    try bench.advance(to: .milliseconds(215))
    bench.interrupt()
    let before = bench.packets().count
    #expect(before == 24)
    try bench.advance(to: .milliseconds(600))
    #expect(bench.packets().isEmpty)
    let cut = try #require(bench.events().first { $0.name == "interrupted" })
    #expect(cut.number("samples") == 240 * 24 && cut.number("reply") == 1)
    bench.say(sound(100), generation: 2)
    try bench.advance(to: .milliseconds(800))
    let next = bench.packets()
    #expect(next.first?.position == 0 && next.first?.generation == 2)
    #expect(next.first?.flags == .discontinuity)
    #expect(int16(next) == sound(100))
    #expect(bench.close() == [])
  }

  @Test("uninterruptible audio, and audio outside replies, is not affected by an interruption")
  func spared() throws {
    for (generation, flags) in [(0, PacketFlags.endOfUtterance), (1, [.uninterruptible, .endOfUtterance])] {
      let bench = try bench()
      bench.setGeneration(UInt32(generation))
      bench.push(sound(100), flags: flags)
      try bench.advance(to: .milliseconds(20))
      bench.interrupt()
      try bench.advance(to: .milliseconds(200))
      #expect(int16(bench.packets()) == sound(100))
    }
  }

  @Test("a held reply continues with the next sample")
  func hold() throws {
    let bench = try bench()
    bench.say(sound(1_000))
    try bench.advance(to: .milliseconds(105))
    try bench.duck()
    let before = bench.packets()
    try bench.advance(to: .milliseconds(900))
    #expect(bench.packets().isEmpty)
    try bench.resume()
    try bench.advance(to: .milliseconds(2_000))
    #expect(int16(before + bench.packets()) == sound(1_000))
  }

  @Test("an utterance without a mark ends with the input")
  func inputEnds() throws {
    let bench = try bench()
    bench.push(sound(1_234))
    try bench.finish()
    let packets = bench.packets()
    #expect(int16(packets) == sound(1_234))
    #expect(packets.last?.flags.contains(.endOfUtterance) == true)
    #expect(bench.close() == [])
  }
}

@Suite("speech.play: reply formats")
struct SpeechFormatTests {
  private let sent = chirp(rate: 24_000, frames: 48_000)

  /// Plays an utterance at 24 kHz.
  private func heard(_ bench: NodeBench) throws -> [Int16] {
    try bench.finish()
    let samples = int16(bench.packets())
    #expect(bench.close() == [])
    return samples
  }

  /// The audio as the bytes of an Ogg Opus file.
  private func ogg() throws -> [UInt8] {
    let folder = TemporaryFolder()
    let path = folder.file("reply.opus")
    let writer = try NodeBench(
      OggWrite.self, ["path": .string(path)], inputs: ["in": opusShape(rate: 24_000)])
    for packet in try packets() { writer.push(packet) }
    try writer.finish()
    #expect(writer.close() == [])
    return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  private func packets() throws -> [CapturedPacket] {
    try encode(sent, rate: 24_000, cut: 480, ["application": "audio", "bitrate": 64_000])
  }

  private func expectLike(_ samples: [Int16], _ what: String) {
    #expect(samples.count == sent.count, "\(what)")
    #expect(lag(sent, samples, reach: 40, from: 4_000, count: 6_000) == 0, "\(what)")
  }

  @Test(
    "MP3, cut anywhere", .enabled(if: MP3Pieces.canMake, "FFmpeg here has no MP3 encoder"),
    arguments: [1, 500])
  func mp3(cut: Int) throws {
    let bench = try bench(input: mp3Shape)
    bench.push(try MP3Pieces.made(sent, rate: 24_000).bytes, cut: cut, ends: true)
    expectLike(try heard(bench), "MP3 cut into \(cut)")
  }

  @Test("an Ogg stream without audio is reported")
  func silentOgg() throws {
    let bench = try bench(input: OutputShape(.ogg, packetDuration: nil, packetBytes: 1 << 20))
    // Both headers, and half of the first page.
    bench.push(bytes: Array(try ogg().prefix(200)), flags: .endOfUtterance)
    let fault = #expect(throws: BenchFault.self) { try bench.finish() }
    #expect(
      fault?.text?.hasPrefix("none of the 200 bytes received is audio in the expected format") == true)
    let events = bench.events()
    #expect(events.first { $0.name == "silent" }?.number("bytes") == 200)
    #expect((events.first { $0.name == "truncated" }?.number("bytes") ?? 0) > 0)
    #expect(bench.soundPackets.isEmpty)
  }

  @Test("Ogg Opus, cut anywhere, one stream per utterance", arguments: [1, 500, 100_000])
  func oggOpus(cut: Int) throws {
    let file = try ogg()
    let bench = try bench(input: OutputShape(.ogg, packetDuration: nil, packetBytes: 1 << 20))
    bench.push(file, cut: cut, ends: true)
    bench.push(file, cut: cut, ends: true)
    let samples = try heard(bench)
    expectLike(Array(samples.prefix(sent.count)), "the first")
    expectLike(Array(samples.dropFirst(sent.count)), "the second")
  }

  @Test("Opus packets, with the pre-skip trimmed")
  func opus() throws {
    let bench = try bench(input: opusShape(rate: 24_000))
    for packet in try packets() { bench.push(packet) }
    expectLike(try heard(bench), "Opus")
  }

  @Test("PCM of another rate, in stereo, in float", arguments: [8_000, 44_100, 48_000])
  func pcm(rate: Int) throws {
    let bench = try bench(input: .pcm(rate: rate, channels: 2, sample: .f32, frames: rate / 50))
    bench.push(chirp(rate: rate, frames: 2 * rate, channels: 2).map { Float($0) / 32_768 })
    let samples = try heard(bench)
    // Both channels are averaged; the right one is half as loud.
    expectLike(samples.map { Int16(Double($0) / 0.75) }, "PCM at \(rate)")
  }

  @Test("a channel of NaN does not affect the other one when both are mixed to mono")
  func rubbishSide() throws {
    let bench = try bench(input: .pcm(rate: 24_000, channels: 2, sample: .f32, frames: 480))
    bench.push(sent.flatMap { [Float($0) / 32_768, .nan] })
    let samples = try heard(bench)
    let half = sent.map { $0 / 2 }
    #expect(samples.count == sent.count)
    #expect(signalToNoise(half[...], samples[...]) > 40)
  }

  @Test(
    "random bytes never cause a fault, whatever their declared format",
    arguments: [Format.mp3, .ogg, .opus(rate: 48_000, channels: 2)])
  func noise(format: Format) throws {
    for seed in 1...5 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let bench = try bench(input: OutputShape(format, packetDuration: nil, packetBytes: 1 << 16))
      for _ in 0..<60 {
        let bytes = (0..<Int.random(in: 0...700, using: &random)).map { _ in
          UInt8.random(in: .min ... .max, using: &random)
        }
        let marks: [PacketFlags] = [[], [], [], .endOfUtterance, .discontinuity, .lost]
        bench.push(
          bytes: bytes, duration: Int.random(in: 0...5_760, using: &random),
          flags: marks.randomElement(using: &random)!)
        try bench.advance(by: .milliseconds(15))
      }
      // The absence of audio is the only valid reason to fail.
      do throws(BenchFault) { try bench.finish() } catch { #expect(error.fault.reason == .badInput) }
      #expect(bench.float().allSatisfy { $0.isFinite })
      #expect(bench.close() == [])
    }
  }

  @Test("an Ogg stream of noise is reported at once, then once a second, and completely at the end")
  func noiseIsGathered() throws {
    var random = SplitMix64(seed: 5)
    let noise = (0..<200_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    let bench = try bench(input: OutputShape(.ogg, packetDuration: nil, packetBytes: 1 << 16))
    try bench.advance(to: .milliseconds(500))
    for start in stride(from: 0, to: noise.count, by: 2_000) {
      let flags: PacketFlags = start + 2_000 == noise.count ? .endOfUtterance : []
      bench.push(bytes: Array(noise[start..<start + 2_000]), flags: flags)
      try bench.advance(by: .milliseconds(40))
    }
    #expect(throws: BenchFault.self) { try bench.finish() }
    let events = bench.events()
    let damage = events.filter { $0.name == "damaged" }
    let told = expectGathered(damage, from: 0.5, seconds: 4)
    #expect(told.count > 500, "each stretch begins where a page might: there are hundreds")
    // A page header has 27 bytes: fewer at the end are not examined.
    #expect((199_973...200_000).contains(told.bytes))
    #expect(damage.first?.number("byte") == 0)
    #expect(events.suffix(2).map(\.name) == ["damaged", "finished"] && bench.close() == [])
  }

  @Test(
    "a damaged page is reported with its position and length, however the stream is cut",
    arguments: [100, 5_000])
  func damagedPage(cut: Int) throws {
    var bytes = try ogg()
    let pages = ParsedPage.all(bytes)
    let place = pages[..<3].reduce(0) { $0 + $1.byteCount }
    bytes[place + 40] ^= 0x10
    let bench = try bench(input: OutputShape(.ogg, packetDuration: nil, packetBytes: 1 << 20))
    bench.push(bytes, cut: cut, ends: true)
    try bench.finish()
    let damage = bench.events().filter { $0.name == "damaged" }
    #expect(damage.first?.number("byte") == Double(place))
    #expect(damage.reduce(0) { $0 + ($1.number("bytes") ?? 0) } == Double(pages[3].byteCount))
    #expect(bench.close() == [])
  }

  @Test("damage is reported before the interruption that ends it")
  func interruptedNoise() throws {
    let bench = try bench(input: OutputShape(.ogg, packetDuration: nil, packetBytes: 1 << 16))
    bench.setGeneration(1)
    for _ in 0..<4 {
      bench.push(bytes: [UInt8](repeating: 0x4F, count: 1_000))
      try bench.advance(by: .milliseconds(40))
    }
    bench.interrupt()
    let events = bench.events()
    #expect(events.map(\.name) == ["damaged", "damaged", "interrupted"])
    #expect((events[1].number("count") ?? 0) > 3_900)
    #expect(bench.close() == [])
  }

  @Test(
    "playing an utterance allocates nothing, slowed down or not",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let bench = try bench(input: opusShape(rate: 24_000))
    let packets = try packets()
    for (index, packet) in packets.enumerated() {
      if index == 20 { bench.resetHeapRequests() }
      bench.push(packet)
      try bench.advance(by: .milliseconds(23))
    }
    #expect(bench.heapRequests == 0)
  }

  @Test("ten minutes of utterances accumulate neither delay nor memory", .timeLimit(.minutes(30)))
  func long() throws {
    let bench = try NodeBench(
      SpeechPlay.self, ["rate": 8_000],
      inputs: ["in": .pcm(rate: 8_000, channels: 1, sample: .s16, frames: 8_000)])
    let second = Fixture.sine16(200, rate: 8_000, frames: 8_000)
    var heap = 0
    for index in 0..<600 {
      if index == 10 { bench.resetHeapRequests() }
      // Now and then the service is late.
      bench.push(second, flags: index % 60 == 59 ? .endOfUtterance : [])
      try bench.advance(by: .milliseconds(index % 60 == 30 ? 1_300 : 995))
      heap = bench.heapRequests
      if index % 100 == 99 {
        let late = bench.now - (bench.packets().last?.timestamp ?? 0)
        #expect(late < .milliseconds(400))
      }
    }
    #expect(heap == 0)
    #expect(bench.close() == [])
  }
}
