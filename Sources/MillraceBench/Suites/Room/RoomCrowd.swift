#if RTC
  /// Many members at once: what they cost the hub, beside the libraries alone.
  enum RoomCrowd {
    /// What a hub has needed, and what its members have heard.
    private struct Load {
      /// Percent of a core.
      let share: Double
      let heard: [RoomEar.Heard]
    }

    /// Rooms in which everybody talks all the time, and hears a mix of the others.
    static func mixed(_ stage: RoomStage, _ size: RoomSuite.Size) throws -> [Figure] {
      let forms = try (0..<size.rooms).flatMap { number -> [RoomGuest.Form] in
        let form = RoomGuest.Form(room: try RoomStage.name("crowd-\(number)"))
        return [RoomGuest.Form](repeating: form, count: size.voices)
      }
      let guests = try stage.join(forms)
      let load = try load(stage, guests, hearing: guests, size.seconds)
      try stage.leave(guests)
      let name = "\(size.rooms) rooms of \(size.voices) voices mixed, \(Int(size.seconds)) s"
      let streams = Double(guests.count)
      let floor = Figure(
        RoomSuite.name, "\(guests.count) voices decoded and encoded", of: "floor", unit: "% of a core",
        samples: try RoomVoice.shares().map { $0 * streams })
      return [
        RoomSuite.row("\(name): the hub's processor", "% of a core", load.share, goal: "<= 100"), floor,
      ] + heard(name, load)
    }

    /// One speaker, and listeners to whom its packets are forwarded.
    static func forwarded(_ stage: RoomStage, _ size: RoomSuite.Size) throws -> [Figure] {
      let room = try RoomStage.name("hall")
      let speaker = try stage.join([RoomGuest.Form(room: room, hears: false)])
      let form = RoomGuest.Form(room: room, speaks: false)
      let listeners = try stage.join([RoomGuest.Form](repeating: form, count: size.listeners))
      let load = try load(stage, speaker + listeners, hearing: listeners, size.seconds)
      try stage.leave(speaker + listeners)
      let name = "\(size.listeners) listeners of one speaker, \(Int(size.seconds)) s"
      let floor = Figure(
        RoomSuite.name, "a voice protected and sent, for each listener", of: "floor", unit: "% of a core",
        samples: try RoomPacketCost.shares(stage.packets))
      return [
        RoomSuite.row(
          "\(name): the hub's processor, each", "% of a core", load.share / Double(size.listeners),
          goal: "<= 0.5"), floor,
      ] + heard(name, load)
    }

    private static func load(
      _ stage: RoomStage, _ guests: [RoomGuest], hearing: [RoomGuest], _ length: Double
    ) throws -> Load {
      try stage.waitUntilHeard(hearing)
      try stage.settle(guests)
      for guest in hearing { guest.ear.reset() }
      let (work, time) = (try stage.hub.work(), seconds())
      pause(length)
      let share = 100 * (try stage.hub.work() - work) / (seconds() - time)
      let heard = hearing.map { $0.ear.heard }
      try stage.check(guests)
      return Load(share: share, heard: heard)
    }

    private static func heard(_ name: String, _ load: Load) -> [Figure] {
      [
        RoomSuite.row("\(name): packets heard", "", Double(load.heard.packets)),
        RoomSuite.row("\(name): packets lost", "", Double(load.heard.lost)),
        RoomSuite.row("\(name): longest gap", "ms", load.heard.longestMilliseconds),
      ]
    }
  }
#endif
