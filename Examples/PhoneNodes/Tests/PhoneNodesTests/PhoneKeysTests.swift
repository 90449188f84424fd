import MillraceCore
import MillraceTesting
import PhoneNodes
import Testing

@Suite("phone.keys")
struct PhoneKeysTests {
  static let keys: [[Character]] = [Array("123A"), Array("456B"), Array("789C"), Array("*0#D")]

  func bench(_ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
    try NodeBench(
      PhoneKeys.self, parameters, inputs: ["in": .pcm(rate: 8_000, channels: 1, sample: .s16, frames: 160)])
  }

  /// A key's two tones, 20 ms by default.
  static func tones(_ key: Character, frames: Int = 160, amplitude: Double = 0.25, offTune: Double = 1)
    -> [Int16]
  {
    let row = keys.firstIndex { $0.contains(key) }!
    let pair: [Double] = [
      [697, 770, 852, 941][row], [1_209, 1_336, 1_477, 1_633][keys[row].firstIndex(of: key)!],
    ]
    let waves = pair.map { Fixture.sine16($0 * offTune, rate: 8_000, frames: frames, amplitude: amplitude) }
    return zip(waves[0], waves[1]).map { $0 + $1 }
  }

  @Test(
    "every key is reported once, also 1.5 % off its frequencies", arguments: Array("0123456789*#ABCD"),
    [0.985, 1, 1.015])
  func reports(_ key: Character, offTune: Double) throws {
    let bench = try bench()
    bench.push(Self.tones(key, frames: 800, offTune: offTune))
    try bench.finish()
    let events = bench.events()
    #expect(events.map { $0.string("key") } == [String(key)] && events[0].is(PhoneKeys.pressed))
    #expect(bench.close() == [])
  }

  @Test("the tones are silenced from the third step on, and sound returns two steps after them")
  func silences() throws {
    let alphabet = MarbleAlphabet(
      packet: { letter in
        let samples = letter == "v" ? Fixture.noise16(seed: 1, count: 160) : Self.tones(letter)
        return CapturedPacket(bytes: samples.withUnsafeBytes { Array($0) }, duration: 160)
      },
      letter: { $0.int16.allSatisfy { $0 == 0 } ? "_" : "~" })
    #expect(try bench().marbles("vv555-55vvvv-7v|", alphabet: alphabet) == "~~~~_-____~~-~~|")
    #expect(try bench(["mute": false]).marbles("v5555v|", alphabet: alphabet) == "~~~~~~|")
  }

  @Test("speech and noise press no key")
  func speech() throws {
    let bench = try bench()
    bench.push(Fixture.voice16(rate: 8_000, frames: 80_000) + Fixture.noise16(seed: 2, count: 80_000))
    try bench.finish()
    #expect(bench.events().isEmpty)
  }

  @Test("a quiet key counts once the threshold is below it, and nothing asks for memory")
  func threshold() throws {
    let bench = try bench()
    // Swift's runtime asks for memory when something is used for the first time.
    bench.push(Self.tones("1", frames: 800, amplitude: 0.4) + Self.tones("5", frames: 800, amplitude: 0.01))
    try bench.run()
    #expect(bench.events().map { $0.string("key") } == ["1"])
    try bench.set(PhoneKeys.threshold, -50)
    bench.resetHeapRequests()
    bench.push(Self.tones("5", frames: 800, amplitude: 0.01))
    try bench.run()
    #expect(bench.heapRequests == 0)
    #expect(bench.events().map { $0.string("key") } == ["5"])
  }
}
