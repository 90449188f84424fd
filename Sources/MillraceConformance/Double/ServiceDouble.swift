public import MillraceDialog
public import MillraceJSON

/// A local double of a service, for the conformance suite of its node: started for one case with a script of faults, and asked
/// what it observed.
///
/// Each type is the double of one node's service. `Conformance` starts a new one for every case, so that no state is carried over.
///
/// ```swift
/// final class ParrotDouble: ServiceDouble { … }
///
/// let results = await Conformance(ParrotDouble.self, catalogue: catalogue).run()
/// #expect(results.allSatisfy { $0.outcome != .failed })
/// ```
///
/// **Audio.** Its replies are 16-bit PCM in which each sample is the number of the reply, from 1, so that the origin of every sample
/// that leaves the graph is known. A service whose audio cannot carry that overrides `replies(in:)`.
public protocol ServiceDouble: AnyObject, Sendable {
  /// What the service and its node support. Cases that do not apply are left out, with the reason.
  static var traits: ServiceTraits { get }

  /// Starts a double. Its first connection and first turn follow the script; later ones work.
  static func start(_ script: ServiceScript) async throws -> Self

  /// The node's members in a graph file, except `type`: address, key, everything required. Timeouts that a script provokes should be
  /// short, but not so short that a busy machine triggers them.
  var parameters: [JSONValue.Member] { get }

  /// What it has observed and done so far. Any thread.
  var seen: ServiceReport { get }

  /// Discards what it keeps only to report it later, so that the memory a node costs can be measured.
  func forget()

  /// Stops listening, and releases everything.
  func stop()

  /// The dialogue events in a JSON object emitted by the node. A service node emits them in this form already.
  static func events(in json: JSONValue) throws -> [DialogEvent]

  /// The replies that the audio in these bytes belongs to, in order, each once.
  static func replies(in bytes: [UInt8]) -> [Int]
}

extension ServiceDouble {
  public func forget() {}

  public static func events(in json: JSONValue) throws -> [DialogEvent] { [try DialogEvent(json: json)] }

  public static func replies(in bytes: [UInt8]) -> [Int] {
    var found: [Int] = []
    for index in stride(from: 0, to: bytes.count - 1, by: 2) {
      let sample = Int(bytes[index]) | Int(bytes[index + 1]) << 8
      if found.last != sample { found.append(sample) }
    }
    return found
  }
}

/// What a service and its node support.
public struct ServiceTraits: Sendable {
  /// How a turn begins.
  public enum Turn: Sendable, Hashable {
    /// With a question as text: the command `ask` at the node's `control`.
    case words
    /// The double starts its replies by itself.
    case itself
  }

  /// How the node answers commands that have an `id` (`DialogAnswer`).
  public enum Answers: String, Sendable, Hashable, CaseIterable {
    /// Each as soon as the node has it.
    case atOnce
    /// A question that arrives while the service does not listen waits, and is answered when it is asked.
    case whenListening
  }

  /// The node type, as in graph files.
  public var nodeType: String
  /// The vendor in its errors: `DialogError.vendor`.
  public var vendor: String
  /// The key in `parameters`; it must not appear in any output.
  public var key: String
  /// How a turn begins.
  public var turn = Turn.words
  /// The node's input for commands, and for events of playback if `takesReports`.
  public var control = "control"
  /// True: `control` takes playback reports.
  public var takesReports = true
  /// Outputs of the node that carry events of the dialogue, besides `events`.
  public var eventOutputs: [String] = []
  /// The node's input for the user's audio, 16-bit mono PCM at 16 kHz; nil: it has none.
  public var audio: String? = "audio"
  /// The node's output for the audio of replies; nil: it has none.
  public var replies: String? = "audio"
  /// True: detected speech begins a turn.
  public var detectsSpeech = true
  /// True: the end of each utterance is marked by `endOfUtterance`.
  public var endsUtterances = true
  /// True: after an interruption of the graph the node itself discards the rest of the reply. False: its protocol does not distinguish
  /// one reply from the next, and the service has to stop sending first.
  public var dropsStaleAudio = true
  /// True: links behind the node may apply back-pressure. False: it is live, and the links are long enough to lose nothing.
  public var waits = true
  /// The faults the double supports, and where.
  public var faults: [ServiceFault.Kind: Set<ServiceFault.Place>] = [:]
  /// True: the double can refuse a key, and the first connections.
  public var refuses = true
  /// The gates that the service closes (`ServiceScript.gate`).
  public var gates: Set<DialogGate> = []
  /// True: the service sends things to display with its replies (`ServiceScript.sendsMedia`).
  public var sendsMedia = false
  /// The reasons the service states when it removes a client (`ServiceFault.reason`, at `listening`).
  public var kickReasons: Set<KickReason> = []
  /// The key that replaces `key` before it expires, with the command `refreshAuth` (`ServiceScript.announcesExpiry`); nil: the service
  /// does not announce an expiry. It must not appear in any output either.
  public var freshKey: String?
  /// True: replies are a stream that other nodes play, and `replies` is nil. The address (`ServiceReport.streams`) comes before the reply, at
  /// the output `stream` or in an event; that a reply was played is reported when the service has ended it.
  public var streamsReplies = false
  /// The node's output for the addresses of streams, as texts, the last of them empty; nil: they are in events.
  public var stream: String?
  /// True: other participants come and go (`ServiceScript.hasPeers`).
  public var hasRooms = false
  /// True: nodes with the same parameters share one connection, and each has a session of its own on it.
  public var sharesConnections = false
  /// True: the double can close one session of a shared connection and leave the others (`ServiceScript.closesSession`).
  public var closesSessions = false
  /// How the node answers commands that have an `id`; nil: it answers none, or its backend does.
  public var answers: Answers?

  /// Traits of a service that supports everything, and of a double without faults.
  public init(nodeType: String, vendor: String, key: String) {
    self.nodeType = nodeType
    self.vendor = vendor
    self.key = key
  }
}

/// What a double has observed and done.
public struct ServiceReport: Sendable, Hashable {
  /// Connections attempted, including refused ones.
  public var connections = 0
  /// Turns that have begun.
  public var turns = 0
  /// Bytes of audio sent for each reply.
  public var audioBytes: [Int: Int] = [:]
  /// Sessions that the node closed properly.
  public var sessionEnds = 0
  /// Samples of the user's audio that are not silence.
  public var speechSamples = 0
  /// Unknown messages that were sent, as JSON: the node must post each of them.
  public var unknownMessages: [JSONValue] = []
  /// What the service reported to this client besides states, speech and replies: gates, things to display, participants, the end of a key,
  /// removals. The node must post each, unchanged and in this order.
  public var events: [DialogEvent] = []
  /// Addresses of streams with replies, as they were reported.
  public var streams: [String] = []
  /// How often a fresh key was accepted.
  public var renewals = 0
  /// What the node did against the service's documentation.
  public var violations: [String] = []

  /// Creates an empty report.
  public init() {}
}
