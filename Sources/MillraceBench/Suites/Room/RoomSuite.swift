#if RTC
  import MillraceRoomWire
#endif

/// The hub of open rooms, in a process of its own, and members of its rooms in this one: sessions of WebRTC over this machine's address,
/// each with a WebSocket. Members send sound that was encoded before, and decode nothing but the first sound of a join, so that they leave
/// the processor to the hub.
///
/// - Twenty rooms of four voices that talk all the time, mixed, for `MILLRACE_SECONDS` (20): the hub's processor; beside the same decodes
///   and encodes by libopus alone.
/// - A hundred listeners of one speaker, forwarded: the hub's processor for each; beside SRTP and `sendto` alone.
/// - The hub's memory over `MILLRACE_JOINS` (1,000) joins and leaves.
/// - From the connection of the WebSocket to the first decoded sound of another member.
/// - What the others notice of a member that reads neither its WebSocket nor its UDP.
/// - The gap of an ICE restart when a member gets another address.
enum RoomSuite {
  static let name = "room"
  /// Makes this program a hub for the suite: `forward 127.0.0.1`, its mode and its address for media.
  static let hubVariable = "MILLRACE_ROOM_HUB"

  /// How much is measured.
  struct Size: Sendable {
    var rooms = 20
    var voices = 4
    var listeners = 100
    /// Of the measurements with many members.
    var seconds = 20.0
    var joins = 1_000
    /// Joins before memory is measured.
    var warmUp = 100
    /// Joins to the first sound.
    var rounds = 30
    /// Members beside one that stalls, and for how many seconds it does.
    var members = 6
    var stall = 10.0
    /// Characters of the messages that it does not read, one every 50 ms.
    var message = 65_536
    /// Restarts of ICE.
    var moves = 5
  }

  /// - Throws: `MissingPiece` when this program was built without WebRTC.
  static func run() throws -> [Figure] {
    #if RTC
      if let setting = DialogueStage.text(hubVariable) {
        try RoomHubHost.serve(setting)
        return []
      }
      var size = Size()
      size.seconds = max(1, DialogueStage.setting("MILLRACE_SECONDS", default: size.seconds))
      size.joins = max(2, Int(DialogueStage.setting("MILLRACE_JOINS", default: Double(size.joins))))
      return try run(size, RoomHubProcess.Program.own)
    #else
      throw MissingPiece(text: "this program was built without the trait RTC")
    #endif
  }

  #if RTC
    /// - Parameter program: what is started as the hub.
    static func run(_ size: Size, _ program: RoomHubProcess.Program) throws -> [Figure] {
      let mixed = try RoomStage.with(.mix, program) { stage in
        try RoomCrowd.mixed(stage, size) + inEitherMode(stage, size)
      }
      let forwarded = try RoomStage.with(.forward, program) { stage in
        try RoomCrowd.forwarded(stage, size) + inEitherMode(stage, size)
      }
      let moved = try RoomStage.with(.forward, program, isLoopback: true) { stage in
        try RoomOutages.moves(stage, size)
      }
      return mixed + forwarded + moved
    }

    /// What is measured in either mode.
    private static func inEitherMode(_ stage: RoomStage, _ size: Size) throws -> [Figure] {
      try RoomJoins.start(stage, size) + RoomOutages.stall(stage, size) + RoomJoins.memory(stage, size)
    }

    /// A figure of one value.
    static func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure(name, what, unit: unit, goal: goal, samples: [value])
    }
  #endif
}
