#if RTC
  import MillraceCore
  import MillraceNet
  import MillraceRTC
  import MillraceRoomWire

  /// A hub, and what the members of its rooms need.
  final class RoomStage {
    static let loopback = "127.0.0.1"

    let mode: RoomMediaMode
    let hub: RoomHubProcess
    /// The packets of every member's voice.
    let packets: [[UInt8]]
    private let place: RoomGuest.Place
    private let lease: NetLoop.Lease
    private var loops: [RTCLoop]
    private var made = 0

    /// Members that join at the same time.
    private static let atOnce = 8
    /// Seconds in which everything that is waited for has happened.
    private static let patience = 60.0
    /// Seconds in which what has begun comes to rest.
    private static let settling = 2.0

    /// Starts a hub, and ends it after the body.
    /// - Parameter isLoopback: media goes over loopback, where links can be between; otherwise over this machine's address.
    static func with<Value>(
      _ mode: RoomMediaMode, _ program: RoomHubProcess.Program, isLoopback: Bool = false,
      _ body: (RoomStage) throws -> Value
    ) throws -> Value {
      let stage = try RoomStage(mode, program, isLoopback)
      defer { stage.end() }
      return try body(stage)
    }

    private init(_ mode: RoomMediaMode, _ program: RoomHubProcess.Program, _ isLoopback: Bool) throws {
      let address = isLoopback ? Self.loopback : LocalSocket.machineAddress ?? Self.loopback
      let packets = try RoomVoice.packets()
      let lease = try NetLoop.assign()
      let identity = try DTLSIdentity.process.get()
      let hub = try RoomHubProcess(mode, at: address, program)
      let loop = try RTCLoop(name: "members")
      place = RoomGuest.Place(
        hub: try WebAddress("ws://\(Self.loopback):\(hub.port)\(RoomWire.path)"), mode: mode,
        address: address, net: lease.loop, loop: loop,
        identity: identity, packets: packets)
      self.mode = mode
      self.packets = packets
      self.lease = lease
      self.hub = hub
      loops = [loop]
    }

    private func end() { for loop in loops { loop.stop() } }

    /// The beginning of the names of its figures.
    var title: String {
      switch mode {
      case .mix: "mixed"
      case .forward: "forwarded"
      }
    }

    // MARK: Members

    /// A name of a room or a user.
    static func name(_ text: String) throws -> RoomName {
      guard let name = RoomName(text) else { throw MeasurementProblem("\"\(text)\" is no name in a room") }
      return name
    }

    /// Makes a member that has not joined.
    /// - Parameter isAlone: it has a loop of its own.
    func guest(_ form: RoomGuest.Form, isAlone: Bool = false) throws -> RoomGuest {
      var place = self.place
      if isAlone {
        let loop = try RTCLoop(name: "member")
        loops.append(loop)
        place = RoomGuest.Place(
          hub: place.hub, mode: place.mode, address: place.address, net: place.net, loop: loop,
          identity: place.identity, packets: place.packets)
      }
      made += 1
      return try RoomGuest(try Self.name("guest-\(made)"), number: made, form, place)
    }

    /// Has members join, and waits until their sessions are connected.
    func join(_ forms: [RoomGuest.Form]) throws -> [RoomGuest] {
      var all: [RoomGuest] = []
      for start in stride(from: 0, to: forms.count, by: Self.atOnce) {
        let guests = try forms[start..<min(start + Self.atOnce, forms.count)].map { try guest($0) }
        for guest in guests { guest.join() }
        try wait(for: guests, "members are connected") { $0.isConnected }
        all += guests
      }
      return all
    }

    /// Waits until each of the members hears something.
    func waitUntilHeard(_ guests: [RoomGuest]) throws {
      try wait(for: guests, "members hear others") { $0.ear.heard.firstAt != nil }
    }

    /// Has members leave, and waits until they are gone.
    func leave(_ guests: [RoomGuest]) throws {
      for guest in guests { guest.leave() }
      try wait(for: guests, "members are gone", checks: false) { $0.isGone }
    }

    /// Waits for what has begun, and throws when a member is not well.
    func settle(_ guests: [RoomGuest] = []) throws {
      pause(Self.settling)
      try check(guests)
    }

    /// Throws when something went wrong with a member.
    func check(_ guests: [RoomGuest]) throws {
      for guest in guests {
        if let problem = guest.problem {
          throw MeasurementProblem("a member of a room (\(title)): \(problem)")
        }
      }
    }

    private func wait(
      for guests: [RoomGuest], _ what: String, checks: Bool = true, until isSo: (RoomGuest) -> Bool
    ) throws {
      let end = seconds() + Self.patience
      while let guest = guests.first(where: { !isSo($0) }) {
        if checks { try check([guest]) }
        guard seconds() < end else {
          throw MeasurementProblem("waited \(Int(Self.patience)) s in vain (\(title)): \(what)")
        }
        pause(0.001)
      }
    }
  }
#endif
