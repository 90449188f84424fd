#if RTC
  import Foundation
  import Glibc
  import Millrace
  import MillraceRunner
  import Testing

  @Suite("A graph with a hub of its own", .timeLimit(.minutes(30)))
  struct RoomGraphTests {
    @Test("millrace run prints where to open its page, as soon as the hub listens")
    func address() async {
      let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        makeRunnerFolder()
        write(
          #"""
          { "millrace": 1, "name": "web",
            "nodes": {
              "room": { "type": "rtc.room", "listen": 0, "interfaces": ["127.0.0.1"] },
              "log": { "type": "event.log", "path": "events.jsonl" } },
            "links": [ "room.events -> log.in1" ] }
          """#, to: "web.json")
        Thread.detachNewThread {
          // What the runner has not shown by then it shows at its end.
          for _ in 0..<30_000 where !hasListened() { usleep(10_000) }
          kill(getpid(), SIGINT)
        }
        let status = MillraceCommand.run(
          catalogue: .standard, name: "millrace", arguments: ["run", "web.json"])
        exit(status.rawValue)
      }
      let lines = errors(of: result).split(separator: "\n")
      let notice = "web: room: open http://127.0.0.1:"
      let places = lines.filter { $0.hasPrefix(notice) }.map { $0.dropFirst(notice.count) }
      #expect(places.count == 1, "\(lines)")
      // A port and the path.
      #expect(places.first?.hasSuffix("/") == true && places.first.flatMap { Int($0.dropLast()) } ?? 0 > 0)
    }
  }

  /// Whether a hub has told its address to the log of a graph.
  private func hasListened() -> Bool {
    let bytes = FileManager.default.contents(atPath: "events.jsonl") ?? Data()
    return String(decoding: bytes, as: UTF8.self).contains(#""name":"listening""#)
  }
#endif
