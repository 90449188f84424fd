internal import Glibc
public import MillraceNet
internal import MillraceRoomWire

/// Where a hub listens, whom it lets in, and how much it takes.
public struct RoomServerSettings: Sendable {
  /// The address to listen on; by default this machine's own, which no other machine can reach.
  public var host = "127.0.0.1"
  /// 0: the system chooses a free one.
  public var port: Int
  /// The certificate for TLS; nil: plaintext, which beyond this machine `admission` must allow. Browsers give pages from elsewhere
  /// microphone and camera over TLS only.
  public var identity: NetIdentity?
  /// Whose pages may connect besides the server's own, and by which host names. Its limit of connections is raised to what the hub allows,
  /// but to no more than three quarters of the descriptors that this process may have. A page of another port needs an entry in `origins`.
  public var admission = ServerAdmission()
  /// Tokens, media and limits; by default no key, and only messages. The limits per address count the other end of the connection: behind a
  /// proxy that is the proxy, and they have to be as large as those of the whole hub.
  public var hub = RoomHubSettings(media: nil)
  /// Serves the page for browsers at `/`.
  public var hasPage = true
  /// Bytes that may wait to be sent to a member, where each message counts 256 more: 262,144 to 1,073,741,824. One that takes its messages
  /// too slowly is dropped, and the others notice nothing of it.
  public var backlog = 524_288

  /// How sound and pictures are carried where the hub forwards them.
  package var forwarding = RoomForwardingSettings()
  /// How sound is mixed where the hub mixes it.
  package var mixing = RoomMixSettings()
  /// Makes what carries sound and pictures in place of what `hub.media` says, once for each server.
  package var makeMedia: (@Sendable () throws -> any RoomMedia)?
  /// Sees what goes over the connections, and may disturb it; nil: nobody does.
  package var watch: (any RoomServerWatch)?
  /// Limits of each WebSocket, as Documentation/room.md says; `backlog` is set when the server begins.
  package var socket = RoomServerSettings.wireLimits

  /// Creates settings.
  public init(port: Int) { self.port = port }

  private static var wireLimits: WebSocketLimits {
    var limits = WebSocketLimits()
    limits.message = RoomLimits.messageBytes
    limits.ping = RoomLimits.pingSeconds * 1_000
    // What was not heard since a ping is gone so long after it, and the ping came so soon after what was heard last.
    limits.pong = (RoomLimits.silenceSeconds - RoomLimits.pingSeconds) * 1_000
    return limits
  }

  // MARK: Checks

  /// Two of the largest messages: with less, a member would be dropped that is only a little slow.
  private static let leastBacklog = 2 * RoomLimits.messageBytes
  /// A gigabyte: more than one member can need.
  private static let mostBacklog = 1 << 30

  /// What is wrong with the settings, and the cure; nil: nothing. Does not read the certificate.
  public var problem: NetError? {
    if let problem = hub.problem { return NetError(.address, problem) }
    guard (Self.leastBacklog...Self.mostBacklog).contains(backlog) else {
      let range = "\(Self.leastBacklog) to \(Self.mostBacklog)"
      return NetError(.address, "a backlog of \(backlog) bytes is not possible; choose \(range)")
    }
    if hub.key == nil, !isLocal {
      return NetError(
        .address,
        """
        other machines could reach "\(host)", and without a key the hub lets anybody in with all rights; \
        set a key, or listen on 127.0.0.1
        """)
    }
    return admission.problem(listeningAt: host, hasTLS: identity != nil)
  }

  private var isLocal: Bool {
    let host = host.lowercased()
    guard let address = try? WebAddress("http://" + host) else { return host == "::1" }
    // Nothing but the host: what follows it would go to the resolver, which may find another machine.
    return address.host == host && address.isLoopback
  }

  /// The address that it listens on: `localhost` is this machine, whatever the system's resolver says.
  var boundHost: String { host.lowercased() == "localhost" ? "127.0.0.1" : host }

  // MARK: Of the server

  /// Connections that only load the page; others wait for a moment.
  static let pageConnections = 128
  /// Bytes of a file that may wait to be sent to one that reads it.
  private static let fileBacklog = 262_144
  /// Nobody has anything to send in the body of a request, except a file.
  private static let mostBody = 1_024

  /// The admission rules with room for the hub's connections, which the hub counts itself: it closes those that are too many with a code.
  var rules: ServerAdmission { rules(within: Self.descriptors) }

  /// - Parameter descriptors: how many this process may have. A quarter is for media and all else: without one, connections would wait
  ///   without an answer. Nil: any number.
  func rules(within descriptors: Int?) -> ServerAdmission {
    var rules = admission
    rules.connections = max(rules.connections, hub.connections + 2 * Self.pageConnections)
    if let descriptors { rules.connections = min(rules.connections, max(1, descriptors - descriptors / 4)) }
    // Whoever gets in may end a room for everybody: no page of another program on the same host does.
    rules.pages = .ofServer(isSecure: identity != nil)
    return rules
  }

  private static var descriptors: Int? {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
      limit.rlim_cur != rlim_t.max
    else { return nil }
    return Int(clamping: limit.rlim_cur)
  }

  var limits: HTTPServer.Limits {
    var limits = HTTPServer.Limits()
    limits.connections = Self.pageConnections
    limits.body = Self.mostBody
    limits.backlog = Self.fileBacklog
    limits.webSocket = socket
    limits.webSocket.backlog = backlog
    limits.webSocket.messageCost = PassingLimits.overhead
    return limits
  }
}

extension RoomServerSettings: CustomStringConvertible {
  /// The place; the rest may be secret.
  public var description: String { "hub at \(host):\(port)" }
}
