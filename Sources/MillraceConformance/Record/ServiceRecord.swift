public import MillraceDialog

/// Everything a node emitted in a case, in order, together with the actions of the suite. The invariants are checked on this record
/// alone.
public struct ServiceRecord: Sendable {
  /// An entry of the record.
  public enum Entry: Sendable, Hashable {
    /// The node posted an event.
    case event(DialogEvent)
    /// The node posted something that is not a dialogue event; the text says why.
    case invalid(String)
    /// A packet of a reply.
    case audio(Audio)
    /// The address of a stream with replies; empty: it is over.
    case stream(String)
    /// The suite acted.
    case action(Action)
  }

  /// A packet of a reply, as it was received.
  public struct Audio: Sendable, Hashable {
    /// The replies its samples belong to, in order.
    public var replies: [Int]
    /// Its size in bytes.
    public var bytes: Int
    /// Its generation in the graph.
    public var generation: UInt32
    /// It ends an utterance.
    public var endsUtterance: Bool

    /// Creates a packet of these replies.
    public init(_ replies: [Int], bytes: Int, generation: UInt32, endsUtterance: Bool = false) {
      self.replies = replies
      self.bytes = bytes
      self.generation = generation
      self.endsUtterance = endsUtterance
    }
  }

  /// An action of the suite.
  public enum Action: Sendable, Hashable {
    /// The graph was interrupted: replies up to this one, whose audio had begun, are stale in every later generation.
    case interrupted(upTo: Int, generation: UInt32)
    /// The user spoke, with so many samples that are not silence.
    case spoke(samples: Int)
    /// A command with this `id` was sent.
    case commanded(id: String)
    /// The user's audio ended.
    case endedInput
    /// The graph was drained.
    case drained
    /// The graph was stopped.
    case stopped
  }

  /// How the run ended.
  public struct Ending: Sendable, Hashable {
    /// The message of the failure that ended it.
    public var failure: String?
    /// Nodes that did not stop in time.
    public var detached: [String] = []
    /// Blocks that were not returned to their pools.
    public var leakedBlocks = 0
    /// Events dropped by full links.
    public var lostEvents = 0
    /// Creates the state of a run that has not ended.
    public init() {}
  }

  /// The entries, in order.
  public var entries: [Entry] = []
  /// How the run ended.
  public var ending = Ending()
  /// What the double observed, at the end.
  public var report = ServiceReport()

  /// Creates a record.
  public init(_ entries: [Entry] = []) { self.entries = entries }

  /// The events posted.
  public var events: [DialogEvent] {
    entries.compactMap { if case .event(let event) = $0 { event } else { nil } }
  }

  /// The states reported.
  public var states: [DialogState] {
    events.compactMap { if case .state(let state) = $0 { state } else { nil } }
  }

  /// The errors reported.
  public var errors: [DialogError] {
    events.compactMap { if case .error(let error) = $0 { error } else { nil } }
  }

  /// The answers to commands.
  public var answers: [DialogAnswer] {
    events.compactMap { if case .answer(let answer) = $0 { answer } else { nil } }
  }

  /// The packets of replies.
  public var audio: [Audio] {
    entries.compactMap { if case .audio(let sound) = $0 { sound } else { nil } }
  }

  /// The number of events with this name.
  public func count(_ name: String) -> Int { events.count { $0.name == name } }

  /// True when audio of this reply was received.
  public func hasAudio(of reply: Int) -> Bool { audio.contains { $0.replies.contains(reply) } }
}

extension ServiceRecord: CustomStringConvertible {
  /// The states and other important events: `connecting listening thinking responding listening closed, 1 error`.
  public var description: String {
    var words: [String] = []
    for entry in entries {
      switch entry {
      case .event(.state(let state)) where words.last != state.rawValue: words.append(state.rawValue)
      case .event(.error(let error)): words.append("error(\(error.category.rawValue))")
      case .event(.interrupted): words.append("interrupted")
      case .event(.unknown): words.append("unknown")
      case .event(.authExpired): words.append("authExpired")
      default: break
      }
    }
    if let failure = ending.failure { words.append("failed: \(failure)") }
    return words.joined(separator: " ")
  }
}
