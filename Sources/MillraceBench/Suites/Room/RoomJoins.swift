#if RTC
  /// Members that come and go.
  enum RoomJoins {
    /// Members that come and go together.
    private static let together = 4
    private static let between = 0.05

    // MARK: The first sound

    /// From the connection of the WebSocket to the first decoded sound of another member, one member after the other.
    static func start(_ stage: RoomStage, _ size: RoomSuite.Size) throws -> [Figure] {
      let room = try RoomStage.name("door")
      let speaker = try stage.join([RoomGuest.Form(room: room, hears: false)])
      try stage.settle(speaker)
      var times: [Double] = []
      for _ in 0..<size.rounds {
        let guest = try stage.guest(RoomGuest.Form(room: room, decodes: true))
        guest.join()
        try stage.waitUntilHeard([guest])
        if let delay = guest.delay { times.append(delay) }
        try stage.leave([guest])
        pause(between)
      }
      try stage.check(speaker)
      try stage.leave(speaker)
      let name = "\(stage.title): from joining to the first sound"
      return [Figure(RoomSuite.name, name, unit: "ms", goal: "<= 300", samples: times)]
    }

    // MARK: Memory

    /// What the hub's memory grows by while members join, talk and leave.
    static func memory(_ stage: RoomStage, _ size: RoomSuite.Size) throws -> [Figure] {
      try joinAndLeave(size.warmUp, stage)
      let before = try stage.hub.memory()
      try joinAndLeave(size.joins / 2, stage)
      let middle = try stage.hub.memory()
      try joinAndLeave(size.joins - size.joins / 2, stage)
      let after = try stage.hub.memory()
      let name = "\(stage.title), \(size.joins) joins and leaves: the hub's memory"
      return [
        RoomSuite.row("\(name) before", "KB", before),
        RoomSuite.row("\(name), growth", "KB", after - before),
        RoomSuite.row("\(name), growth in the second half", "KB", after - middle, goal: "flat"),
      ]
    }

    /// Has members come and go in a room that begins and ends with them.
    private static func joinAndLeave(_ count: Int, _ stage: RoomStage) throws {
      let form = RoomGuest.Form(room: try RoomStage.name("passage"), slots: together - 1)
      var rest = count
      while rest > 0 {
        // One alone hears nobody.
        let number = max(2, min(together, rest))
        let guests = try stage.join([RoomGuest.Form](repeating: form, count: number))
        try stage.waitUntilHeard(guests)
        try stage.leave(guests)
        rest -= number
      }
      try stage.settle()
    }
  }
#endif
