import Testing

@testable import MillraceDSP

/// Feeds all of `input` in pieces and, by default, flushes; output room is what the prediction
/// says, exactly.
func resample(
  _ input: [Float], from inputRate: Int, to outputRate: Int, channels: Int = 1,
  quality: Resampler.Quality = .voice, alignment: Resampler.Alignment = .delayed, piece: Int = 480,
  flush: Bool = true
) throws -> [Float] {
  var resampler = try Resampler(
    from: inputRate, to: outputRate, channels: channels, quality: quality, alignment: alignment)
  var output: [Float] = []
  for range in pieces(of: input.count / channels, length: piece) {
    let frames = range.lowerBound * channels..<range.upperBound * channels
    var room = [Float](repeating: 0, count: resampler.outputCount(forInput: range.count) * channels)
    var span = room.mutableSpan
    let progress = resampler.process(input.span.extracting(frames), into: &span)
    #expect(progress == .init(consumed: range.count, produced: room.count / channels))
    output += room
  }
  guard flush else { return output }
  var tail = [Float](repeating: 0, count: 13 * channels)
  while true {
    var span = tail.mutableSpan
    let count = resampler.flush(into: &span)
    if count == 0 { return output }
    output += tail[..<(count * channels)]
  }
}

@Suite("Resampler")
struct ResamplerTests {
  static let ratios = [
    (48000, 16000), (16000, 48000), (44100, 48000), (48000, 44100), (44100, 16000), (22050, 16000),
    (8000, 192_000),
    (192_000, 8000), (11025, 48000), (24000, 48000), (16000, 16000), (96000, 11025),
  ]

  @Test("the output does not depend on how the input is chunked", arguments: ratios, [1, 7, 160, 0])
  func chunking(ratio: (Int, Int), piece: Int) throws {
    let input = noise(3001)
    for alignment in [Resampler.Alignment.delayed, .compensated] {
      let whole = try resample(input, from: ratio.0, to: ratio.1, alignment: alignment, piece: input.count)
      let cut = try resample(input, from: ratio.0, to: ratio.1, alignment: alignment, piece: piece)
      #expect(whole == cut)
    }
  }

  @Test("a compensated stream of n frames gives exactly ceil(n L / M) frames", arguments: ratios)
  func compensatedCount(ratio: (Int, Int)) throws {
    for count in [0, 1, 2, 3, 159, 160, 161, 1000] {
      let output = try resample(noise(count), from: ratio.0, to: ratio.1, alignment: .compensated, piece: 0)
      #expect(output.count == (count * ratio.1 + ratio.0 - 1) / ratio.0, "count \(count)")
    }
  }

  @Test("a delayed stream gives ceil(n L / M) frames at once and its tail when flushed", arguments: ratios)
  func delayedCount(ratio: (Int, Int)) throws {
    let latency = try Resampler(from: ratio.0, to: ratio.1).latencyFrames
    for count in [0, 1, 160, 1000] {
      let input = noise(count)
      let live = try resample(input, from: ratio.0, to: ratio.1, flush: false)
      let all = try resample(input, from: ratio.0, to: ratio.1)
      #expect(live.count == (count * ratio.1 + ratio.0 - 1) / ratio.0)
      #expect(all.count == ((count + latency) * ratio.1 + ratio.0 - 1) / ratio.0)
    }
  }

  @Test("10 ms in is 10 ms out from the first chunk")
  func tenMilliseconds() throws {
    var resampler = try Resampler(from: 48000, to: 16000)
    let (input, room) = (noise(480), [Float](repeating: 0, count: 400))
    var output = room
    for _ in 0..<5 {
      var span = output.mutableSpan
      #expect(resampler.process(input.span, into: &span) == .init(consumed: 480, produced: 160))
    }
  }

