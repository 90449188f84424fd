import Foundation
import Glibc
import MillraceTesting
import Testing

/// When the program is interrupted or killed while a graph runs, its files must remain usable.
@Suite("Signals", .timeLimit(.minutes(30)))
struct SignalTests {
  private let scratch = Scratch()

  /// Records a paced tone of an hour as WAV and as Ogg Opus.
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

  /// Waits until both files contain some sound.
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
    "one signal drains the graph: status 0, no message, and both files complete and equally long",
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
    #expect(80 + wav.samples.count * 2 == size("live.wav"), "the header has the length of the file")
    #expect(try soundOfOpus().frames == wav.frames * 3)
  }

  @Test("SIGHUP acts like an interrupt, but not for a run started by nohup")
  func hangUp() throws {
    let shielded = try live(shell: #"trap '' HUP; exec "$@""#)
    try waitForSound(shielded)
    shielded.send(SIGHUP)
    // Three seconds more. A run that handled the signal would end within 50 ms.
    let size = size("live.wav")
    try shielded.wait { self.size("live.wav") >= size + 96_000 }
    shielded.send(SIGTERM)
    #expect(shielded.wait().status == 0)
    // So that the files of the first run are not taken for those of the second.
    for name in ["live.wav", "live.opus"] { try FileManager.default.removeItem(atPath: scratch.file(name)) }
    let plain = try live()
    try waitForSound(plain)
    plain.send(SIGHUP)
    #expect(plain.wait().status == 0)
  }

  /// Records a tone of an hour, beside a program that ignores SIGTERM and the end of its input and ends when a file appears. It writes its
  /// process ID when it starts and when its input ends.
  private func stubborn() throws -> RunnerProcess {
    let script =
      "trap '' TERM; echo $$ >begun; cat >/dev/null; echo $$ >ended; while [ ! -e go ]; do sleep 0.1; done"
    let graph = """
      { "millrace": 1, "name": "stubborn",
        "nodes": {
          "tone": { "type": "audio.tone", "rate": 16000, "channels": 1, "duration": 3600000, "pace": true },
          "wav": { "type": "audio.write", "path": "live.wav" },
          "program": { "type": "process.pipe", "command": ["sh", "-c", "\(script)"], "endStall": 600000 },
          "out": { "type": "flow.null" }
        },
        "links": [ "tone -> wav", "tone -> program -> out" ] }
      """
    return try RunnerProcess(
      ["run", "-q", scratch.write(graph.utf8, to: "stubborn.json")], in: scratch)
  }

  private func number(in name: String) -> pid_t? {
    let text = try? String(contentsOfFile: scratch.file(name), encoding: .utf8)
    return text.flatMap { pid_t($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
  }

  @Test(
    "a second signal of any kind stops immediately: status 130, programs killed, recordings complete",
    arguments: [(SIGTERM, SIGTERM), (SIGINT, SIGTERM), (SIGTERM, SIGINT), (SIGHUP, SIGTERM)])
  func secondRequest(first: Int32, second: Int32) throws {
    let process = try stubborn()
    try process.wait { size("live.wav") >= 64_000 && number(in: "begun") != nil }
    process.send(first)
    // It drains: the program's input has ended, and the program continues.
    try process.wait { number(in: "ended") != nil }
    let program = try #require(number(in: "ended"))
    process.send(second)
    let result = process.wait()
    #expect(result.status == 130, "\(result.errors)")
    let wav = try Sound(path: scratch.file("live.wav"))
    #expect(80 + wav.samples.count * 2 == size("live.wav"), "the header has the length of the file")
    // SIGKILL has been sent when the runner ends, but the system may take a moment to act.
    let deadline = Date(timeIntervalSinceNow: 60)
    while isAlive(program) && Date() < deadline { usleep(2_000) }
    #expect(!isAlive(program))
  }

  @Test("SIGHUP from both the kernel and the shell counts once")
  func hangUpTwice() throws {
    let process = try stubborn()
    try process.wait { size("live.wav") >= 64_000 && number(in: "begun") != nil }
    process.send(SIGHUP)
    try process.wait { number(in: "ended") != nil }
    for _ in 0..<3 {
      process.send(SIGHUP)
      // Pending signals of one kind are merged.
      usleep(50_000)
    }
    _ = try scratch.write("".utf8, to: "go")
    #expect(process.wait().status == 0)
  }

  /// True while a process runs. A zombie counts as ended: the process that adopted it reaps it some time later.
  private func isAlive(_ process: pid_t) -> Bool {
    guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else {
      return false
    }
    return text.split(separator: ")").last?.split(separator: " ").first != "Z"
  }

  @Test("when killed, it leaves a WAV and an Ogg file that can be played")
  func kill() throws {
    let process = try live()
    try waitForSound(process)
    process.send(SIGKILL)
    #expect(process.wait().status == 128 + SIGKILL)
    // The header may be up to a second older than the sound.
    let wav = try Sound(path: scratch.file("live.wav"))
    #expect(wav.frames >= 16_000)
    #expect(Fixture.rms(wav.samples) > 0.01)
    let opus = try soundOfOpus()
    #expect(opus.frames >= 48_000 && Fixture.rms(opus.samples) > 0.01)
  }
}
