import Foundation
import Millrace
import MillraceTesting
import Testing

/// Files that are read into the echo canceller give the same samples, however they are read.
@Suite("Echo cancellation of files")
struct EchoFilesTests {
  /// How the two files are read.
  struct Reading: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var isPaced = false
    var clock = Clock.Kind.virtual
    var referenceFirst = false
    /// Milliseconds in a packet of the microphone, and of the reference.
    var frames = (near: 20, reference: 20)
    /// Capacity of the links of the microphone and of the reference, in packets; nil for the default.
    var capacity: (near: Int, reference: Int)?
  }

  static let paced = Reading(testDescription: "paced", isPaced: true)
  static let readings = [
    Reading(testDescription: "unpaced"),
    Reading(testDescription: "unpaced, on the real clock", clock: .realtime),
    Reading(testDescription: "the reference's node first", referenceFirst: true),
    Reading(
      testDescription: "the reference's node first, on the real clock", clock: .realtime, referenceFirst: true
    ),
    Reading(testDescription: "paced, the reference's node first", isPaced: true, referenceFirst: true),
    Reading(testDescription: "links of a packet", capacity: (1, 1)),
    Reading(testDescription: "the microphone's link short, the reference's long", capacity: (1, 500)),
    Reading(testDescription: "the microphone's link long, the reference's short", capacity: (500, 1)),
    Reading(testDescription: "microphone in larger packets", frames: (100, 20)),
    Reading(testDescription: "reference in larger packets", frames: (20, 100)),
    Reading(
      testDescription: "reference in larger packets, on the real clock", clock: .realtime, frames: (10, 60)),
  ]

  private static let rate = 16_000
  private let scratch = Scratch()

  /// A far end with a syllable rhythm, and a microphone that hears it 40 ms later; lengths in seconds.
  private func files(near: Double, reference: Double) throws -> [Int16] {
    let count = Int(max(near, reference) * Double(Self.rate))
    let far = Fixture.noise(seed: 4, count: count, amplitude: 0.4).enumerated().map { index, sample in
      sample * Float(max(0, sin(2 * .pi * 3 * Double(index) / Double(Self.rate))))
    }
    let faint = Fixture.noise(seed: 5, count: count, amplitude: 0.0002)
    let late = 40 * Self.rate / 1_000
    let heard = (0..<Int(near * Double(Self.rate))).map {
      faint[$0] + ($0 >= late ? 0.5 * far[$0 - late] : 0)
    }
    func sound(_ samples: some Sequence<Float>) -> Sound {
      Sound(rate: Self.rate, samples: samples.map { Int16(($0 * 32_767).rounded()) })
    }
    let microphone = sound(heard)
    _ = try scratch.write(microphone.wav, to: "near.wav")
    _ = try scratch.write(sound(far.prefix(Int(reference * Double(Self.rate)))).wav, to: "far.wav")
    return microphone.samples
  }

  private func read(_ reading: Reading) throws -> [Int16] {
    func node(_ name: String, _ file: String, _ frame: Int) -> String {
      #""\#(name)": { "type": "audio.read", "path": "\#(scratch.file(file))", "pace": \#(reading.isPaced), "frame": \#(frame) }"#
    }
    func link(_ from: String, _ to: String, _ capacity: Int?) -> String {
      let held = capacity.map { #", "capacity": \#($0)"# } ?? ""
      return #"{ "from": "\#(from)", "to": "aec.\#(to)", "whenFull": "block"\#(held) }"#
    }
    var nodes = [
      node("mic", "near.wav", reading.frames.near), node("far", "far.wav", reading.frames.reference),
    ]
    var links = [
      link("mic", "near", reading.capacity?.near), link("far", "reference", reading.capacity?.reference),
    ]
    if reading.referenceFirst {
      nodes.reverse()
      links.reverse()
    }
    let text = """
      { "millrace": 1,
        "nodes": { \(nodes.joined(separator: ",\n")),
          "aec": { "type": "audio.echoCancel" },
          "out": { "type": "audio.write", "path": "\(scratch.file("out.wav"))" } },
        "links": [ \(links.joined(separator: ", ")), "aec -> out" ] }
      """
    try runGraph(try scratch.write(text.utf8, to: "graph.json"), [:], clock: reading.clock)
    return try Sound(wav: scratch.bytes("out.wav")).samples
  }

  private func level(_ samples: [Int16], _ from: Double, _ to: Double) -> Double {
    let part = samples[Int(from * Double(Self.rate))..<Int(to * Double(Self.rate))]
    return 20 * log10(Fixture.rms(Array(part)) + 1e-9)
  }

  @Test("however the files are read the samples are the same, and the echo is gone", arguments: readings)
  func sameSamples(reading: Reading) throws {
    let near = try files(near: 5, reference: 5)
    let paced = try read(Self.paced)
    #expect(paced.count == near.count)
    #expect(level(near, 3, 5) - level(paced, 3, 5) > 60)
    let other = try read(reading)
    let differs = zip(paced, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    #expect(other.count == paced.count && differs == nil, "differs from sample \(differs ?? -1) on")
  }

  @Test("a reference that is shorter than the microphone counts as silence after its end")
  func shortReference() throws {
    let near = try files(near: 5, reference: 2)
    let output = try read(Self.readings[0])
    #expect(output.count == near.count)
    #expect(level(near, 1, 2) - level(output, 1, 2) > 40)
    #expect(abs(level(near, 4, 5) - level(output, 4, 5)) < 0.5)
    #expect(try read(Self.paced) == output)
  }

  @Test("a reference that is longer than the microphone does not delay the end")
  func longReference() throws {
    let near = try files(near: 2, reference: 6)
    for reading in Self.readings.prefix(2) {
      let output = try read(reading)
      #expect(output.count == near.count)
      #expect(level(near, 1, 2) - level(output, 1, 2) > 40)
    }
  }
}
