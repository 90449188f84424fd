import Glibc
import Millrace

/// Whether speech keeps its sample positions through Opus: recordings encoded at 16 kHz and 24 kb/s, stored as Ogg, decoded.
///
/// The recordings are the first ten of `audio/speech` in `MILLRACE_CORPUS`, or a voice from Debian's alsa-utils, or a synthetic one; the
/// names of the figures say when it is one of the last two. Everything is measured twice: for speech (`voip`), the encoder's default,
/// and for fidelity (`audio`). For speech libopus filters out rumble, and the phase of the filter can advance low voices by a part of a
/// sample, which shows as a lag of up to -1. Without that filter only the sample positions are left to measure.
/// The signal-to-noise ratio compares waveforms, not what is heard: a voice codec preserves the latter.
enum RoundTripSuite {
  private static let reference = """
    { "millrace": 1, "name": "reference", "parameters": { "input": { "default": "" }, "output": { "default": "" } },
      "nodes": {
        "in": { "type": "audio.read", "path": "${input}" },
        "mono": { "type": "audio.convert", "channels": 1 },
        "to16k": { "type": "audio.resample", "rate": 16000, "align": "file" },
        "out": { "type": "audio.write", "path": "${output}" } },
      "links": ["in -> mono -> to16k -> out"] }
    """
  private static let up = """
    { "millrace": 1, "name": "up",
      "parameters": { "input": { "default": "" }, "output": { "default": "" }, "application": { "default": "voip" } },
      "nodes": {
        "in": { "type": "audio.read", "path": "${input}" },
        "enc": { "type": "opus.encode", "bitrate": 24000, "application": "${application}" },
        "out": { "type": "ogg.write", "path": "${output}" } },
      "links": ["in -> enc -> out"] }
    """
  private static let back = """
    { "millrace": 1, "name": "back", "parameters": { "input": { "default": "" }, "output": { "default": "" } },
      "nodes": {
        "in": { "type": "ogg.read", "path": "${input}" },
        "dec": { "type": "opus.decode", "rate": 16000 },
        "out": { "type": "audio.write", "path": "${output}" } },
      "links": ["in -> dec -> out"] }
    """

  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let engine = Engine(catalogue: .standard)
    let (before, coded, after) = (workspace.file("a.wav"), workspace.file("b.opus"), workspace.file("c.wav"))
    func pass(_ graph: String, _ input: String, _ output: String, _ more: [String: String] = [:]) throws {
      let set = more.merging(["input": input, "output": output]) { $1 }
      _ = try runToEnd(plan(graph, named: "roundtrip.json", set: set), on: engine)
    }
    var figures: [Figure] = []
    let material = try material(in: workspace)
    for application in ["voip", "audio"] {
      let name = application + material.name
      var (missing, lag, noise): ([Double], [Double], [Double]) = ([], [], [])
      for recording in material.recordings {
        try pass(reference, recording, before)
        try pass(up, before, coded, ["application": application])
        try pass(back, coded, after)
        let (sent, received) = (try Sound.read(before), try Sound.read(after))
        missing.append(Double(received.count - sent.count))
        lag.append(Double(alignment(of: received, to: sent)))
        noise.append(signalToNoise(sent, received))
      }
      figures += [
        Figure(
          "roundtrip", "\(name): samples received minus samples sent", unit: "samples", goal: "0",
          samples: missing),
        Figure(
          "roundtrip", "\(name): lag of the decoded signal", unit: "samples",
          goal: "0",
          samples: lag),
        Figure("roundtrip", "\(name): waveform signal to noise", unit: "dB", samples: noise),
      ]
    }
    return figures
  }

  private static let debianVoice = "/usr/share/sounds/alsa/Front_Center.wav"

  /// The recordings, and a suffix for the names of their figures.
  private static func material(in workspace: borrowing Workspace) throws -> (
    recordings: [String], name: String
  ) {
    let corpus = unsafe getenv("MILLRACE_CORPUS").map { unsafe String(cString: $0) }
    let found = corpus.map { files(in: "\($0)/audio/speech", endingIn: ".flac") } ?? []
    if !found.isEmpty { return (Array(found.prefix(10)), "") }
    if unsafe access(debianVoice, R_OK) == 0 { return ([debianVoice], ", Debian's voice") }
    let path = workspace.file("voice.wav")
    try Sound.write(Sound.voice(seconds: 10, rate: 48_000), rate: 48_000, to: path)
    return ([path], ", synthetic voice")
  }

  /// The shift within ±25 ms with the highest correlation, over the first ten seconds.
  private static func alignment(of received: [Int16], to sent: [Int16]) -> Int {
    let reach = 400
    let count = min(sent.count, received.count, 160_000)
    let (one, other) = (sent.prefix(count).map(Float.init), received.prefix(count).map(Float.init))
    func correlation(_ shift: Int) -> Float {
      var sum: Float = 0
      for index in reach..<max(reach, count - reach) { sum += one[index] * other[index + shift] }
      return sum
    }
    return (-reach...reach).map { ($0, correlation($0)) }.max { $0.1 < $1.1 }?.0 ?? 0
  }

  private static func signalToNoise(_ sent: [Int16], _ received: [Int16]) -> Double {
    var (signal, noise) = (0.0, 0.0)
    for (one, other) in zip(sent, received) {
      signal += Double(one) * Double(one)
      noise += (Double(one) - Double(other)) * (Double(one) - Double(other))
    }
    return 10 * log10(signal / max(noise, 1))
  }
}
