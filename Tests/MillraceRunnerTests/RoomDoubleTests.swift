#if RTC
  import Foundation
  import Glibc
  import MillraceCrypto
  import MillraceDoubles
  import MillraceNet
  import MillraceRoom
  import MillraceRoomWire
  import Testing

  @testable import MillraceRunner

  @Suite("The double room", .timeLimit(.minutes(30)))
  struct RoomDoubleTests {
    @Test("members join a hub of its own and write to each other, and the report says who comes and goes")
    func members() async throws {
      let rig = try await RoomDoubleRig.begin()
      let (ann, ben) = (try await rig.member("ann"), try await rig.member("ben"))
      #expect(try await ann.text(#""answer":2"#).contains(#""media":"forward""#))
      ann.send(#"{"id":3,"op":"message","payload":{"text":"hello"}}"#)
      _ = try await ben.text("hello")
      ann.close()
      _ = try await rig.line("# ann has left lobby")
      #expect(
        rig.lines.filter { $0.hasPrefix("#") } == [
          "# room lobby begins", "# ann has joined lobby as host", "# ben has joined lobby as host",
          "# ann has left lobby",
        ])
      #expect(rig.double.seen.connections == 2 && rig.double.seen.violationCount == 0)
      rig.double.stop()
      #expect(try await ben.closed().code == 1001)
    }

    @Test("its address is the page's, and its setting that of the wire; without a page both are the wire's")
    func addresses() async throws {
      let rig = try await RoomDoubleRig.begin()
      let port = rig.double.port
      let wire = DoubleSetting("url", "ws://127.0.0.1:\(port)/room")
      #expect(rig.double.address == "http://127.0.0.1:\(port)/" && rig.double.settings == [wire])
      rig.double.stop()
      let bare = try await RoomDoubleRig.begin(#"{ "page": false }"#)
      #expect(bare.double.address == bare.double.settings.first?.value)
      bare.double.stop()
    }

    @Test("connections of one address that say nothing leave room for others")
    func silent() async throws {
      let rig = try await RoomDoubleRig.begin()
      let address = try WebAddress("http://127.0.0.1:\(rig.double.port)/")
      func status() async throws -> Int {
        var request = HTTPClient.Request("GET", address)
        request.proxy = .direct
        return try await HTTPClient().run(request).status
      }
      #expect(try await status() == 200)
      var silent = try (0..<32).map { _ in try connection(to: rig.double.port) }
      #expect(try await status() == 503)
      close(silent.removeLast())
      while try await status() == 503 {}
      for descriptor in silent { close(descriptor) }
      rig.double.stop()
    }

    /// A TCP connection to a port of this machine.
    private func connection(to port: Int) throws -> Int32 {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      address.sin_port = UInt16(port).bigEndian
      let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      try #require(result == 0)
      return descriptor
    }

    @Test("with a certificate both addresses are those of TLS")
    func secure() async throws {
      let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
      let path = "/\(folder)/TestNet/Certificates/localhost"
      let rig = try await RoomDoubleRig.begin {
        $0.identity = NetIdentity(certificate: path + ".pem", key: path + ".key")
      }
      #expect(rig.double.address == "https://127.0.0.1:\(rig.double.port)/")
      #expect(rig.double.settings.first?.value == "wss://127.0.0.1:\(rig.double.port)/room")
      rig.double.stop()
    }

    @Test("the scenario sets the hub up: media, duplicates, limits, servers")
    func scenario() async throws {
      let rig = try await RoomDoubleRig.begin(
        #"""
        { "media": "none", "keepsFirst": true, "membersPerRoom": 1,
          "servers": [ { "url": "turn:turn.example.org:3478", "user": "u", "password": "p" } ] }
        """#)
      let ann = try await rig.member("ann")
      let joined = try await ann.text(#""answer":2"#)
      #expect(!joined.contains(#""media""#) && joined.contains("turn:turn.example.org:3478"))
      for (user, name) in [("ann", "duplicate"), ("ben", "roomFull")] {
        let client = try rig.client()
        client.send(#"{"id":1,"op":"login","payload":{"version":1,"user":"\#(user)"}}"#)
        client.send(#"{"id":2,"op":"join","payload":{"room":"lobby"}}"#)
        #expect(try await client.text(#""answer":2"#).contains(#""name":"\#(name)""#))
      }
      rig.double.stop()
    }

    @Test("pages of other origins are refused and reported, unless the scenario lists them")
    func origins() async throws {
      let origin = (name: "Origin", value: "https://app.example.org")
      let rig = try await RoomDoubleRig.begin()
      let foreign = try rig.client { $0.headers.append(origin) }
      #expect(try await foreign.closed().problem?.status == 403)
      _ = try await rig.line("- refused 1: 127.0.0.1:")
      rig.double.stop()
      let open = try await RoomDoubleRig.begin(#"{ "origins": ["https://app.example.org"] }"#)
      let listed = try open.client { $0.headers.append(origin) }
      try await listed.opened()
      open.double.stop()
    }

    @Test(
      "what a hub cannot be, or has no use for, is refused with its place and the cure",
      arguments: [
        (
          #"{ "media": "mixx" }"#,
          #"room.json:1:12: error: "media" must be one of forward, mix, none; did you mean "mix"?"#
        ),
        (
          #"{ "meda": "mix" }"#,
          #"room.json:1:3: error: unknown member "meda" in a scenario; did you mean "media"?"#
        ),
        (#"{ "key": "sesame" }"#, "set the environment variable MILLRACE_ROOM_KEY"),
        (
          #"{ "turns": [{ "says": "Hello." }] }"#,
          #"room.json:1:3: a hub has no use for "turns": nobody answers in a room until"#
        ),
        (#"{ "keys": ["sesame"] }"#, "set the environment variable MILLRACE_ROOM_KEY"),
        (#"{ "membersPerRoom": 151 }"#, #"1:21: error: "membersPerRoom" must be an integer from 1 to 150"#),
        (
          #"{ "messageBytesPerSecond": 10 }"#,
          "room.json: 10 bytes of messages a second are not possible; choose 1024 to 1000000000"
        ),
        (#"{ "ringingSeconds": 0 }"#, #""ringingSeconds" must be an integer from 1 to 1000000"#),
        (#"{ "servers": [ { "url": "http://stun" } ] }"#, #"a server needs a "url" that begins with stun:"#),
        (
          #"{ "servers": [ { "url": "turn:turn.example.org" } ] }"#,
          #"room.json:1:16: error: a TURN server needs a user and a password; set "user" and "password""#
        ),
        (#"{ "servers": [ { "url": "turns:a", "user": "u" } ] }"#, "needs a user and a password"),
        (
          #"{ "servers": [ { "url": "TURN:a", "user": "u", "password": "" } ] }"#,
          "needs a user and a password"
        ),
        (
          #"{ "servers": [ { "uri": "stun:a" } ] }"#,
          #"unknown member "uri" in a server; did you mean "url"?"#
        ),
        (#"{ "host": "0.0.0.0" }"#, "without a key the hub lets anybody in with all rights; set a key"),
        (#"{ "origins": ["app.example.org/"] }"#, "an origin must"),
      ])
    func wrong(scenario: String, text: String) async {
      let problem = await RoomDoubleRig.problem(scenario)
      #expect(problem?.contains(text) == true, "\(problem ?? "it starts")")
      #expect(problem?.contains("sesame") != true)
    }

    @Test("a hub in a program, as Documentation/room.md has it")
    func library() async throws {
      var settings = RoomServerSettings(port: 0)
      settings.hub = RoomHubSettings(key: SecretKey(utf8: "sesame"), media: .forward)
      settings.hub.servers = [RoomServer("stun:stun.example.org:3478")]
      settings.admission.hosts = ["hub.example.org"]
      let server = try await RoomHubServer.listen(
        settings,
        events: { event in
          if case .joined(let member, let room) = event { print("\(member.user) is in \(room)") }
        })
      #expect(server.port > 0 && server.counts.members == 0)
      await server.stop()
    }

    @Test("the command lists it, prints where page and wire are, and writes a report")
    func command() async {
      let list = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
        runner("double")
      }
      #expect(output(of: list).contains("\nroom       a hub of rooms, for browsers, programs and rtc.room\n"))
      let run = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
        makeRunnerFolder()
        Thread.detachNewThread {
          // When the file is there, the runner counts signals already.
          while access("seen.json", F_OK) != 0 { usleep(10_000) }
          kill(getpid(), SIGINT)
        }
        let status = MillraceCommand.run(
          catalogue: .runnerTests, name: "counter",
          arguments: ["double", "room", "--port", "0", "--report", "seen.json"])
        printFile("seen.json")
        exit(status.rawValue)
      }
      let text = output(of: run)
      #expect(text.contains("http://127.0.0.1:") && text.contains("\nurl=ws://127.0.0.1:"), "\(text)")
      #expect(text.contains(#""violationCount":0"#), "\(text)")
    }
  }

  @Suite("Tokens of rooms", .timeLimit(.minutes(30)))
  struct RoomTokenCommandTests {
    private static let key = "sesame, open"

    /// What `token room` prints.
    private func printed(_ result: ExitTest.Result?) throws -> RoomToken {
      let line = output(of: result).split(separator: "\n").first { $0.hasPrefix("eyJ") }
      let text = String(try #require(line))
      return try RoomToken(text, key: SecretKey(utf8: Self.key), unixMilliseconds: 0)
    }

    @Test(
      "a token is signed with the key of the environment, and has an hour, every room and no rights but to publish"
    )
    func standard() async throws {
      let before = Int(Date().timeIntervalSince1970)
      let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
        setenv("MILLRACE_ROOM_KEY", Self.key, 1)
        runner("token", "room", "--user", "ann")
      }
      let after = Int(Date().timeIntervalSince1970)
      let token = try printed(result)
      #expect(token.user.rawValue == "ann")
      #expect(token.room == nil && token.role == nil && token.rights == nil && token.once == nil)
      #expect(token.expiry >= before + 3_600 && token.expiry <= after + 3_600)
    }

    @Test("the options are its claims, and --once differs each time")
    func claims() async throws {
      let before = Int(Date().timeIntervalSince1970)
      let first = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
        setenv("MILLRACE_ROOM_KEY", Self.key, 1)
        runner(
          "token", "room", "--user", "ann", "--room", "r1", "--role", "host", "--rights", "publish,kick",
          "--valid", "2h", "--once")
      }
      let second = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
        setenv("MILLRACE_ROOM_KEY", Self.key, 1)
        runner("token", "room", "--user", "ann", "--role", "viewer", "--valid", "7200", "--once")
      }
      let (host, viewer) = (try printed(first), try printed(second))
      #expect(host.room?.rawValue == "r1" && host.role == .host && host.rights == [.publish, .kick])
      #expect(viewer.role == .viewer && viewer.rights == nil)
      #expect(host.expiry >= before + 7_200 && viewer.expiry >= before + 7_200)
      #expect(host.once != nil && viewer.once != nil && host.once != viewer.once)
    }

    @Test("without a key, or with an empty one, it is said how to set one")
    func keys() async {
      let none = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        unsetenv("MILLRACE_ROOM_KEY")
        runner("token", "room", "--user", "ann")
      }
      #expect(
        errors(of: none).contains(
          "error: there is no key to sign with; set MILLRACE_ROOM_KEY to that of the hub, for example with: export"
        ))
      let empty = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        setenv("MILLRACE_ROOM_KEY", "", 1)
        runner("token", "room", "--user", "ann")
      }
      #expect(errors(of: empty).contains("error: MILLRACE_ROOM_KEY is empty; unset it, or set the hub's key"))
      let double = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        setenv("MILLRACE_ROOM_KEY", "", 1)
        runner("double", "room", "--port", "0")
      }
      #expect(errors(of: double).contains("error: MILLRACE_ROOM_KEY is empty"))
    }

    /// Arguments, separated by bars, and what is wrong with them.
    private static let mistakes: [(line: String, text: String)] = [
      (
        "--user|Ann Lee", #"--user "Ann Lee" is not a name; use 1 to 64 letters from A to Z, digits, - and _"#
      ),
      ("--user|ann|--room|", #"--room "" is not a name"#),
      ("--user|ann|--role|hostt", #"--role "hostt" does not exist; did you mean "host"?"#),
      ("--user|ann|--rights|publish,", #"--rights "" does not exist; choose publish, kick, close"#),
      ("--user|ann|--role|viewer|--rights|publish", "a viewer never publishes; remove publish"),
      ("--user|ann|--valid|253402300799", "--valid ends after the year 9999; choose a shorter time"),
      ("--user|ann|--valid|0", #"--valid "0" is no time of a second or more; write seconds, such as 3600"#),
      ("--user|ann|--valid|500ms", #"--valid "500ms" is no time of a second or more"#),
      ("--user|ann|--valid|2000h", "or up to 1000000s with a unit, such as 90min or 12h"),
      ("--once", "--user"),
    ]

    @Test("wrong arguments are refused with the cure", arguments: mistakes)
    func wrong(line: String, text: String) async {
      let result = await #expect(
        processExitsWith: .exitCode(2), observing: [\.standardErrorContent, \.standardOutputContent]
      ) { [line = line as String] in
        setenv("MILLRACE_ROOM_KEY", Self.key, 1)
        let words = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        MillraceCommand.main(catalogue: .runnerTests, name: "counter", arguments: ["token", "room"] + words)
      }
      #expect(errors(of: result).contains(text), "\(errors(of: result))")
      #expect(!output(of: result).contains("eyJ") && !errors(of: result).contains(Self.key))
    }

    @Test("a hub with a key lets in by such a token only, says so, and may listen for other machines")
    func admission() async {
      await #expect(processExitsWith: .exitCode(0)) {
        setenv("MILLRACE_ROOM_KEY", Self.key, 1)
        let rig = try await RoomDoubleRig.begin(#"{ "host": "0.0.0.0", "plain": true }"#)
        let token = RoomToken(try #require(RoomName("ann")), expiry: RoomToken.lastExpiry)
        _ = try await rig.member("ann", token: token.signed(with: SecretKey(utf8: Self.key)))
        let stranger = try rig.client()
        stranger.send(#"{"id":1,"op":"login","payload":{"version":1,"user":"eve"}}"#)
        let answer = try await stranger.text(#""answer":1"#)
        let hint = rig.lines.contains("# tokens let in; to make one: millrace token room")
        let place = rig.double.address.hasPrefix("http://localhost:")
        rig.double.stop()
        exit(answer.contains("badToken") && hint && place ? 0 : 1)
      }
    }
  }
#endif
