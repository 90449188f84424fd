public import MillraceDialog

/// Everything that came out of a node in one case, in the order it came, with what was done to it. Invariants are held against
/// this alone.
public struct ServiceRecord: Sendable {
  public enum Entry: Sendable, Hashable {
    /// The node told of something.
    case told(DialogEvent)
    /// The node posted what is no event of a dialogue: why it is none.
    case illegible(String)
    /// A packet of a reply.
    case sound(Sound)
    case did(Deed)
  }

  /// A packet of a reply, as its taker saw it.
  public struct Sound: Sendable, Hashable {
    /// Which replies its samples belong to, in order.
    public var replies: [Int]
    public var bytes: Int
    public var generation: UInt32
    public var endsUtterance: Bool

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
    case endedInput
    case drained
    case stopped
  }

  /// How the run ended.
  public struct Ending: Sendable, Hashable {
    /// The words of the failure that ended it.
    public var failure: String?
    /// Nodes that did not return within the time a graph has to stop in.
    public var detached: [String] = []
    public var leakedBlocks = 0
    public var lostEvents = 0
    public init() {}
  }

  public var entries: [Entry] = []
  public var ending = Ending()
  /// What the double saw, at the end.
  public var sight = ServiceSight()

  public init(_ entries: [Entry] = []) { self.entries = entries }

  public var events: [DialogEvent] {
    entries.compactMap { if case .told(let event) = $0 { event } else { nil } }
  }

  public var states: [DialogState] {
    events.compactMap { if case .state(let state) = $0 { state } else { nil } }
  }

  public var errors: [DialogError] {
    events.compactMap { if case .error(let error) = $0 { error } else { nil } }
  }

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
