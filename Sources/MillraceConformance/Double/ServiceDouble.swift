public import MillraceDialog

/// A service on this machine that a service node is held against: started for one case, told how to misbehave, asked what it
/// saw.
///
/// One type is one node's other side. `Conformance` starts a new one for every case, so that nothing is left of the case before.
///
/// ```swift
/// final class ParrotDouble: ServiceDouble { … }
///
/// let results = await Conformance(ParrotDouble.self, catalogue: catalogue).run()
/// #expect(results.allSatisfy { $0.outcome != .failed })
/// ```
///
/// **Sound.** Its replies are 16-bit PCM, and each sample is the number of the reply, from 1: whatever comes out of the graph can
/// then be told apart to the sample. A service whose sound cannot carry that overrides `replies(in:)`.
public protocol ServiceDouble: AnyObject, Sendable {
  /// What the service and its node are like. Cases that do not fit are left out, and say so.
  static var traits: ServiceTraits { get }

  /// Starts one. Its first connection and first turn go as the script says; all later ones go well.
  static func start(_ script: ServiceScript) async throws -> Self

  /// The node's members in a graph file, `type` aside: address, key, everything required. Waits that a script makes long are to
  /// be short here, and no wait so short that a busy machine breaks it.
  var parameters: [JSONValue.Member] { get }

  /// What it has seen and done so far. Any thread.
  var seen: ServiceSight { get }

  /// Drops what it keeps only to tell of it later, so that what a node costs can be seen.
  func forget()

  /// Listens no more, and lets go of everything.
  func stop()

  /// The events of dialogues in one JSON object that came out of the node. Those of a service node are these events already.
  static func events(in json: JSONValue) throws -> [DialogEvent]

  /// Which replies the sound in these bytes belongs to, in order, each once.
  static func replies(in bytes: [UInt8]) -> [Int]
}

extension ServiceDouble {
  public func forget() {}

  public static func events(in json: JSONValue) throws -> [DialogEvent] { [try DialogEvent(json: json)] }

  public static func replies(in bytes: [UInt8]) -> [Int] {
    var found: [Int] = []
    for place in stride(from: 0, to: bytes.count - 1, by: 2) {
      let sample = Int(bytes[place]) | Int(bytes[place + 1]) << 8
      if found.last != sample { found.append(sample) }
    }
    return found
  }
}

/// What a service and its node are like.
public struct ServiceTraits: Sendable {
  /// How a turn begins.
  public enum Turn: Sendable, Hashable {
    /// A question in words: the command `ask` at the node's `control`.
    case words
    /// The double begins its replies by itself.
    case itself
  }

  /// The node type, as graph files have it.
  public var nodeType: String
  /// Whose errors are told, as in `DialogError.vendor`.
  public var vendor: String
  /// What must never be seen anywhere: the key that `parameters` has.
  public var key: String
  /// How a turn begins.
  public var turn = Turn.words
  /// The node's input that takes commands; events of playback go there too when `takesReports`.
  public var control = "control"
  /// True: `control` takes what playback reports.
  public var takesReports = true
  /// The node's outputs that bring events of the dialogue, beside `events`.
  public var eventOutputs: [String] = []
  /// The node's input for the user's sound, 16-bit PCM of one channel at 16 kHz; nil: it has none.
  public var audio: String? = "audio"
  /// The node's output for the sound of replies; nil: it has none.
  public var replies: String? = "audio"
  /// True: a voice that is heard begins a turn.
  public var hearsVoice = true
  /// True: the end of each utterance is marked by `endOfUtterance`.
  public var endsUtterances = true
  /// True: after an interruption of the graph the node itself drops what still comes of the reply. False: on its wire one reply
  /// cannot be told from the next, and the service has to stop sending first.
  public var dropsVoided = true
  /// True: links behind the node may hold it back. False: it is live, and they are made so long that nothing is lost.
  public var waits = true
  /// What the double can do wrong, and where.
  public var faults: [ServiceFault.Kind: Set<ServiceFault.Place>] = [:]
  /// True: the double can refuse a key, and the first visitors.
  public var refuses = true

  /// A service that has everything; its double does nothing wrong.
  public init(nodeType: String, vendor: String, key: String) {
    self.nodeType = nodeType
    self.vendor = vendor
    self.key = key
  }
}

/// What a double has seen and done.
public struct ServiceSight: Sendable, Hashable {
  /// Connections that were asked for, refused ones among them.
  public var visits = 0
  /// Turns that have begun.
  public var turns = 0
  /// Bytes of sound of each reply that were sent.
  public var soundBytes: [Int: Int] = [:]
  /// Dialogues that the node ended with the service's own good-bye.
  public var goodByes = 0
  /// Samples of the user's sound that came and are not silence.
  public var voiceSamples = 0
  /// Messages sent that no client can know, as JSON: each has to come out of the node.
  public var oddities: [JSONValue] = []
  /// What the node did that the service's documents forbid.
  public var violations: [String] = []

  /// Nothing yet.
  public init() {}
}
