import CSpeexDSP
import Testing

/// libspeexdsp as it is called here: float state behind a pointer, 16-bit samples, frames of one length.
@Suite("libspeexdsp")
struct SpeexDSPTests {
  @Test("the preprocessor takes steady noise away and leaves its length alone")
  func denoise() throws {
    let frame = 160
    let state = try #require(speex_preprocess_state_init(Int32(frame), 16_000))
    defer { speex_preprocess_state_destroy(state) }
    var on: Int32 = 1
    #expect(speex_preprocess_ctl(state, SPEEX_PREPROCESS_SET_DENOISE, &on) == 0)
    var seed: UInt32 = 1
    var (before, after) = (0.0, 0.0)
    for round in 0..<300 {
      var samples = (0..<frame).map { _ -> Int16 in
        seed = seed &* 1_664_525 &+ 1_013_904_223
        return Int16(truncatingIfNeeded: Int32(bitPattern: seed) >> 21)
      }
      let loud = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
      speex_preprocess_run(state, &samples)
      if round >= 200 {
        before += loud
        after += samples.reduce(0.0) { $0 + Double($1) * Double($1) }
      }
    }
    #expect(after < before / 10)
  }

  @Test("the echo canceller's filter finds a plain echo")
  func echo() throws {
    let frame = 160
    let state = try #require(speex_echo_state_init(Int32(frame), 1_600))
    defer { speex_echo_state_destroy(state) }
    var rate: Int32 = 16_000
    #expect(speex_echo_ctl(state, SPEEX_ECHO_SET_SAMPLING_RATE, &rate) == 0)
    var seed: UInt32 = 7
    var (before, after) = (0.0, 0.0)
    for round in 0..<300 {
      let far = (0..<frame).map { _ -> Int16 in
        seed = seed &* 1_664_525 &+ 1_013_904_223
        return Int16(truncatingIfNeeded: Int32(bitPattern: seed) >> 18)
      }
      let near = far.map { $0 / 2 }
      var clean = [Int16](repeating: 0, count: frame)
      speex_echo_cancellation(state, near, far, &clean)
      if round >= 200 {
        before += near.reduce(0.0) { $0 + Double($1) * Double($1) }
        after += clean.reduce(0.0) { $0 + Double($1) * Double($1) }
      }
    }
    #expect(after < before / 100)
  }
}
