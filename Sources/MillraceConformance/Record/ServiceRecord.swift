public import MillraceDialog

/// Everything that came out of a node in one case, in the order it came, with what was done to it. Invariants are held against
/// this alone.
public struct ServiceRecord: Sendable {
  /// One thing, in its place among the others.
  public enum Entry: Sendable, Hashable {
    /// The node told of something.
    case told(DialogEvent)
    /// The node posted what is no event of a dialogue: why it is none.
    case illegible(String)
    /// A packet of a reply.
    case sound(Sound)
    /// The kit did something to it.
    case did(Deed)
  }

  /// A packet of a reply, as its taker saw it.
  public struct Sound: Sendable, Hashable {
    /// Which replies its samples belong to, in order.
    public var replies: [Int]
    /// Bytes of it.
    public var bytes: Int
    /// The graph's number of the reply it was born in.
    public var generation: UInt32
    /// It ends an utterance.
    public var endsUtterance: Bool

    /// A packet of these replies.
    public init(_ replies: [Int], bytes: Int, generation: UInt32, endsUtterance: Bool = false) {
      self.replies = replies
      self.bytes = bytes
      self.generation = generation
      self.endsUtterance = endsUtterance
    }
  }

  /// What the kit did.
  public enum Deed: Sendable, Hashable {
    /// The graph was interrupted: replies up to this one, whose sound had begun to come, are void in every later generation.
    case interrupted(upTo: Int, generation: UInt32)
    /// The user spoke: so many samples that are not silence.
    case spoke(samples: Int)
    /// The user's sound ended for good.
    case endedInput
    /// The graph was told to end and to let what is inside flow out.
    case drained
    /// The graph was stopped.
    case stopped
  }

  /// How the run ended.
  public struct Ending: Sendable, Hashable {
    /// The words of the failure that ended it.
    public var failure: String?
    /// Nodes that did not return within the time a graph has to stop in.
    public var detached: [String] = []
    /// Blocks that did not come back to their pools.
    public var leakedBlocks = 0
    /// Events that a link had no room for.
    public var lostEvents = 0
    /// It has not ended.
    public init() {}
  }

  /// Everything, in order.
  public var entries: [Entry] = []
  /// How the run ended.
  public var ending = Ending()
  /// What the double saw, at the end.
  public var sight = ServiceSight()

  /// A record to be looked at.
  public init(_ entries: [Entry] = []) { self.entries = entries }

  /// What was told.
  public var events: [DialogEvent] {
    entries.compactMap { if case .told(let event) = $0 { event } else { nil } }
  }

  /// The states that were told.
  public var states: [DialogState] {
    events.compactMap { if case .state(let state) = $0 { state } else { nil } }
  }

  /// The errors that were told.
  public var errors: [DialogError] {
    events.compactMap { if case .error(let error) = $0 { error } else { nil } }
  }

  /// The packets of replies.
  public var sounds: [Sound] {
    entries.compactMap { if case .sound(let sound) = $0 { sound } else { nil } }
  }

  /// How often an event of this name was told.
  public func count(_ name: String) -> Int { events.count { $0.name == name } }

  /// Sound of this reply came.
  public func hasSound(of reply: Int) -> Bool { sounds.contains { $0.replies.contains(reply) } }
}

extension ServiceRecord: CustomStringConvertible {
  /// The states and what else shaped the case: `connecting listening thinking responding listening closed, 1 error`.
  public var description: String {
    var words: [String] = []
    for entry in entries {
      switch entry {
      case .told(.state(let state)) where words.last != state.rawValue: words.append(state.rawValue)
      case .told(.error(let error)): words.append("error(\(error.category.rawValue))")
      case .told(.interrupted): words.append("interrupted")
      case .told(.unknown): words.append("unknown")
      case .told(.authExpired): words.append("authExpired")
      default: break
      }
    }
    if let failure = ending.failure { words.append("failed: \(failure)") }
    return words.joined(separator: " ")
  }
}
