#if RTC
  internal import MillraceConformance
  internal import MillraceCrypto
  internal import MillraceDialog
  internal import MillraceDoubles
  internal import MillraceGraph

  /// A hub of rooms for runners: `millrace double room`, and `service.double` in a graph. It is a hub as any other, with a scenario that
  /// sets it up and may disturb its clients.
  enum RoomProgram: ServiceProgram {
    static let name = "room"
    static let summary = "a hub of rooms, for browsers, programs and rtc.room"
    /// None: a graph with `rtc.room` often is the hub itself, and its dialogue is with another service.
    static let nodeTypes: [String] = []

    /// What may happen to a client once. `connecting`: its connection is open; `listening`: it has joined a room.
    private static let faults: [ServiceFault.Kind: Set<ServiceFault.Place>] = [
      .drop: [.connecting, .listening], .stall: [.connecting, .listening],
      .malformed: [.connecting, .listening], .unknown: [.connecting, .listening],
      .oversized: [.connecting, .listening], .kick: [.listening],
    ]

    /// Members of every scenario that mean nothing to a hub, and what to do instead of each.
    private static let foreign = [
      "turns": "nobody answers in a room until somebody joins it; remove it",
      "voice": "a hub does not speak; remove it",
      "numbered": "a hub does not speak; remove it",
      "speed": "a hub passes sound on as it comes; remove it",
      "chunk": "a hub passes sound on as it comes; remove it",
      "checksPlayback": "a hub is not informed of what was played; remove it",
      "delay": "a hub answers at once; remove it",
      "keys": "tokens let in here; remove it, and set the environment variable \(RoomKey.variable)",
    ]

    static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
      var name: String?
      if case .text(let text, let file) = options.scenario {
        try check(text, file)
        name = file
      }
      let scenario: RoomDouble.Server.Scenario = try options.load(faults: faults, kickReasons: [.ended])
      let key: SecretKey?
      do throws(RoomKey.Problem) { key = try RoomKey.read() } catch { throw .other(error.description) }
      return try await RoomDouble.listen(scenario, named: name, options, key: key)
    }

    /// Refuses what would have no effect. What is wrong otherwise is found when the scenario is loaded.
    private static func check(_ text: String, _ name: String) throws(DoubleProblem) {
      guard let document = try? JSONDocument.scan(SourceFile(name: name, text: text)) else { return }
      for member in document.root.object?.members ?? [] {
        guard let cure = foreign[member.key] else { continue }
        let place = document.source.position(of: member.keyRange.lowerBound)
        throw .other("\(name):\(place): a hub has no use for \"\(member.key)\": \(cure)")
      }
    }
  }
#endif
