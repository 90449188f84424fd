public import MillraceCrypto
public import MillraceRoomWire

/// Whom a hub lets in, how it distributes media, and its limits.
public struct RoomHubSettings: Sendable {
  /// Signs tokens. Nil: anybody gets in, as a host with all rights; then the hub may listen on loopback only.
  public var key: SecretKey?
  /// How media are distributed; nil: this hub only carries messages.
  public var media: RoomMediaMode?
  /// STUN and TURN servers that members are told, with their passwords.
  public var servers: [RoomServer] = []
  /// A user who is in a room already: true keeps the first presence (`duplicate`), false replaces it.
  public var keepsFirst = false

  /// The most members of a room: up to 150, so that the list of them fits into a message.
  public var membersPerRoom = 100
  /// The most rooms at once.
  public var rooms = 1_000
  /// The most connections at once.
  public var connections = 100_000
  /// The most connections of one address at once.
  public var connectionsPerAddress = 100
  /// The most joins of one address within a second, and, counted by themselves, the most offers to the hub.
  public var joinsPerSecond = 20
  /// The most requests of one connection within a second. What it sends beyond twice as many is not even read for a while.
  public var requestsPerSecond = 200
  /// The most bytes a second that one member sends to others, where each message counts 256 more. At once it may be a whole message. One
  /// member gets up to twice as much that is for it alone, and a room four times as much that is for all.
  public var messageBytesPerSecond = 32_768
  /// The most values `once` of tokens that are remembered. While there is no room, tokens with such a value are not let in.
  public var onceValues = 100_000

  /// How long before its token ends a member is told.
  public var warningSeconds = 30
  /// How long an offer may wait for its answer.
  public var offerSeconds = 10
  /// How long a call rings.
  public var ringingSeconds = 60

  /// Limits of the files that members share.
  package var files = RoomFileLimits()
  /// Users that are part of the program of this hub, with the keys that sign their tokens. Nobody gets in as one of them by another token,
  /// or without one, and nobody removes them from a room.
  package var reserved: [RoomName: SecretKey] = [:]

  /// Creates settings.
  public init(key: SecretKey? = nil, media: RoomMediaMode? = .mix) {
    self.key = key
    self.media = media
  }

  // MARK: Checks

  private static let mostMembers = 150
  private static let mostServers = 16
  private static let serverBytes = 256
  /// A day: as a limit of times, and far more than any of them needs.
  private static let mostSeconds = 86_400
  private static let mostCount = 1_000_000
  private static let byteRates = 1_024...1_000_000_000

  /// What is wrong with the settings, and the cure; nil: nothing.
  public var problem: String? {
    if key?.byteCount == 0 { return "the key of the hub is empty; set one, or none" }
    if !(1...Self.mostMembers).contains(membersPerRoom) {
      return "a room cannot have \(membersPerRoom) members; choose 1 to \(Self.mostMembers)"
    }
    for (name, count) in counts where !(1...Self.mostCount).contains(count) {
      return "\(count) \(name) are not possible; choose 1 to \(Self.mostCount)"
    }
    if !Self.byteRates.contains(messageBytesPerSecond) {
      let range = "\(Self.byteRates.lowerBound) to \(Self.byteRates.upperBound)"
      return "\(messageBytesPerSecond) bytes of messages a second are not possible; choose \(range)"
    }
    for (name, seconds) in times where !(1...Self.mostSeconds).contains(seconds) {
      return "\(seconds) s are not possible for \(name); choose 1 to \(Self.mostSeconds)"
    }
    return serverProblem
  }

  private var counts: [(String, Int)] {
    [
      ("rooms", rooms), ("connections", connections), ("connections of an address", connectionsPerAddress),
      ("joins a second", joinsPerSecond), ("requests a second", requestsPerSecond),
      ("remembered tokens", onceValues),
    ]
  }

  private var times: [(String, Int)] {
    [
      ("the warning before a token ends", warningSeconds), ("the answer to an offer", offerSeconds),
      ("the ringing of a call", ringingSeconds),
    ]
  }

  private var serverProblem: String? {
    if servers.count > Self.mostServers {
      return "\(servers.count) STUN and TURN servers are too many; name up to \(Self.mostServers)"
    }
    let isLong = servers.contains { server in
      [server.url, server.user ?? "", server.password ?? ""].contains { $0.utf8.count > Self.serverBytes }
    }
    guard isLong else { return nil }
    return "a text of a STUN or TURN server is longer than \(Self.serverBytes) bytes; use a shorter one"
  }
}

extension RoomHubSettings: CustomStringConvertible {
  /// The size of the hub; its servers have passwords.
  public var description: String {
    let mode = media.map { "media \($0.rawValue)" } ?? "no media"
    return "\(mode), \(key == nil ? "no key" : "a key"), up to \(rooms) rooms of \(membersPerRoom) members"
  }
}
