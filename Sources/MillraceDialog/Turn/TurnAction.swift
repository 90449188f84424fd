/// What a turn machine wants done, in order.
public enum TurnAction: Sendable, Hashable {
  /// To the service.
  case startSpeech, stopSpeech, cancelSpeech, interrupt, hangUp
  /// The question that waits goes to the service.
  case passQuestion
  /// The question that waits is forgotten: there is nobody to answer it.
  case dropQuestion
  /// Every reply up to now is void.
  case voidReplies
  /// Playback makes room; playback goes on with the sample after the last one heard.
  case duck, resume

  // To be told.
  /// Another state has begun.
  case changed(from: TurnState, to: TurnState)
  /// A reply was cut off by a voice or by hand, so long after the voice began.
  case bargedIn(by: TurnBreaker, afterMilliseconds: Int)
  /// A voice over the reply was none.
  case falseInterruption(milliseconds: Int)
  /// What of a reply was heard: an utterance of it to its end, or up to where it was cut.
  case heard(reply: UInt32, samples: Int, milliseconds: Int, isWhole: Bool)
  /// A wait has lasted too long.
  case timedOut(TurnState)
}

/// Who broke into a reply.
public enum TurnBreaker: UInt8, Sendable, Hashable, CaseIterable {
  /// The local detector heard a voice for long enough.
  case voice
  /// The service heard the user, or stopped by itself.
  case service
  /// A button or a command.
  case hand

  /// The word for it in events.
  public var name: StaticString {
    switch self {
    case .voice: "voice"
    case .service: "service"
    case .hand: "hand"
    }
  }
}

/// The actions of one step: a short list that lives on the stack.
public struct TurnActions: Sendable {
  /// More than the longest list a step can make: a timeout, and what came at the same time.
  public static let limit = 16
  private var actions = InlineArray<16, TurnAction>(repeating: .interrupt)
  /// How many there are; `limit` at most.
  public private(set) var count = 0

  /// None.
  public init() {}

  /// One of them, in the order they are to be carried out. Traps beyond `count`.
  public subscript(index: Int) -> TurnAction {
    precondition(index < count, "no such action")
    return actions[index]
  }

  mutating func clear() { count = 0 }

  mutating func add(_ action: TurnAction) {
    actions[count] = action
    count += 1
  }

  /// The actions as an array, which costs the heap: for tests and programs.
  public var list: [TurnAction] { (0..<count).map { actions[$0] } }
}

/// One change of state, for the trace.
public struct TurnChange: Sendable, Hashable {
  /// When, in nanoseconds on the clock the machine was told.
  public var time: Int64
  /// The state before.
  public var from: TurnState
  /// The state after.
  public var to: TurnState
}