  @Test("the latency is 2.5 ms for 48 to 16 kHz voice, and is where an impulse lands")
  func impulse() throws {
    for (from, to, frames) in [
      (48000, 16000, 120), (16000, 48000, 40), (44100, 48000, 40), (32000, 8000, 160),
    ] {
      let resampler = try Resampler(from: from, to: to)
      #expect(resampler.latencyFrames == frames)
      #expect(resampler.latencyNanoseconds == Int64((Double(frames) * 1e9 / Double(from)).rounded()))
      // A position on both the input and the output grid, so that the peak is an output sample.
      let place = from / 100
      var input = [Float](repeating: 0, count: 2 * place)
      input[place] = 0.9
      let compensated = try resample(input, from: from, to: to, alignment: .compensated)
      #expect(compensated.indices.max { compensated[$0] < compensated[$1] } == to / 100)
      let delayed = try resample(input, from: from, to: to)
      let peak = try #require(delayed.indices.max { delayed[$0] < delayed[$1] })
      #expect(abs(Double(peak) / Double(to) - (0.01 + Double(frames) / Double(from))) <= 0.5 / Double(to))
      // Linear phase: the response is the same on both sides of its middle.
      let middle = to / 100
      for k in 1..<20 { #expect(abs(compensated[middle - k] - compensated[middle + k]) < 1e-6) }
    }
  }

  @Test("a tone keeps its level and gains no other component", arguments: ratios, Resampler.Quality.allCases)
  func toneQuality(ratio: (Int, Int), quality: Resampler.Quality) throws {
    let (from, to) = ratio
    let frequency = 0.37 * Double(min(from, to)) / 2
    let input = tone(frequency, rate: from, count: from / 2)
    let output = try resample(input, from: from, to: to, quality: quality, alignment: .compensated)
    let (level, rest) = fit(
      output[(output.count / 4)..<(output.count * 3 / 4)], frequency: frequency, rate: to)
    #expect(abs(level - -9.03) < 0.01)
    let clean = [Resampler.Quality.low: -70.0, .voice: -115, .high: -125][quality]!
    #expect(from == to || rest - level < clean)
  }

  @Test(
    "tones above the new Nyquist frequency vanish",
    arguments: [(Resampler.Quality.low, -70.0), (.voice, -112), (.high, -120)])
  func alias(quality: Resampler.Quality, limit: Double) throws {
    for (from, to) in [(48000, 16000), (48000, 8000), (44100, 16000), (48000, 44100)] {
      let nyquist = Double(to) / 2
      for share in stride(from: 1.01, through: min(2.9, 0.98 * Double(from) / Double(to)), by: 0.07) {
        let input = tone(nyquist * share, rate: from, count: from / 4)
        let output = try resample(input, from: from, to: to, quality: quality)
        let level = rms(output[(output.count / 3)..<(output.count * 2 / 3)]) + 9.03
        #expect(level < limit, "\(from) to \(to), \(share) of Nyquist")
      }
    }
  }

  @Test("upsampling adds no image above -118 dB at voice quality")
  func image() throws {
    for (from, to) in [(16000, 48000), (24000, 48000), (44100, 48000)] {
      for share in stride(from: 0.05, through: 0.85, by: 0.1) {
        let frequency = share * Double(from) / 2
        let output = try resample(tone(frequency, rate: from, count: from / 4), from: from, to: to)
        let (level, rest) = fit(
          output[(output.count / 3)..<(output.count * 2 / 3)], frequency: frequency, rate: to)
        #expect(rest - level < -118, "\(from) to \(to), \(share) of Nyquist")
      }
    }
  }

  @Test("each channel is resampled independently", arguments: [2, 3, 8])
  func channels(channels: Int) throws {
    let each = (0..<channels).map { noise(1500, seed: UInt64($0 + 1)) }
    let input = (0..<1500 * channels).map { each[$0 % channels][$0 / channels] }
    let output = try resample(input, from: 44100, to: 48000, channels: channels, piece: 0)
    for channel in 0..<channels {
      let alone = try resample(each[channel], from: 44100, to: 48000)
      #expect(alone == stride(from: channel, to: output.count, by: channels).map { output[$0] })
    }
  }

  @Test("16-bit samples give the rounded float result, however they are chunked", arguments: [1, 7, 160, 0])
  func int16(piece: Int) throws {
    let input = noise16(2400)
    let floats = try resample(input.map { Float($0) / 32768 }, from: 16000, to: 48000, flush: false)
    var resampler = try Resampler(from: 16000, to: 48000)
    var output: [Int16] = []
    for range in pieces(of: input.count, length: piece) {
      var room = [Int16](repeating: 0, count: resampler.outputCount(forInput: range.count))
      var span = room.mutableSpan
      _ = resampler.process(input.span.extracting(range), into: &span)
      output += room
    }
    var expected = [Int16](repeating: 0, count: floats.count)
    var span = expected.mutableSpan
    SampleConversion.convert(floats.span, into: &span)
    #expect(output == expected)
  }

  @Test("equal rates pass every sample unchanged and undelayed")
  func identity() throws {
    let input = noise(1000)
    #expect(try resample(input, from: 16000, to: 16000) == input)
    #expect(try Resampler(from: 16000, to: 16000).latencyFrames == 0)
  }

  @Test("with too little room the rest follows later, and nothing is lost", arguments: ratios)
  func littleRoom(ratio: (Int, Int)) throws {
    let input = noise(700)
    let whole = try resample(input, from: ratio.0, to: ratio.1, flush: false)
    var resampler = try Resampler(from: ratio.0, to: ratio.1)
    var output: [Float] = []
    var (taken, turn) = (0, 0)
    while taken < input.count || resampler.outputCount(forInput: 0) > 0 {
      turn += 1
      var room = [Float](repeating: 0, count: turn % 31)
      let fits = resampler.inputCount(forOutput: room.count)
      let predicted = resampler.outputCount(forInput: input.count - taken)
      var span = room.mutableSpan
      let progress = resampler.process(input.span.extracting(taken...), into: &span)
      #expect(progress.produced == min(predicted, room.count))
      #expect(progress.consumed >= min(fits, input.count - taken))
      taken += progress.consumed
      output += room[..<progress.produced]
    }
    #expect(output == whole)
  }

  @Test("after a reset a new stream begins")
  func reset() throws {
    var resampler = try Resampler(from: 44100, to: 16000, alignment: .compensated)
    let input = noise(2000)
    func pass(_ resampler: inout Resampler) -> [Float] {
      var room = [Float](repeating: 0, count: resampler.outputCount(forInput: input.count))
      var span = room.mutableSpan
      _ = resampler.process(input.span, into: &span)
      return room
    }
    let first = pass(&resampler)
    #expect(pass(&resampler) != first)
    resampler.reset()
    #expect(pass(&resampler) == first)
  }

  @Test(
    "a NaN and an infinity count as zero", arguments: [Float.nan, .infinity, -.infinity])
  func notANumber(value: Float) throws {
    var input = noise(1000)
    input[300] = 0
    let clean = try resample(input, from: 48000, to: 16000)
    input[300] = value
    #expect(try resample(input, from: 48000, to: 16000) == clean)
  }

  @Test("one table serves every resampler of a ratio")
  func sharedTable() throws {
    let one = try Resampler(from: 48000, to: 16000)
    let two = try Resampler(from: 24000, to: 8000)
    let other = try Resampler(from: 48000, to: 16000, quality: .high)
    let shared = one.table === two.table
    let distinct = one.table !== other.table
    #expect(shared)
    #expect(distinct)
  }

  @Test("a refused request states the value, the limit and the cure")
  func problems() {
    func text(_ make: () throws(ResamplerProblem) -> Void) -> String {
      do {
        try make()
        return "no problem"
      } catch { return error.description }
    }
    #expect(
      text { () throws(ResamplerProblem) in _ = try Resampler(from: 4000, to: 16000) }
        == "a sample rate of 4000 Hz cannot be resampled; use 8000 Hz to 192000 Hz")
    #expect(
      text { () throws(ResamplerProblem) in _ = try Resampler(from: 8000, to: 16000, channels: 0) }
        == "0 channels cannot be resampled; use 1 to 32")
    #expect(
      text { () throws(ResamplerProblem) in _ = try Resampler(from: 44101, to: 48000) }
        == "resampling 44101 Hz to 48000 Hz needs 3840000 coefficients, more than 1048576; "
        + "use rates with a larger common divisor, such as 44100 Hz or 48000 Hz")
  }

  @Test("resampling allocates nothing")
  func heap() throws {
    var resampler = try Resampler(from: 44100, to: 48000, channels: 2)
    let (input, input16) = (noise(882), noise16(882))
    var output = [Float](repeating: 0, count: 1000)
    var output16 = [Int16](repeating: 0, count: 1000)
    let requests = heapRequests {
      for _ in 0..<200 {
        var span = output.mutableSpan
        _ = resampler.process(input.span, into: &span)
        var span16 = output16.mutableSpan
        _ = resampler.process(input16.span, into: &span16)
      }
      var span = output.mutableSpan
      _ = resampler.flush(into: &span)
      resampler.reset()
    }
    #expect(requests == 0)
  }
}
