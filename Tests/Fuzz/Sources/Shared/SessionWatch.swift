import MillraceCore
import MillraceDialog
import MillraceJSON

/// A session of a service, watched: what must hold for each of them, whatever arrives.
///
/// It asks for nothing after its end, ends when it is closed, answers each command once, posts events that survive a round trip, and never
/// waits for a time in the past.
struct SessionWatch<Session: ServiceSession> {
  typealias Input = ServiceInput<Session.Message>
  typealias Action = ServiceAction<Session.Request>

  private(set) var session: Session
  private var now: Nanoseconds = 0
  private var hasEnded = false
  /// Commands that the session has said to answer later, each as often as it was said.
  private var unanswered: [String: Int] = [:]

  init(_ session: Session) { self.session = session }

  /// Gives the session an input a hundredth of a second later.
  /// - Returns: what it asks for, checked.
  mutating func take(_ input: Input) -> [Action] {
    now += 10_000_000
    return handle(input)
  }

  private mutating func handle(_ input: Input) -> [Action] {
    let wasClosed = session.isClosed
    let actions = session.handle(input, at: now)
    if wasClosed && !actions.isEmpty { fatalError("actions after the end: \(actions)") }
    for action in actions { check(action, of: input) }
    guard session.isClosed else { return actions }
    if !hasEnded { fatalError("closed without an end: \(actions)") }
    if session.deadline != nil { fatalError("closed with a deadline") }
    if session.uplink != .drop { fatalError("closed without dropping audio") }
    return actions
  }

  private mutating func check(_ action: Action, of input: Input) {
    if hasEnded { fatalError("an action after the end: \(action)") }
    switch action {
    case .end:
      hasEnded = true
      if let id = unanswered.keys.first { fatalError("the command \(id) is never answered") }
    case .post(let event): check(event)
    case .refuse(let error):
      guard case .command = input else { break }
      if error.scope != .command { fatalError("a refusal of \(error.scope)") }
    case .answerLater:
      guard case .command(_, let id?) = input else { fatalError("\(input) cannot be answered") }
      unanswered[id, default: 0] += 1
    case .connect, .disconnect, .send, .deliver, .deliverImage, .deliverFile, .endUtterance, .cancelReply,
      .stream, .useCredential:
      break
    }
  }

  private mutating func check(_ event: DialogEvent) {
    if case .answer(let answer) = event {
      guard let count = unanswered[answer.id] else { fatalError("\(answer.id) is answered once too often") }
      unanswered[answer.id] = count > 1 ? count - 1 : nil
    }
    do throws(JSONFormProblem) {
      if try DialogEvent(json: event.json) != event { fatalError("the round trip changed \(event)") }
    } catch {
      fatalError("an event does not parse: \(error)")
    }
  }

  /// Waits for the next deadlines. Every one must be later than the last, except for a few that follow from each other.
  /// - Parameter body: called with the actions of each.
  mutating func advance(_ body: ([Action], Session) -> Void) {
    var immediate = 0
    for _ in 0..<100 {
      guard let deadline = session.deadline else { return }
      immediate = deadline > now ? 0 : immediate + 1
      if immediate > 4 { fatalError("the deadline is in the past") }
      now = max(now, deadline)
      body(handle(.tick), session)
    }
  }

  /// The input that the first byte of a line stands for, of those that every session takes.
  /// - Parameter loss: what a lost connection says.
  static func input(_ line: ArraySlice<UInt8>, loss: DialogError) -> Input? {
    guard let first = line.first else { return nil }
    switch first {
    case UInt8(ascii: "S"): return .start
    case UInt8(ascii: "O"): return .opened
    case UInt8(ascii: "l"): return .lost(loss)
    case UInt8(ascii: "a"): return .audible
    case UInt8(ascii: "f"): return .finished
    case UInt8(ascii: "v"): return .replyCancelled
    case UInt8(ascii: "d"): return .delivered
    case UInt8(ascii: "o"): return .audioEnded
    case UInt8(ascii: "D"): return .sourcesEnded
    case UInt8(ascii: "L"): return .drain
    case UInt8(ascii: "t"): return .tick
    case UInt8(ascii: "c"):
      let rest = Array(line.dropFirst())
      guard let json = try? JSONValue(parsing: rest), let command = try? DialogCommand(json: json) else {
        return nil
      }
      // The id of a command: how long its text is.
      return .command(command, id: "\(rest.count)")
    default: return nil
    }
  }
}
