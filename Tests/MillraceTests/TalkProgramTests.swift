import Foundation
import Glibc
import TestSystem
import Testing

/// `millrace talk` with the double and without devices.
@Suite("millrace talk", .serialized, .timeLimit(.minutes(30))) struct TalkProgramTests {
  private func arguments(_ more: String...) -> [String] {
    [
      "talk", Package.graph("bailian-voice"), "--double", "--set", "microphone=null", "--set",
      "loudspeaker=null",
      "--set", "engine=energy",
    ] + more
  }

  private func said(_ scratch: Scratch) -> [String] {
    String(decoding: (try? scratch.bytes("said.txt")) ?? [], as: UTF8.self).split(separator: "\n").map(
      String.init)
  }

  @Test("the lines of a script are performed, replies are awaited, and the transcript is written")
  func script() throws {
    let scratch = Scratch()
    _ = try scratch.write(
      "# first\n/wait listening\nwhat time is it\n/wait answer\n/say good bye\n/wait answer\nq\n".utf8,
      to: "lines")
    // The thinking time is longer than the program may be preempted.
    _ = try scratch.write(
      #"{ "turns": [{ "says": "It is a quarter past nine.", "thinks": 3000 }] }"#.utf8, to: "slow.json")
    let result = try RunnerProcess(
      arguments(
        "--script", "lines", "--scenario", "slow.json", "--transcript", "said.txt", "--report", "report.html"),
      in: scratch
    ).wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.isEmpty)
    let said = said(scratch)
    #expect(said.first == "you: what time is it")
    #expect(said.count { $0.hasPrefix("bot: ") } >= 1, "\(said)")
    #expect(result.errors.contains("thinking") && result.errors.contains("answering"), "\(result.errors)")
    #expect(!result.errors.contains("double:"), "\(result.errors)")
    #expect(try scratch.bytes("report.html").starts(with: "<!".utf8))
  }

  @Test("a picture is sent; other files are rejected with a message, and the dialogue continues")
  func pictures() throws {
    let scratch = Scratch()
    let encoder = try TestProgram(
      "/usr/bin/ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "testsrc=d=1:s=64x64:r=25", "video.mp4"],
      in: scratch.path)
    #expect(encoder.wait(seconds: 60) == 0)
    #expect(mkfifo(scratch.file("pipe"), 0o600) == 0)
    _ = try scratch.write("no picture at all".utf8, to: "text.png")
    let slide = Package.root + "/graphs/slide.png"
    _ = try scratch.write(
      """
      /wait listening
      /image nowhere.png
      /image .
      /image pipe
      /image video.mp4
      /image text.png
      /image '\(slide)' what is this?
      /wait answer
      q

      """.utf8, to: "lines")
    let result = try RunnerProcess(
      arguments("--script", "lines", "--transcript", "said.txt"), in: scratch
    ).wait()
    #expect(result.status == 0, "\(result.errors)")
    for text in [
      #"there is no file "nowhere.png""#, #"".\" is a directory"#.replacing("\\", with: ""),
      #""pipe" is a pipe"#, #""video.mp4" is a video"#, #""text.png""#,
      "name a picture, such as a JPEG or PNG",
    ] {
      #expect(result.errors.replacing("\n     ", with: " ").contains(text), "\(text) in \(result.errors)")
    }
    let said = said(scratch)
    #expect(said.contains { $0.hasPrefix("you: [picture, ") && $0.hasSuffix("what is this?") }, "\(said)")
    #expect(said.contains("bot: I see a picture."), "\(said)")
  }

  @Test("a graph without a service, a double without an address and a missing scenario are rejected")
  func refused() throws {
    let scratch = Scratch()
    let none = try RunnerProcess.run("talk", Package.graph("reply"), in: scratch)
    #expect(
      none.status == 2
        && none.errors.contains(
          "has no service node; name a graph with a node such as bailian.dialog, ivh.avatar, tuya.agent\n"),
      "\(none.errors)")
    let deaf = try RunnerProcess.run("talk", Package.graph("reply"), "--double", in: scratch)
    #expect(deaf.status == 2 && deaf.errors.contains("no service node with a double"), "\(deaf.errors)")
    // The service is found in a graph that another one includes; its address is not.
    _ = try scratch.write(
      #"{ "millrace": 1, "name": "outer", "nodes": { "bot": { "type": "graph", "path": "inner.json" } } }"#
        .utf8,
      to: "outer.json")
    _ = try scratch.write(
      #"{ "millrace": 1, "name": "inner", "nodes": { "bot": { "type": "bailian.dialog" } } }"#.utf8,
      to: "inner.json")
    let closed = try RunnerProcess.run("talk", "outer.json", "--double", in: scratch)
    #expect(closed.status == 2 && closed.errors.contains(#"no parameter "url""#), "\(closed.errors)")
    // Which file it includes is known only when its parameters are.
    _ = try scratch.write(
      #"""
      { "millrace": 1, "name": "open", "parameters": { "part": { "default": "inner" } },
        "nodes": { "bot": { "type": "graph", "path": "${part}.json" } } }
      """#.utf8, to: "open.json")
    let open = try RunnerProcess.run("talk", "open.json", "--double", in: scratch)
    #expect(
      open.status == 2
        && open.errors.contains(#"not searched, such as "${part}.json"; write the path itself"#),
      "\(open.errors)")
    let lost = try RunnerProcess.run("talk", "no-such-graph", in: scratch)
    #expect(lost.status == 2 && lost.errors.contains(#"there is no graph "no-such-graph""#), "\(lost.errors)")
    let twice = try RunnerProcess.run("talk", "--double", "--set", "url=ws://127.0.0.1:1/x", in: scratch)
    #expect(twice.status == 2 && twice.errors.contains("remove --double, or --set url"), "\(twice.errors)")
    let file = try RunnerProcess.run("talk", "no-such-graph.json", "--double", in: scratch)
    #expect(
      file.status == 2 || file.status == 1 && file.errors.contains("no such file"), "\(file.errors)")
    #expect(!file.errors.contains("url"), "\(file.errors)")
    let scenario = try RunnerProcess.run("talk", "--double", "--scenario", "none.json", in: scratch)
    #expect(scenario.status == 2, "\(scenario.errors)")
    let script = try RunnerProcess(arguments("--script", "none.txt"), in: scratch).wait()
    #expect(
      script.status == 2 && script.errors.contains(#"cannot read the script from "none.txt""#),
      "\(script.errors)")
  }

  @Test("lines that are not valid UTF-8 are skipped with a message, and an empty script does nothing")
  func invalidLines() throws {
    let scratch = Scratch()
    _ = try scratch.write(
      Array("/wait listening\n".utf8) + [0xFF, 0xFE, 0x80, 10] + Array("q\n".utf8), to: "lines")
    let result = try RunnerProcess(arguments("--script", "lines"), in: scratch).wait()
    #expect(result.status == 0 && result.errors.contains("not valid UTF-8"), "\(result.errors)")
    #expect(!result.errors.contains("you "), "\(result.errors)")
    _ = try scratch.write([UInt8](), to: "nothing")
    let empty = try RunnerProcess(arguments("--script", "nothing", "--duration", "1s"), in: scratch).wait()
    #expect(empty.status == 0, "\(empty.errors)")
  }

  @Test(
    "without espeak-ng the cure is reported, and the dialogue continues; an unknown voice is refused at once")
  func speechless() throws {
    let scratch = Scratch()
    let lines = "/wait listening\nwhy?\n/wait thinking\n/wait listening\nq\n"
    _ = try scratch.write(lines.utf8, to: "lines")
    // The thinking time is longer than the program may be preempted.
    _ = try scratch.write(#"{ "turns": [{ "says": "Yes.", "thinks": 5000 }] }"#.utf8, to: "slow.json")
    let none = try RunnerProcess(
      arguments("--script", "lines", "--scenario", "slow.json"), in: scratch,
      shell: #"PATH=/nowhere exec "$@""#
    ).wait()
    let words = none.errors.replacing("\n     ", with: " ")
    #expect(none.status == 0 && words.contains("install the package espeak-ng"), "\(words)")
    _ = try scratch.write(
      #"{ "voice": "nobody", "turns": [{ "says": "Yes.", "thinks": 5000 }] }"#.utf8, to: "odd.json")
    let odd = try RunnerProcess(arguments("--script", "lines", "--scenario", "odd.json"), in: scratch).wait()
    let told = odd.errors.replacing("\n     ", with: " ")
    #expect(odd.status == 2 && told.contains(#"cannot speak with the voice "nobody""#), "\(told)")
    #expect(!told.contains("Error: The specified"), "espeak-ng writes to the screen itself: \(told)")
  }

  @Test("double without a name lists the services, and suggests one for a misspelt name")
  func services() throws {
    let scratch = Scratch()
    let list = try RunnerProcess.run("double", in: scratch)
    #expect(list.status == 0 && list.output.contains("(bailian.dialog)"), "\(list.output)")
    #expect(list.output.contains("(net.websocket)"), "\(list.output)")
    let wrong = try RunnerProcess.run("double", "bailan", in: scratch)
    #expect(
      wrong.status == 2 && wrong.errors.contains(#"there is no service "bailan"; did you mean "bailian"?"#),
      "\(wrong.errors)")
  }

  @Test("a port in use is reported with the cure")
  func portTaken() throws {
    let scratch = Scratch()
    let first = try RunnerProcess(["double", "bailian", "--port", "0", "--report", "seen.json"], in: scratch)
    try first.wait { first.outputSoFar.contains("ws://") }
    let port = try #require(
      first.outputSoFar.split(separator: ":").last.map { String($0.prefix(while: \.isNumber)) })
    let second = try RunnerProcess.run("double", "bailian", "--port", port, in: scratch)
    #expect(second.status == 2 && second.errors.contains("address in use; choose another --port"))
    first.send(SIGINT)
    #expect(first.wait().status == 0)
    #expect(String(decoding: try scratch.bytes("seen.json"), as: UTF8.self).contains(#""violationCount":0"#))
  }

  @Test("Ctrl-C and the end of a run work while the service is unreachable", arguments: [true, false])
  func away(isSignal: Bool) throws {
    let scratch = Scratch()
    let more = isSignal ? [] : ["--duration", "2s"]
    let process = try RunnerProcess(
      [
        isSignal ? "talk" : "run", Package.graph("bailian-voice"), "--set", "microphone=null", "--set",
        "loudspeaker=null", "--set", "engine=energy", "--set", "url=ws://127.0.0.1:1/x", "--set",
        "log=events",
      ] + more, in: scratch)
    if isSignal {
      try process.wait { process.errorsSoFar.contains("reconnecting") }
      process.send(SIGINT)
    }
    let result = process.wait()
    // Quitting is no error, but a run that never reached its service has failed.
    #expect(result.status == (isSignal ? 0 : 3), "\(result.errors)")
    #expect(isSignal || result.errors.contains("connection refused by"), "\(result.errors)")
  }

  /// Starts the program on a pseudoterminal, followed by `stty -a`. Bytes written to the pipe are keys. An interrupt does not discard what the
  /// terminal was given to show (`noflsh`): on a busy machine that would be the status.
  private func onTerminal(_ scratch: Scratch, _ keys: Pipe, _ more: String...) throws -> RunnerProcess {
    let shell = """
      export TERM=xterm; exec script -qec "stty noflsh; trap : INT; $(printf '%q ' "$@"); s=\\$?; trap '' INT; echo status=\\$s; stty -a" /dev/null >&2
      """
    return try RunnerProcess(
      [
        "talk", Package.graph("bailian-push-to-talk"), "--double", "--set", "microphone=null", "--set",
        "loudspeaker=null", "--set", "engine=energy",
      ] + more, in: scratch, shell: shell, input: keys)
  }

  private func expectRestored(_ result: RunnerProcess.Result, status: Int) {
    #expect(result.errors.contains("status=\(status)"), "\(result.errors)")
    let settings = result.errors.split(whereSeparator: \.isWhitespace).map(String.init)
    for word in ["icanon", "echo", "iexten", "ixon"] { #expect(settings.contains(word), "\(word) is off") }
  }

  @Test(
    "on a terminal, keys are read, the state is shown, and the settings are restored",
    arguments: ["q", "\u{3}"])
  func terminal(end: String) throws {
    let scratch = Scratch()
    let keys = Pipe()
    let process = try onTerminal(scratch, keys)
    try process.wait { process.errorsSoFar.contains("your turn: press space") }
    keys.fileHandleForWriting.write(Data(" ".utf8))
    try process.wait { process.errorsSoFar.contains("button pressed") }
    try process.wait { process.errorsSoFar.contains("hearing you") }
    keys.fileHandleForWriting.write(Data("\twhy?\r".utf8))
    // As a printed line, and not only as the text being typed, which follows "> ".
    try process.wait { process.errorsSoFar.contains("  why?") }
    keys.fileHandleForWriting.write(Data(end.utf8))
    expectRestored(process.wait(), status: 0)
  }

  @Test("three interrupts end the program immediately, even when it hangs, and the terminal is restored")
  func thirdInterrupt() throws {
    let scratch = Scratch()
    let keys = Pipe()
    // Keeps the pipe open, so that writing after the terminal has closed does not raise SIGPIPE in the tests.
    let spare = dup(keys.fileHandleForReading.fileDescriptor)
    defer { close(spare) }
    let (transcript, path) = try pipe(withRoom: "you: why?\n".utf8.count, in: scratch)
    defer { close(transcript) }
    let process = try onTerminal(scratch, keys, "--transcript", path)
    try process.wait { process.errorsSoFar.contains("your turn: press space") }
    // The second of these lines does not fit into the pipe, so the thread that checks for interrupts blocks.
    keys.fileHandleForWriting.write(Data("\twhy?\r\twho?\r".utf8))
    try process.wait { Self.waiting(in: transcript) == 4_096 }
    // Interrupts in quick succession may be merged, so repeat until the program has ended.
    try process.wait {
      keys.fileHandleForWriting.write(Data("\u{3}".utf8))
      usleep(20_000)
      return process.errorsSoFar.contains("status=")
    }
    try keys.fileHandleForWriting.close()
    expectRestored(process.wait(), status: 130)
  }

  /// A named pipe with room for the given number of bytes, and a descriptor for it that is never read.
  private func pipe(withRoom room: Int, in scratch: Scratch) throws -> (descriptor: Int32, path: String) {
    let path = scratch.file("full")
    try #require(mkfifo(path, 0o600) == 0)
    let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    // F_SETPIPE_SZ: one page.
    try #require(fcntl(descriptor, 1_031, 4_096) == 4_096)
    try #require(
      Glibc.write(descriptor, [UInt8](repeating: 10, count: 4_096 - room), 4_096 - room) == 4_096 - room)
    return (descriptor, path)
  }

  /// The number of bytes in a pipe.
  private static func waiting(in pipe: Int32) -> Int {
    var count: Int32 = 0
    return ioctl(pipe, UInt(FIONREAD), &count) == 0 ? Int(count) : -1
  }

  @Test("when the terminal closes, the dialogue ends as with q, and the report is written")
  func terminalGone() throws {
    let scratch = Scratch()
    let keys = Pipe()
    let process = try onTerminal(scratch, keys, "--report", scratch.file("report.json"))
    try process.wait { process.errorsSoFar.contains("your turn: press space") }
    let report = { (try? scratch.bytes("report.json"))?.isEmpty == false }
    #expect(!report())
    // Killing `script` closes the terminal. If only its input ended, it would pass that on as a key.
    process.send(SIGKILL)
    #expect(process.wait().status == 128 + SIGKILL)
    let deadline = Date(timeIntervalSinceNow: 120)
    while !report() && Date() < deadline { usleep(5_000) }
    #expect(report(), "the report of a normal end")
  }
}
