internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTC
internal import MillraceRTCSignal

/// How a call is made, and what its node wants to know of it. Set once; what may change while the call runs is a command.
struct RTCCallSettings: Sendable {
  /// Turns the names of STUN and TURN servers into addresses. Called on the call's loop, and must not block; calls back once, on any
  /// thread. A server that cannot be used is left out there, and told; a failure ends the attempt.
  typealias Resolver =
    @Sendable (
      _ ice: ICESettings, _ servers: [SignalServer], _ loop: RTCLoop,
      _ done: @escaping @Sendable (Result<ResolvedServers, RTCProblem>) -> Void
    ) -> Void

  /// What became of STUN and TURN servers.
  struct ResolvedServers: Sendable {
    /// With the servers that can be used.
    var ice: ICESettings
    /// Which others cannot, and why, as messages without a secret.
    var problems: [String] = []
  }

  /// What every session is set up with. `sections` are all that this side can do, one of each kind; a session has those that its signalling
  /// wants, at most in the directions that are given here.
  var session = RTCSessionSettings()
  /// Servers of the parameters; those that the signalling has learnt are used beside them.
  var servers: [SignalServer] = []
  /// Nil: servers are not used.
  var resolve: Resolver?

  /// The name of the data channel between the node's ports `data`.
  var dataLabel = "data"
  /// Bytes of the largest message that this side takes, as its descriptions say; at least 1.
  var largestMessage = RTCExchange.dataBytes
  /// How its messages are delivered.
  var dataDelivery = SCTPAssociation.Delivery()
  /// Who opens the channels: nil: the side that offers the session. The other opens one that it needs and that is not there after a
  /// second.
  var opensChannels: Bool?
  /// The node has ports for data: messages go there, and not into events.
  var hasDataPorts = false
  /// The node sends events of other nodes as messages; what comes goes into events all the same.
  var sendsEvents = false
  /// The signalling has a key that the command `refreshAuth` replaces.
  var takesToken = false
  /// The end of the main session by the peer is not the end of the call: the signalling asks for another offer, or says what has ended.
  var renewsSession = false
  /// The messages are those of a room of Janus' plugin TextRoom, on the channel that this has.
  var textRoom: TextRoom?

  /// From an offer to its answer.
  var signal: Nanoseconds = .milliseconds(5_000)
  /// How long a connected session may be without media of its peer; 0: for ever.
  var media: Nanoseconds = .milliseconds(3_000)
  /// How long a connection may be interrupted before ICE is restarted, or the session is recreated.
  var interruption: Nanoseconds = .milliseconds(3_000)
  /// How long a restart of ICE may take.
  var restart: Nanoseconds = .milliseconds(5_000)
  /// When and how often a lost call is made again.
  var reconnect = ReconnectPolicy(
    Backoff(
      first: .milliseconds(500), most: .milliseconds(8_000), giveUp: .milliseconds(45_000),
      seed: .random(in: 0...(.max))))
  /// Between two events `usage` and `netQuality`; 0: none.
  var stats: Nanoseconds = .milliseconds(1_000)
  /// Bytes of the largest event; members beyond it are omitted.
  var eventBytes = 16_384
  /// Learns the passwords of servers.
  var secrets = Secrets()

  /// How long the end of the signalling is waited for: the network may be gone.
  static let ending: Nanoseconds = .milliseconds(2_000)
}

/// One attempt to make a call: what the signalling is made from.
struct RTCCallAttempt: Sendable {
  /// From 1.
  var number: Int
  /// A key that replaces that of the parameters, by the command `refreshAuth`; nil: none was given.
  var token: String?
}
