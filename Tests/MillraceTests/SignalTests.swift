import Foundation
import Glibc
import MillraceTesting
import Testing

/// A live graph whose program is interrupted or killed: what was written before has to stay of use.
@Suite("The program is interrupted or killed", .timeLimit(.minutes(10)))
struct SignalTests {
  private let scratch = Scratch()

  /// A tone in time with the clock for an hour, kept as WAV and as Ogg Opus.
  private func live(shell: String? = nil) throws -> RunnerProcess {
    let graph = """
      { "millrace": 1, "name": "live",
        "nodes": {
          "tone": { "type": "audio.tone", "rate": 16000, "channels": 1, "duration": 3600000, "pace": true },
          "wav": { "type": "audio.write", "path": "live.wav" },
          "enc": { "type": "opus.encode" },
          "ogg": { "type": "ogg.write", "path": "live.opus" }
        },
        "links": [ "tone -> wav", "tone -> enc -> ogg" ] }
      """
    return try RunnerProcess(
      ["run", "-q", scratch.write(graph.utf8, to: "live.json")], in: scratch, shell: shell)
  }

  /// Waits until both files hold so much.
  private func waitForSound(_ process: RunnerProcess) throws {
    // 2 s of s16 at 16 kHz, past the first update of the header; some pages of Ogg.
    try process.wait { size("live.wav") >= 64_000 && size("live.opus") >= 4_000 }
  }

  private func size(_ name: String) -> Int {
    (try? FileManager.default.attributesOfItem(atPath: scratch.file(name))[.size] as? Int) ?? 0
  }

  private func soundOfOpus() throws -> Sound {
    try runGraph(
      Package.graph("voice-return"),
      ["input": scratch.file("live.opus"), "output": scratch.file("played.wav")])
    return try Sound(path: scratch.file("played.wav"))
  }

  @Test(
    "one interrupt lets everything flow out: 0, no word, and both files whole and equally long",
    arguments: [SIGINT, SIGTERM])
  func interrupt(signal: Int32) throws {
    let process = try live()
    try waitForSound(process)
    process.send(signal)
    let result = process.wait()
    #expect(result.status == 0)
    #expect(result.errors.isEmpty)
    let wav = try Sound(path: scratch.file("live.wav"))
    // A header of 44 bytes, and 36 that a file beyond 4 GiB would need (EBU Tech 3306).
    #expect(80 + wav.samples.count * 2 == size("live.wav"), "the header tells all there is")
    #expect(try soundOfOpus().frames == wav.frames * 3)
  }

  @Test("the end of the terminal is as an interrupt, but not for a run that nohup started")
  func hangUp() throws {
    let shielded = try live(shell: #"trap '' HUP; exec "$@""#)
    try waitForSound(shielded)
    shielded.send(SIGHUP)
    // Three seconds more: a run that heeds the signal ends within a twentieth.
    let size = size("live.wav")
    try shielded.wait { self.size("live.wav") >= size + 96_000 }
    shielded.send(SIGTERM)
    #expect(shielded.wait().status == 0)
    // What the first run wrote must not stand for the sound of the second.
    for name in ["live.wav", "live.opus"] { try FileManager.default.removeItem(atPath: scratch.file(name)) }
    let plain = try live()
    try waitForSound(plain)
    plain.send(SIGHUP)
    #expect(plain.wait().status == 0)
  }

  @Test("killed on the spot, it leaves a WAV and an Ogg file that play")
  func kill() throws {
    let process = try live()
    try waitForSound(process)
    process.send(SIGKILL)
    #expect(process.wait().status == 128 + SIGKILL)
    // The header may be a second behind the sound.
    let wav = try Sound(path: scratch.file("live.wav"))
    #expect(wav.frames >= 16_000)
    #expect(Fixture.rms(wav.samples) > 0.01)
    let opus = try soundOfOpus()
    #expect(opus.frames >= 48_000 && Fixture.rms(opus.samples) > 0.01)
  }
}
