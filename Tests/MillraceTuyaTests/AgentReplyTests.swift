import Testing

@testable import MillraceTuya

@Suite("the audio of a reply") struct AgentReplyTests {
  /// A header of MPEG 2, layer III, 32 kbit/s, 16 kHz.
  private static let header: [UInt8] = [0xFF, 0xF3, 0x48, 0xC0]

  @Test("MP3 that is none is recognised as soon as a frame would have to be there")
  func noMP3() {
    let check = TuyaReplyCheck("mp3", rate: 16_000)
    check.begin(TuyaAudioParameters(.mp3))
    #expect(check.problem(with: [UInt8](repeating: 0, count: 100)) == nil)
    #expect(check.problem(with: [UInt8](repeating: 0, count: 2_000)) == "the reply is no MP3")
    // The next stream is judged by itself.
    check.begin(TuyaAudioParameters(.mp3))
    #expect(check.problem(with: Self.header + [UInt8](repeating: 0, count: 2_000)) == nil)
    #expect(check.problem(with: [UInt8](repeating: 0, count: 2_000)) == nil)
    check.begin(TuyaAudioParameters(.mp3))
    #expect(check.problem(with: Array("ID3".utf8) + [UInt8](repeating: 0, count: 2_000)) == nil)
  }

  @Test("a stream in another format than the output's names the parameter")
  func mismatches() {
    let check = TuyaReplyCheck("pcm", rate: 16_000)
    func problem(_ parameters: TuyaAudioParameters) -> String? {
      check.begin(parameters)
      return check.problem(with: [0, 0])
    }
    #expect(problem(TuyaAudioParameters(.pcm)) == nil)
    #expect(problem(TuyaAudioParameters(.mp3)) == "the reply is mp3, and \"reply\" is pcm")
    #expect(
      problem(TuyaAudioParameters(.pcm, rate: 24_000)) == "the reply has 24000 Hz, and \"rate\" is 16000")
    #expect(
      problem(TuyaAudioParameters(.pcm, channels: 2))
        == "the reply has 2 channels of 16 bits, and not one of 16")
  }

  @Test("a packet of Opus is cut into its frames, by their size or their bit rate")
  func frames() {
    let check = TuyaReplyCheck("opus", rate: 16_000)
    let bytes = (0..<120).map { UInt8($0) }
    check.begin(TuyaAudioParameters(.opus, bitRate: 16_000, frameMilliseconds: 20, frameBytes: 40))
    #expect(check.frames(in: bytes) == [Array(bytes[..<40]), Array(bytes[40..<80]), Array(bytes[80...])])
    check.begin(TuyaAudioParameters(.opus, bitRate: 12_000, frameMilliseconds: 40))
    #expect(check.frames(in: bytes).map(\.count) == [60, 60])
    // What does not fit is one packet.
    check.begin(TuyaAudioParameters(.opus, frameBytes: 50))
    #expect(check.frames(in: bytes) == [bytes])
    check.begin(TuyaAudioParameters(.opus))
    #expect(check.frames(in: bytes) == [bytes])
  }
}
