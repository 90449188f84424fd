import MillraceDSP

/// The resampler alone: cost, latency, alias and image rejection, and whether the chunk size changes the output.
enum ResampleSuite {
  /// Rates from and to, and the goal for milliseconds of processor time per second of audio at `voice`.
  private static let pairs: [(from: Int, to: Int, goal: String)] = [
    (48_000, 16_000, "<= 0.45"), (16_000, 48_000, ""), (44_100, 48_000, "<= 0.7"),
  ]

  static func run() throws -> [Figure] {
    var figures: [Figure] = []
    var dice = Dice()
    for pair in pairs {
      for quality in [Resampler.Quality.voice, .low, .high] {
        let name = "\(pair.from) -> \(pair.to) \(quality.rawValue)"
        let goal = quality == .voice ? pair.goal : ""
        figures.append(
          Figure(
            "resample", "\(name): processor", unit: "ms/s", goal: goal,
            samples: try cost(from: pair.from, to: pair.to, quality)))
        let probe = try ToneProbe(from: pair.from, to: pair.to, quality: quality)
        figures.append(
          Figure(
            "resample", "\(name): latency", unit: "ms", goal: quality == .voice ? "<= 2.5" : "",
            samples: [probe.latency * 1e3]))
        figures.append(
          Figure("resample", "\(name): worst SNR in band", unit: "dB", samples: [probe.worstSNR]))
        if let alias = probe.worstAlias {
          let goal = quality == .voice ? "<= -109" : ""
          figures.append(Figure("resample", "\(name): alias", unit: "dB", goal: goal, samples: [alias]))
        }
        if let image = probe.worstImage {
          let goal = quality == .voice && pair.from == 16_000 ? "<= -115" : ""
          figures.append(Figure("resample", "\(name): image", unit: "dB", goal: goal, samples: [image]))
        }
      }
      figures.append(
        Figure(
          "resample", "\(pair.from) -> \(pair.to) voice: same bits, any chunks", unit: "yes", goal: "1",
          samples: try (0..<20).map { _ in try isSameInChunks(from: pair.from, to: pair.to, &dice) ? 1 : 0 }))
    }
    return figures
  }

  /// Milliseconds of processor time per second of audio, in chunks of 10 ms as in a live graph.
  private static func cost(from: Int, to: Int, _ quality: Resampler.Quality) throws -> [Double] {
    let length = 10
    let input = Sound.noise(count: from * length)
    var resampler = try Resampler(from: from, to: to, quality: quality)
    let chunk = from / 100
    var output = [Float](repeating: 0, count: resampler.maximumOutputCount(forInput: chunk))
    var samples: [Double] = []
    for round in 0..<10 {
      let start = processorSeconds()
      for offset in stride(from: 0, to: input.count, by: chunk) {
        var room = output.mutableSpan
        use(resampler.process(input.span.extracting(offset..<offset + chunk), into: &room).produced)
      }
      if round > 0 { samples.append((processorSeconds() - start) * 1e3 / Double(length)) }
    }
    return samples
  }

  /// Whether a stream in random chunks gives the same bits as the whole stream.
  private static func isSameInChunks(from: Int, to: Int, _ dice: inout Dice) throws -> Bool {
    let input = Sound.noise(count: from)
    let whole = try resampled(input, from: from, to: to) { $0 }
    let cut = try resampled(input, from: from, to: to) { rest in
      Int.random(in: 1...min(rest, 3_000), using: &dice)
    }
    return whole.elementsEqual(cut) { $0.bitPattern == $1.bitPattern }
  }
}

/// Resamples a whole signal in chunks whose length `cut` chooses, and flushes the filter.
func resampled(
  _ input: [Float], from: Int, to: Int, quality: Resampler.Quality = .voice, cut: (_ rest: Int) -> Int
) throws -> [Float] {
  var resampler = try Resampler(from: from, to: to, quality: quality)
  var output: [Float] = []
  var room = [Float](repeating: 0, count: resampler.maximumOutputCount(forInput: input.count))
  var offset = 0
  while offset < input.count {
    let end = offset + cut(input.count - offset)
    var span = room.mutableSpan
    let progress = resampler.process(input.span.extracting(offset..<end), into: &span)
    output.append(contentsOf: room[..<progress.produced])
    offset += progress.consumed
  }
  var count = 0
  repeat {
    var span = room.mutableSpan
    count = resampler.flush(into: &span)
    output.append(contentsOf: room[..<count])
  } while count > 0
  return output
}
