#if RTC
  internal import MillraceCrypto
  internal import MillraceDoubles
  internal import MillraceGraph
  internal import MillraceRoom
  internal import MillraceRoomWire

  /// What a scenario of the double `room` says about its hub: Documentation/doubles.md, section "The hub of rooms".
  struct RoomMembers: ScenarioMembers {
    /// How the hub distributes media; `none`: it only carries messages.
    enum Media: String, Sendable, CaseIterable { case forward, mix, none }

    /// The numbers of `RoomHubSettings`, by their names there. What else is possible is for that to say.
    private static let limits = [
      "membersPerRoom", "rooms", "connections", "connectionsPerAddress", "joinsPerSecond",
      "requestsPerSecond", "messageBytesPerSecond", "onceValues", "warningSeconds", "offerSeconds",
      "ringingSeconds",
    ]
    private static let mostOfLimit = 1_000_000
    private static let mostOf = ["membersPerRoom": 150, "messageBytesPerSecond": 1_000_000_000]

    static let names =
      ["media", "keepsFirst", "page", "servers", "host", "origins", "hosts", "plain"] + limits

    var media = Media.forward
    var keepsFirst = false
    var page = true
    /// STUN and TURN servers that members are given.
    var servers: [RoomServer] = []
    var host = "127.0.0.1"
    /// Origins of pages that may connect besides the hub's own.
    var origins: [String] = []
    /// Host names by which clients may address the hub.
    var hosts: [String] = []
    /// Other machines may reach it without TLS.
    var plain = false
    /// Those that a file sets.
    private var numbers: [String: Int] = [:]

    init() {}

    // MARK: Reading

    mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
      switch member.key {
      case "media": media = try reader.word(member)
      case "keepsFirst": keepsFirst = try reader.bool(member)
      case "page": page = try reader.bool(member)
      case "servers":
        servers = []
        for server in try reader.list(member) { servers.append(try Self.server(server, reader)) }
      case "host": host = try reader.text(member)
      case "origins": origins = try Self.texts(member, reader)
      case "hosts": hosts = try Self.texts(member, reader)
      case "plain": plain = try reader.bool(member)
      case "key", "hubKey":
        throw reader.problem(
          member.value, "the key of a hub is a secret, and does not belong in a file",
          hint: "remove it, and set the environment variable \(RoomKey.variable)")
      case let name where Self.limits.contains(name):
        numbers[name] = try reader.integer(member, 1...(Self.mostOf[name] ?? Self.mostOfLimit))
      default: return false
      }
      return true
    }

    private static func texts(
      _ member: JSONMember, _ reader: ScenarioReader
    ) throws(ScenarioProblem) -> [String] {
      var texts: [String] = []
      for node in try reader.list(member) {
        texts.append(try reader.text(node, "an entry of \"\(member.key)\""))
      }
      return texts
    }

    private static func server(
      _ node: JSONNode, _ reader: ScenarioReader
    ) throws(ScenarioProblem) -> RoomServer {
      var server = RoomServer("")
      for member in try reader.members(node, of: "a server") {
        switch member.key {
        case "url": server.url = try reader.text(member)
        case "user": server.user = try reader.text(member)
        case "password": server.password = try reader.text(member)
        default: throw reader.unknown(member, of: "a server", ["url", "user", "password"])
        }
      }
      let url = server.url.lowercased()
      guard ["stun:", "turn:", "turns:"].contains(where: { url.hasPrefix($0) }) else {
        throw reader.problem(
          node, "a server needs a \"url\" that begins with stun:, turn: or turns:",
          hint: "for example \"stun:stun.example.org:3478\"")
      }
      // Browsers make no connection at all with a server that they cannot log in to.
      let hasAccount = ![server.user, server.password].contains { ($0 ?? "").isEmpty }
      guard hasAccount || url.hasPrefix("stun:") else {
        throw reader.problem(
          node, "a TURN server needs a user and a password", hint: "set \"user\" and \"password\"")
      }
      return server
    }

    // MARK: The hub

    /// The hub that the scenario describes.
    func hub(key: SecretKey?) -> RoomHubSettings {
      var hub = RoomHubSettings(key: key, media: RoomMediaMode(rawValue: media.rawValue))
      hub.keepsFirst = keepsFirst
      hub.servers = servers
      for (name, number) in numbers {
        switch name {
        case "membersPerRoom": hub.membersPerRoom = number
        case "rooms": hub.rooms = number
        case "connections": hub.connections = number
        case "connectionsPerAddress": hub.connectionsPerAddress = number
        case "joinsPerSecond": hub.joinsPerSecond = number
        case "requestsPerSecond": hub.requestsPerSecond = number
        case "messageBytesPerSecond": hub.messageBytesPerSecond = number
        case "onceValues": hub.onceValues = number
        case "warningSeconds": hub.warningSeconds = number
        case "offerSeconds": hub.offerSeconds = number
        case "ringingSeconds": hub.ringingSeconds = number
        default: preconditionFailure("\(name) is no limit of a hub")
        }
      }
      return hub
    }
  }
#endif
