import Foundation
import Glibc
import MillraceCore
import MillraceGraph
import MillraceRunner
import Synchronization
import Testing

/// The directory of this process, removed at exit.
private let madeFolder = Mutex("")

/// Runs the runner in this process, which is that of an exit test, in a new directory with some graph files.
/// - Parameter file: printed afterwards.
func runner(
  _ arguments: String..., catalogue: Catalogue = .runnerTests, showing file: String? = nil
) {
  makeRunnerFolder()
  guard let file else { MillraceCommand.main(catalogue: catalogue, name: "counter", arguments: arguments) }
  let status = MillraceCommand.run(catalogue: catalogue, name: "counter", arguments: arguments)
  printFile(file)
  exit(status.rawValue)
}

/// Prints a file on standard output, as it is.
func printFile(_ path: String) {
  let bytes = (try? SourceFile.read(path: path))?.bytes ?? Array("no such file".utf8)
  var offset = 0
  while offset < bytes.count {
    offset += max(0, Glibc.write(1, Array(bytes[offset...]), bytes.count - offset))
  }
}

/// Creates a directory with some graph files and makes it the current one. It is removed at exit.
func makeRunnerFolder() {
  var template = Array("/tmp/millrace-runner-XXXXXX".utf8CString)
  let folder = template.withUnsafeMutableBufferPointer {
    mkdtemp($0.baseAddress!).map { String(cString: $0) }!
  }
  chdir(folder)
  madeFolder.withLock { $0 = folder }
  atexit {
    // Not called by `_exit`: a test that ends this way removes its directory itself.
    try? FileManager.default.removeItem(atPath: madeFolder.withLock { $0 })
  }
  setenv("MILLRACE_TEST_WORD", "sesame", 1)
  func graph(_ name: String, _ source: String, _ sink: String, clock: String = "realtime") {
    write(
      """
      {
        "millrace": 1,
        "name": "count", "clock": "\(clock)",
        "parameters": { "count": { "default": 100 } },
        "nodes": {
          "src": { "type": "test.count", "count": "${count}"\(source) },
          "end": { "type": "test.sink"\(sink) }
        },
        "links": [ "src -> end" ]
      }

      """, to: name)
  }
  func program(_ name: String, _ script: String, links: String, failAt: Int) {
    let words = script.replacing("\"", with: "\\\"")
    write(
      """
      {
        "millrace": 1, "name": "program",
        "nodes": {
          "src": { "type": "test.count", "count": -1, "pace": true },
          "end": { "type": "test.sink", "failAt": \(failAt) },
          "sh": { "type": "process.pipe", "mode": "lines", "command": [ "sh", "-c", "\(words)" ] }
        },
        "links": [ \(links) ]
      }

      """, to: name)
  }
  graph("good.json", "", "")
  graph("virtual.json", "", "", clock: "virtual")
  // With a budget that no call exceeds on any machine.
  graph("calm.json", #", "budget": "1s""#, #", "budget": "1s""#, clock: "virtual")
  graph("wrong.json", #", "word": 1"#, #", "failAtt": 3"#)
  graph("fails.json", "", #", "failAt": 3"#)
  graph("isolates.json", "", #", "failAt": 3, "onError": "isolate""#)
  graph("restarts.json", "", #", "failAt": 60, "onError": "restart""#)
  graph("hasty.json", #", "word": "interrupt", "pace": true"#, "")
  graph("writes.json", "", #", "path": "good.json""#)
  // Programs that ignore SIGTERM. Both print their process ID to the standard output of this process. The first then prints a line that
  // makes the sink fail.
  program(
    "stubborn.json",
    "trap '' TERM; echo $$ >/proc/$PPID/fd/1; echo fail; for i in $(seq 6000); do sleep 0.1; done",
    links: #""src -> sh -> end""#, failAt: 1)
  program(
    "impatient.json",
    "trap '' TERM; echo $$ >/proc/$PPID/fd/1; rm -r \"$PWD\"; for i in $(seq 6000); do kill -INT $PPID; sleep 0.1; done",
    links: #""src -> sh", "src -> end""#, failAt: 0)
  symlink("/dev/full", "full.json")
  graph("late.json", #", "word": "late", "pace": true"#, #", "maxAge": "1ms""#, clock: "virtual")
  write(
    #"{ "millrace": 1, "name": "talks", "clock": "virtual", "nodes": { "talk": { "type": "test.talk" }, "end": { "type": "test.sink" } }, "links": [ "talk -> end" ] }"#,
    to: "talks.json")
  write(
    #"""
    { "millrace": 1, "name": "sound", "clock": "virtual",
      "nodes": {
        "tone": { "type": "audio.tone", "duration": 5000, "pace": true },
        "quiet": { "type": "audio.gain", "gain": -6 },
        "end": { "type": "flow.null" } },
      "links": [ "tone -> quiet -> end" ] }
    """#, to: "sound.json")
  graph("refuses.json", #", "word": "refuse""#, "")
  setenv("MILLRACE_TEST_REFUSED", "refuse", 1)
  graph("refusesSecret.json", #", "word": "${env:MILLRACE_TEST_REFUSED}""#, "")
  graph("secret.json", #", "word": "${env:MILLRACE_TEST_WORD}""#, "")
  write(
    #"""
    { "millrace": 1, "name": "stuffed",
      "nodes": {
        "src": { "type": "test.count", "count": -1 },
        "sh": { "type": "process.pipe", "command": ["sleep", "3"] } },
      "links": [ { "from": "src", "to": "sh", "capacity": 4, "whenFull": "block" } ] }
    """#, to: "stuffed.json")
  write(
    #"""
    { "millrace": 1, "name": "loose", "clock": "virtual",
      "nodes": {
        "loose": { "type": "test.loose", "token": "Bearer ${env:MILLRACE_TEST_TOKEN}",
                   "pin": "${env:MILLRACE_TEST_PIN}", "path": "notes.txt", "onError": "isolate" },
        "say": { "type": "text.print" },
        "log": { "type": "event.log", "path": "events.jsonl" } },
      "links": [ "loose -> say", "loose.events -> log.in1" ] }
    """#, to: "loose.json")
  write(
    #"""
    { "millrace": 1, "name": "late", "clock": "virtual",
      "nodes": {
        "late": { "type": "test.late", "path": "notes.txt", "onError": "isolate" },
        "say": { "type": "text.print" },
        "log": { "type": "event.log", "path": "events.jsonl" } },
      "links": [ "late -> say", "late.events -> log.in1" ] }
    """#, to: "learns.json")
  write(
    #"""
    { "millrace": 1, "name": "echo", "clock": "virtual",
      "nodes": { "echo": { "type": "test.echo" }, "say": { "type": "text.print", "to": "stderr" } },
      "links": [ "echo -> say" ] }
    """#, to: "echo.json")
  graph("endless.json", #", "pace": true"#, "")
  graph("interrupted.json", #", "pace": true"#, #", "interruptAt": 3"#)
  graph("terminated.json", #", "pace": true"#, #", "terminateAt": 3"#)
  graph("clings.json", #", "pace": true"#, #", "interruptAt": 3, "clings": true"#)
}

func write(_ text: String, to path: String) {
  let file = fopen(path, "w")!
  fputs(text, file)
  fclose(file)
}

/// The standard output of an exit test's process. The test library writes some bytes too, so test for text that must not be there and not
/// for emptiness.
func output(of result: ExitTest.Result?) -> String {
  String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
}

/// The standard error of an exit test's process.
func errors(of result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}
