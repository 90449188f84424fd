import MillraceCodecs
import MillraceCore
import MillraceTesting
import Testing

private let rates = [8000, 12_000, 16_000, 24_000, 48_000]
private let frames = [2.5, 5, 10, 20, 40, 60]

@Suite("Opus round trip") struct RoundTripTests {
  @Test("as many samples come out as went in, at their positions", arguments: rates, frames)
  func exact(rate: Int, frame: Double) throws {
    // A length that is not a multiple of any frame; packets of 10 ms, of a prime number of samples, and longer than any frame.
    let length = rate * 2 / 5 + 13
    let sent = chirp(rate: rate, frames: length)
    for cut in [rate / 100, 173, rate / 10] {
      let packets = try encode(
        sent, rate: rate, cut: cut, ["frame": .number(frame), "bitrate": 64_000, "application": "audio"])
      let samples = Int(frame * Double(rate) / 1000)
      let lookahead = rate / 400 + rate / 250
      #expect(packets.map(\.duration) == Array(repeating: samples, count: packets.count))
      #expect(packets.map(\.position) == packets.indices.map { Int64($0 * samples - lookahead) })
      #expect(packets.last.map { Int($0.position) + $0.duration - $0.trimEnd } == length)
      #expect(packets.dropLast().allSatisfy { $0.trimEnd == 0 })
      let heard = try decode(packets, rate: rate)
      #expect(heard.count == length)
      #expect(lag(sent, heard, reach: 40, from: 400, count: 2000) == 0)
    }
  }

  @Test("every decoder rate yields the same audio", arguments: rates, rates)
  func otherRates(coded: Int, decoded: Int) throws {
    let length = coded * 2 / 5 + 7
    // Not voip: its high-pass filter shifts the phase of low tones, which looks like a delay to a correlation.
    let packets = try encode(
      chirp(rate: coded, frames: length), rate: coded, cut: coded / 50,
      ["bitrate": 48_000, "application": "audio"])
    let heard = try decode(packets, rate: coded, ["rate": .integer(decoded)])
    let expected = (length * decoded + coded - 1) / coded
    #expect(heard.count == expected)
    let shift = lag(
      chirp(rate: decoded, frames: expected), heard, reach: 20, from: decoded / 5, count: decoded / 20)
    #expect(shift == 0)
  }

  @Test("all lengths from one sample to two frames are restored exactly")
  func lengths() throws {
    for length in [1, 2, 103, 104, 105, 215, 216, 217, 319, 320, 321, 423, 424, 425, 535, 536, 537, 640] {
      let packets = try encode(chirp(rate: 16_000, frames: length), rate: 16_000, cut: 160)
      #expect(try decode(packets, rate: 16_000).count == length)
      #expect(try decode(packets, rate: 16_000, ["rate": 48_000]).count == 3 * length)
      #expect(try decode(packets, rate: 16_000, ["rate": 8000]).count == (length + 1) / 2)
    }
  }

  @Test("float and 16-bit, mono and stereo, are all restored aligned")
  func kinds() throws {
    let rate = 48_000
    let sent = chirp(rate: rate, frames: 20_001, channels: 2)
    let packets = try encode(
      sent, rate: rate, channels: 2, cut: 480, ["application": "audio", "bitrate": 128_000])
    let stereo = try decode(packets, rate: rate, channels: 2)
    #expect(stereo.count == 2 * 20_001)
    #expect(signalToNoise(sent[2000...], stereo[2000...]) > 20)
    let mono = try decode(packets, rate: rate, channels: 2, ["channels": 1])
    #expect(mono.count == 20_001)

    let bench = try NodeBench(
      OpusEncode.self, ["application": "audio", "bitrate": 128_000],
      inputs: ["in": .pcm(rate: rate, channels: 2, sample: .f32, frames: 480)])
    bench.push(sent.map { Float($0) / 32768 })
    try bench.finish()
    let decoder = try decoderBench(rate: rate, channels: 2, ["sample": "f32"])
    for packet in bench.packets() { decoder.push(packet) }
    try decoder.finish()
    let heard = decoder.float()
    #expect(heard.count == 2 * 20_001)
    let rounded = heard.map { Int16(max(-1, min(0.9999, $0)) * 32768) }
    #expect(signalToNoise(sent[2000...], rounded[2000...]) > 20)
  }

  @Test("a low-delay stream has a look-ahead of 2.5 ms and is restored exactly")
  func lowDelay() throws {
    let sent = chirp(rate: 48_000, frames: 10_000)
    let packets = try encode(
      sent, rate: 48_000, cut: 480, ["application": "lowdelay", "frame": 2.5, "bitrate": 96_000])
    #expect(packets.first?.position == -120)
    let heard = try decode(packets, rate: 48_000)
    #expect(heard.count == 10_000)
    #expect(lag(sent, heard, reach: 40, from: 400, count: 2000) == 0)
  }

  @Test("timestamps are the capture time of the packet's first decoded sample, through encoder and decoder")
  func timestamps() throws {
    let bench = try NodeBench(
      OpusEncode.self, inputs: ["in": .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 160)])
    bench.push(chirp(rate: 16_000, frames: 3200), timestamp: 7_000_000_000)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.prefix(2).map(\.timestamp) == [6_993_500_000, 7_013_500_000])
    #expect(bench.resolution.latency == 26_500_000)
    let decoder = try decoderBench(rate: 16_000)
    for packet in packets { decoder.push(packet) }
    try decoder.finish()
    let heard = decoder.packets()
    #expect(heard.map(\.position).prefix(3) == [0, 216, 536])
    #expect(heard.map(\.timestamp).prefix(3) == [7_000_000_000, 7_013_500_000, 7_033_500_000])
  }
}
