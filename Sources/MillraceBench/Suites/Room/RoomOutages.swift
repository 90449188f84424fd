#if RTC
  import CMillraceSys
  import MillraceCore

  /// What happens to a member, and which gaps the sound has meanwhile.
  enum RoomOutages {
    // MARK: A member that stalls

    private static let messageInterval = 0.05

    /// What others hear while a member reads neither its WebSocket nor its UDP, and before. Meanwhile messages are sent to everybody, so
    /// that there is something that it does not read.
    static func stall(_ stage: RoomStage, _ size: RoomSuite.Size) throws -> [Figure] {
      let room = try RoomStage.name("stall")
      let form = RoomGuest.Form(room: room, slots: max(1, size.members - 1))
      let guests = try stage.join([RoomGuest.Form](repeating: form, count: size.members))
      let idle = try stage.guest(RoomGuest.Form(room: room, speaks: false), isAlone: true)
      idle.join()
      try stage.waitUntilHeard(guests + [idle])
      try stage.settle(guests)
      let calm = try heard(guests, stage, size)
      idle.stall(seconds: size.stall)
      let stalled = try heard(guests, stage, size)
      try stage.leave(guests + [idle])
      let name = "\(stage.title), \(size.members) talk"
      return [
        RoomSuite.row("\(name), nobody stalls: longest gap", "ms", calm.longestMilliseconds),
        RoomSuite.row("\(name), nobody stalls: gaps beyond 60 ms", "", Double(calm.gaps)),
        RoomSuite.row("\(name), another stalls: longest gap", "ms", stalled.longestMilliseconds),
        RoomSuite.row("\(name), another stalls: gaps beyond 60 ms", "", Double(stalled.gaps), goal: "0"),
        RoomSuite.row("\(name), another stalls: packets lost", "", Double(stalled.lost)),
      ]
    }

    private static func heard(
      _ guests: [RoomGuest], _ stage: RoomStage, _ size: RoomSuite.Size
    ) throws -> [RoomEar.Heard] {
      let message = String(repeating: "m", count: size.message)
      for guest in guests { guest.ear.reset() }
      let end = seconds() + size.stall
      while seconds() < end {
        guests.first?.send(message)
        pause(messageInterval)
      }
      let heard = guests.map { $0.ear.heard }
      try stage.check(guests)
      return heard
    }

    // MARK: Another address

    /// Seconds before a member gets another address, and in which it is heard again.
    private static let steady = 1.0
    private static let recovery = 5.0

    /// Gaps when the way to a member ends and it restarts ICE over another one at once, as when its system reports another network: at the
    /// member, and at the other that hears it.
    static func moves(_ stage: RoomStage, _ size: RoomSuite.Size) throws -> [Figure] {
      let room = try RoomStage.name("move")
      let others = try stage.join([RoomGuest.Form(room: room)])
      var (own, theirs): ([Double], [Double]) = ([], [])
      for _ in 0..<size.moves {
        let links = try (0..<2).map { _ in try LossyLink(LossyNetwork(loss: 0, roundTrip: 0)) }
        defer { for link in links { link.stop() } }
        let guests = try stage.join([RoomGuest.Form(room: room, links: links)])
        try stage.waitUntilHeard(guests + others)
        pause(steady)
        for guest in guests + others { guest.ear.reset() }
        // Datagrams for a port 0 are dropped.
        links[0].set(callerAt: 0)
        links[0].set(calleeAt: 0)
        guests[0].move()
        pause(recovery)
        let now = millrace_monotonic_ns()
        own.append(guests.map { $0.ear.total(until: now) }.longestMilliseconds)
        theirs.append(others.map { $0.ear.total(until: now) }.longestMilliseconds)
        try stage.check(guests + others)
        try stage.leave(guests)
      }
      try stage.leave(others)
      func figure(_ what: String, _ samples: [Double]) -> Figure {
        Figure(
          RoomSuite.name, "another address, ICE restart: \(what)", unit: "ms", goal: "<= 1000",
          samples: samples)
      }
      return [figure("longest gap there", own), figure("longest gap at the other", theirs)]
    }
  }
#endif
