internal import Glibc
internal import MillraceCore
internal import MillraceGraph

/// Describes the difference between two files: where it begins, and how large it is.
///
/// Files that the standard nodes can read as audio are compared sample by sample, text line by line, and anything else byte by byte.
struct FileDifference {
  let golden: String
  let now: String
  let tolerance: GoldenTolerance

  /// The difference; nil when it is within the tolerance.
  var text: String? {
    if let before = SoundSamples(path: golden) {
      guard let after = SoundSamples(path: now) else {
        return "not an audio file, golden \(before.form)"
      }
      return SoundDifference(golden: before, now: after).text(tolerance, otherwise: byteText)
    }
    if let before = LineDifference.lines(of: golden), let after = LineDifference.lines(of: now) {
      // Files with the same lines may still have different line endings.
      let difference = LineDifference(golden: before, now: after, tolerance: tolerance.number)
      return difference.text("line") ?? (tolerance.number > 0 ? nil : byteText)
    }
    return byteText
  }

  /// The first byte that differs, or why the files cannot be compared, for example because the copy is missing or larger than 64 MiB.
  private var byteText: String {
    let before: [UInt8]
    let after: [UInt8]
    do throws(FileProblem) {
      before = try SourceFile.read(path: golden).bytes
      after = try SourceFile.read(path: now).bytes
    } catch { return "the bytes differ; they cannot be compared: \(error.text)" }
    let sizes = before.count == after.count ? "" : "; \(after.count) bytes, golden \(before.count)"
    guard let place = zip(before, after).enumerated().first(where: { $0.element.0 != $0.element.1 }) else {
      return "one file is a prefix of the other\(sizes)"
    }
    return "byte \(place.offset) is \(place.element.1), golden \(place.element.0)\(sizes)"
  }
}

/// Describes the difference between two sounds.
struct SoundDifference {
  let golden: SoundSamples
  let now: SoundSamples

  /// The difference; nil when it is within the tolerance.
  /// - Parameter bytes: the difference in bytes, used when the samples are equal.
  func text(_ tolerance: GoldenTolerance, otherwise bytes: String) -> String? {
    guard golden.rate == now.rate && golden.channels == now.channels else {
      return "format \(now.form), golden \(golden.form)"
    }
    let measured = measure()
    if golden.frames == now.frames {
      guard let first = measured.first else {
        return tolerance.allowsSound ? nil : "the samples are equal, but \(bytes)"
      }
      return isAllowed(measured, tolerance) ? nil : text(first, measured)
    }
    let lengths = "\(now.frames) samples, golden \(golden.frames)"
    guard let first = measured.first else { return "\(lengths); the samples present in both are equal" }
    return "\(lengths); \(text(first, measured))"
  }

  private struct Measures {
    /// Index of the first sample that differs, with interleaved channels.
    var first: Int?
    var count = 0
    var largest: Float = 0
    var goldenPower = 0.0
    var differencePower = 0.0

    /// Ratio of the golden sound to the difference, in dB.
    var signalToNoise: Double { 10 * log10(goldenPower / differencePower) }
  }

  private func measure() -> Measures {
    var measures = Measures()
    for index in 0..<min(golden.samples.count, now.samples.count) {
      let (before, after) = (golden.samples[index], now.samples[index])
      measures.goldenPower += Double(before) * Double(before)
      guard before != after else { continue }
      if measures.first == nil { measures.first = index }
      let difference = after - before
      measures.count += 1
      measures.largest = max(measures.largest, abs(difference))
      measures.differencePower += Double(difference) * Double(difference)
    }
    return measures
  }

  private func isAllowed(_ measures: Measures, _ tolerance: GoldenTolerance) -> Bool {
    guard tolerance.allowsSound else { return false }
    if let least = tolerance.signalToNoise, !(measures.signalToNoise >= least) { return false }
    if let most = tolerance.sample, Double(measures.largest) > most { return false }
    return true
  }

  private func text(_ first: Int, _ measures: Measures) -> String {
    let frame = first / golden.channels
    let time = Figures.duration(.samples(Int64(frame), rate: golden.rate))
    let channel = golden.channels == 1 ? "" : " of channel \(first % golden.channels + 1)"
    func shown(_ value: Float) -> String { Figures.number(Double(value), decimals: 6) }
    let noise =
      measures.goldenPower == 0
      ? "the golden sound is silent" : "signal-to-noise ratio \(Figures.number(measures.signalToNoise)) dB"
    return
      "sample \(frame)\(channel) at \(time) is \(shown(now.samples[first])), golden \(shown(golden.samples[first])); \(measures.count) of \(golden.samples.count) samples differ, by at most \(shown(measures.largest)), \(noise)"
  }
}
