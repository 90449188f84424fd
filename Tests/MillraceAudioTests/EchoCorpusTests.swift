import Glibc
import MillraceTesting
import Testing

/// The canceller on echo cases made from recordings. The limits are slightly below what was reached, from 5 s on.
@Suite("Echo canceller on recordings", .enabled(if: Corpus.has("audio/aec"), "\(Corpus.skipReason)"))
struct EchoCorpusTests {
  private func recording(_ name: String) throws -> [Float] { try EchoRecordings.samples("aec/" + name) }

  private func cleaned(_ near: [Float], _ far: [Float]) -> [Float] { EchoRecordings.cleaned(near, far) }

  private func decibels(_ samples: [Float], _ from: Double, _ to: Double) -> Double {
    20 * log10(Fixture.rms(Array(samples[Int(from * 16_000)..<Int(to * 16_000)])) + 1e-9)
  }

  @Test(
    "far end alone is attenuated, also with drift and after a jump",
    arguments: [
      ("fest_300_d50_n30", 5.0, 38.0), ("fest_300_d80_p50_n30", 5.0, 40.5), ("fest_300_jump_n30", 11.0, 47.0),
    ])
  func depth(name: String, from: Double, floor: Double) throws {
    let (near, far) = (try recording(name + "/mic.flac"), try recording(name + "/far.flac"))
    let output = cleaned(near, far)
    #expect(decibels(near, from, 15.5) - decibels(output, from, 15.5) > floor)
  }

  @Test("near end alone passes unchanged")
  func nearAlone() throws {
    let (near, far) = (try recording("nest_n20/mic.flac"), try recording("nest_n20/far.flac"))
    let output = cleaned(near, far)
    let worst = (0..<output.count - 128).map { abs(output[$0 + 128] - near[$0]) }.max() ?? 1
    #expect(worst < 1e-5)
  }

  @Test(
    "near-end speech over the echo is preserved, with a nonlinear loudspeaker and a reverberant room",
    arguments: [("dt_300_d60_soft_n30", 15.0), ("dt_real1_d20_n30", 20.2)])
  func doubleTalk(name: String, floor: Double) throws {
    let near = try recording(name + "/near.flac")
    let output = cleaned(try recording(name + "/mic.flac"), try recording(name + "/far.flac"))
    let late = 128
    let span = 8 * 16_000..<15 * 16_000
    let difference = span.map { output[$0 + late] - near[$0] }
    let voice = Array(near[span])
    #expect(20 * log10(Fixture.rms(voice) / Fixture.rms(difference)) > floor)
  }
}
