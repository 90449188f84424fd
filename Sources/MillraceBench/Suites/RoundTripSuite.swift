import Glibc
import Millrace

/// Whether speech comes back from Opus in its place: recordings, coded at 16 kHz and 24 kb/s, kept as Ogg, decoded.
///
/// The recordings are the first ten of `audio/speech` below `MILLRACE_CORPUS`, or a voice that Debian's alsa-utils bring, or one that is
/// made up; the names of the figures say when it is one of the last two. All is done twice: as the encoder is by default, for speech
/// (`voip`), and for likeness (`audio`). For speech libopus filters rumble out, and the filter's phase can bring low voices forward by a part of a sample, which the likeness of
/// the waveforms shows as a lag of up to -1; without that filter nothing but the place of the samples is left to see.
/// The signal-to-noise ratio says how alike the waveforms are, not how alike they sound: a voice codec keeps the second.
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
      var (missing, lag, likeness): ([Double], [Double], [Double]) = ([], [], [])
      for recording in material.recordings {
        try pass(reference, recording, before)
        try pass(up, before, coded, ["application": application])
        try pass(back, coded, after)
        let (sent, received) = (try Sound.read(before), try Sound.read(after))
        missing.append(Double(received.count - sent.count))
        lag.append(Double(alignment(of: received, to: sent)))
        likeness.append(signalToNoise(sent, received))
      }
      figures += [
        Figure(
          "roundtrip", "\(name): samples back less samples sent", unit: "samples", goal: "0",
          samples: missing),
        Figure(
          "roundtrip", "\(name): lag of what came back", unit: "samples",
          goal: "0",
          samples: lag),
        Figure("roundtrip", "\(name): waveform signal to noise", unit: "dB", samples: likeness),
      ]
    }
    return figures
  }

  private static let debianVoice = "/usr/share/sounds/alsa/Front_Center.wav"

  /// What is sent there and back, and what figures of it are called by besides.
  private static func material(in workspace: borrowing Workspace) throws -> (
    recordings: [String], name: String
  ) {
    let corpus = unsafe getenv("MILLRACE_CORPUS").map { unsafe String(cString: $0) }
    let found = corpus.map { files(in: "\($0)/audio/speech", endingIn: ".flac") } ?? []
    if !found.isEmpty { return (Array(found.prefix(10)), "") }
    if unsafe access(debianVoice, R_OK) == 0 { return ([debianVoice], ", Debian's voice") }
    let path = workspace.file("voice.wav")
    try Sound.write(Sound.voice(seconds: 10, rate: 48_000), rate: 48_000, to: path)
    return ([path], ", made-up voice")
  }

  /// The shift, within 25 ms either way, at which the two are most alike; ten seconds are looked at.
  private static func alignment(of received: [Int16], to sent: [Int16]) -> Int {
    let reach = 400
    let count = min(sent.count, received.count, 160_000)
    let (one, other) = (sent.prefix(count).map(Float.init), received.prefix(count).map(Float.init))
    func likeness(_ shift: Int) -> Float {
      var sum: Float = 0
      for index in reach..<max(reach, count - reach) { sum += one[index] * other[index + shift] }
      return sum
    }
    return (-reach...reach).map { ($0, likeness($0)) }.max { $0.1 < $1.1 }?.0 ?? 0
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
