#if RTC
  import Glibc
  import MillraceCore
  import MillraceRTCWire
  import MillraceRoomWire
  import Testing

  @testable import MillraceBench
  @testable import MillraceRTC

  @Suite("Rooms, measured", .serialized, .timeLimit(.minutes(30)))
  struct RoomTests {
    private static let program = RoomHubProcess.Program(
      path: DoubleProcessTests.millrace, arguments: ["bench", RoomSuite.name])

    private static var small: RoomSuite.Size {
      var size = RoomSuite.Size()
      (size.rooms, size.voices, size.listeners) = (2, 2, 3)
      (size.seconds, size.stall) = (1, 1)
      (size.joins, size.warmUp, size.rounds, size.moves) = (4, 2, 2, 1)
      (size.members, size.message) = (2, 1_000)
      return size
    }

    @Test("a small run has a value for every row, and its members hear each other")
    func rows() throws {
      let figures = try RoomSuite.run(Self.small, Self.program)
      for figure in figures {
        #expect(figure.suite == "room" && figure.skipReason.isEmpty)
        #expect(figure.runs > 0 && figure.value.isFinite, "\(figure.name)")
      }
      let goals = figures.filter { !$0.goal.isEmpty }.map(\.goal)
      let both = ["<= 300", "0", "flat"]
      #expect(goals == ["<= 100"] + both + ["<= 0.5"] + both + ["<= 1000", "<= 1000"])
      #expect(figures.count { $0.of == "floor" && $0.value > 0 } == 2)
      let heard = figures.filter { $0.name.hasSuffix("packets heard") }
      #expect(heard.count == 2 && heard.allSatisfy { $0.value > 0 })
      #expect(Set(figures.map(\.name)).count == figures.count)
    }

    @Test("a program that is no hub is a failed measurement")
    func noHub() throws {
      let program = RoomHubProcess.Program(path: "/bin/true", arguments: [])
      let problem = #expect(throws: MeasurementProblem.self) {
        _ = try RoomHubProcess(.forward, at: "127.0.0.1", program)
      }
      #expect(
        problem?.description == "the hub has ended, or does not answer; is this program millrace?")
    }

    @Test("the hub says what it has used, and ends with the measurement")
    func hub() throws {
      var id: pid_t = 0
      do {
        let hub = try RoomHubProcess(.forward, at: "127.0.0.1", Self.program)
        #expect(hub.port > 0)
        let work = try hub.work()
        #expect(work > 0)
        #expect(try hub.work() >= work)
        #expect(try hub.memory() > 1_000)
        id = hub.id
      }
      #expect(id > 0 && kill(id, 0) == -1)
    }

    // MARK: What is heard

    private func sound(
      _ sequence: Int64, _ timestamp: Int64, atMilliseconds arrival: Int64, medium: Int = 0,
      restarts: Bool = false
    ) -> ReceivedSound {
      ReceivedSound(
        ssrc: 1, codec: .opus, sequence: sequence, timestamp: timestamp, arrival: .milliseconds(arrival),
        capture: 0, payloadType: 111, marker: false, restarts: restarts, level: nil, medium: medium)
    }

    @Test("a gap is what timestamps do not explain, or what is lost; media are judged by themselves")
    func gaps() {
      let ear = RoomEar()
      ear.take(sound(5, 960, atMilliseconds: 1_000), isSound: false)
      #expect(ear.heard.firstAt == nil)
      ear.take(sound(6, 1_920, atMilliseconds: 1_020), isSound: true)
      #expect(ear.heard.firstAt == Nanoseconds.milliseconds(1_020))
      // Silence of 500 ms, which its sender did not send.
      ear.take(sound(7, 1_920 + 960 + 24_000, atMilliseconds: 1_540), isSound: true)
      #expect(ear.heard.longest == Nanoseconds.milliseconds(20) && ear.heard.gaps == 0)
      // Four packets are lost.
      ear.take(sound(12, 31_680, atMilliseconds: 1_640), isSound: true)
      #expect(ear.heard.lost == 4 && ear.heard.gaps == 1)
      #expect(ear.heard.longest == Nanoseconds.milliseconds(100))
      // Comes late, and is no packet of the present.
      ear.take(sound(11, 30_720, atMilliseconds: 1_641), isSound: true)
      ear.take(sound(1, 0, atMilliseconds: 3_000, medium: 1), isSound: true)
      #expect(ear.heard.gaps == 1 && ear.heard.packets == 6)
      ear.take(sound(100, 0, atMilliseconds: 3_640, restarts: true), isSound: true)
      #expect(ear.heard.longest == Nanoseconds.milliseconds(2_000) && ear.heard.lost == 4)
    }

    @Test("a gap that has not ended counts, and a new measurement forgets those before it")
    func open() {
      let ear = RoomEar()
      ear.take(sound(1, 0, atMilliseconds: 100), isSound: true)
      #expect(ear.total(until: .milliseconds(130)).gaps == 0)
      let total = ear.total(until: .milliseconds(1_100))
      #expect(total.gaps == 1 && total.longest == Nanoseconds.milliseconds(1_000))
      #expect(ear.heard.gaps == 0)
      ear.take(sound(2, 960, atMilliseconds: 1_100), isSound: true)
      #expect(ear.heard.gaps == 1)
      ear.reset()
      #expect(ear.heard.gaps == 0 && ear.heard.packets == 0)
      #expect(ear.heard.firstAt == Nanoseconds.milliseconds(100))
      ear.take(sound(3, 1_920, atMilliseconds: 1_120), isSound: true)
      #expect(ear.heard.longest == Nanoseconds.milliseconds(20))
    }

    @Test("every packet of the voice can be decoded and has sound")
    func voice() throws {
      let packets = try RoomVoice.packets()
      #expect(packets.count == 120)
      let opus = try RoomOpus()
      for packet in packets {
        let peak = opus.peak(of: packet.span)
        #expect(peak > 0.001)
      }
    }
  }
#endif
