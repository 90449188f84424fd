import MillraceCore
import MillraceDialog
import MillraceJSON

/// Feeds messages of a Bailian service to a session, one per line of the input. A line that does not start with a brace is another input
/// of the session, chosen by its first byte. The first byte of the whole input selects the settings of the session.
///
/// Neither the parser nor the session may crash. A message that parses must survive a round trip, and every error must have a text. The
/// session must ask for nothing after its end, send and deliver only while it is connected, cancel and end only what it has delivered,
/// stay within its bounds, and never wait for a time in the past.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzBailian(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  var dialog = Dialog(rules(first))
  for line in bytes.dropFirst().split(separator: 0x0A) {
    if line.first == UInt8(ascii: "{") {
      dialog.take(read(Array(line)))
    } else if let input = input(line) {
      dialog.take(input)
    }
  }
  dialog.advance()
  return 0
}

private let second: Nanoseconds = 1_000_000_000

private func rules(_ byte: UInt8) -> BailianRules {
  var start = BailianStart(workspace: "w", app: "a", user: "u")
  start.upstream.mode = [.duplex, .pushToTalk, .tapToTalk, .duplex][Int(byte & 3)]
  start.upstream.hasVideo = byte & 4 != 0
  var rules = BailianRules(start, reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
  rules.followsPlayback = byte & 8 != 0
  rules.live = byte & 16 != 0 ? .start : .command
  rules.linger = byte & 32 != 0 ? second : 0
  rules.renew = byte & 64 != 0 ? second : 0
  rules.waitsAfterEnd = byte & 128 != 0
  return rules
}

private func read(_ line: [UInt8]) -> BailianInput {
  do throws(JSONFormProblem) {
    let message = try BailianMessage(parsing: line)
    do throws(JSONFormProblem) {
      if try BailianMessage(parsing: message.raw.bytes) != message {
        fatalError("the round trip changed \(message)")
      }
    } catch {
      fatalError("a message does not parse after a round trip: \(error)")
    }
    return .message(message)
  } catch {
    if error.description.isEmpty { fatalError("an error without a text") }
    return .invalidMessage(error.description)
  }
}

private func input(_ line: ArraySlice<UInt8>) -> BailianInput? {
  guard let first = line.first else { return nil }
  let text = String(decoding: line.dropFirst(), as: UTF8.self)
  switch first {
  case UInt8(ascii: "S"): return .start
  case UInt8(ascii: "O"): return .opened
  case UInt8(ascii: "b"): return .audio
  case UInt8(ascii: "l"):
    return .lost(DialogError(vendor: "bailian", category: .network, reaction: .reconnect, text: "gone"))
  case UInt8(ascii: "r"):
    return .lost(DialogError(vendor: "bailian", category: .auth, reaction: .refuse, text: "401"))
  case UInt8(ascii: "a"): return .audible
  case UInt8(ascii: "f"): return .finished
  case UInt8(ascii: "v"): return .replyCancelled
  case UInt8(ascii: "d"): return .delivered
  case UInt8(ascii: "o"): return .audioEnded
  case UInt8(ascii: "L"): return .drain
  case UInt8(ascii: "t"): return .tick
  case UInt8(ascii: "c"):
    guard let json = try? JSONValue(parsing: text), let command = try? DialogCommand(json: json) else {
      return nil
    }
    // The id of a command: how long its text is.
    return .command(command, id: "\(text.utf8.count)")
  default: return nil
  }
}

/// A session and the state that its actions imply.
private struct Dialog {
  private var session: BailianSession
  private var now: Nanoseconds = 0
  private var isConnected = false
  /// Audio was delivered that has been neither ended as an utterance nor cancelled.
  private var hasAudio = false
  private var canBeCancelled = false
  private var hasEnded = false
  /// Commands that the session has said to answer later, each as often as it was said.
  private var unanswered: [String: Int] = [:]

  /// The most commands of the service that may be pending.
  private static let maxCommands = 64

  init(_ rules: BailianRules) { session = BailianSession(rules) }

  mutating func take(_ input: BailianInput) {
    now += second / 100
    handle(input)
  }

  private mutating func handle(_ input: BailianInput) {
    let wasClosed = session.phase == .closed
    switch input {
    case .opened: isConnected = isConnected || session.phase == .connecting
    case .lost: isConnected = false
    default: break
    }
    let actions = session.handle(input, at: now)
    if wasClosed && !actions.isEmpty { fatalError("actions after the end: \(actions)") }
    for action in actions { check(action, of: input) }
    if session.phase == .closed {
      if !hasEnded { fatalError("closed without an end: \(actions)") }
      if session.deadline != nil { fatalError("closed with a deadline") }
      if session.uplink != .drop { fatalError("closed without dropping audio") }
    }
    if session.pendingCommands > Self.maxCommands {
      fatalError("\(session.pendingCommands) pending commands")
    }
  }

  private mutating func check(_ action: BailianAction, of input: BailianInput) {
    if hasEnded { fatalError("an action after the end: \(action)") }
    switch action {
    case .send(let request):
      if !isConnected { fatalError("not connected when it sends \(request)") }
      let json = request.json(task: "t", dialog: session.dialog)
      do throws(JSONProblem) {
        if try JSONValue(parsing: json.bytes) != json { fatalError("the round trip changed \(json)") }
      } catch {
        fatalError("a request does not parse: \(error)")
      }
    case .deliver:
      if input != .audio { fatalError("\(input) carries no audio to deliver") }
      (hasAudio, canBeCancelled) = (true, true)
    case .endUtterance:
      if !hasAudio { fatalError("an utterance without audio") }
      hasAudio = false
    case .cancelReply:
      if !canBeCancelled { fatalError("nothing of the reply was delivered") }
      (hasAudio, canBeCancelled) = (false, false)
    case .connect, .disconnect: isConnected = false
    case .end:
      hasEnded = true
      if let id = unanswered.keys.first { fatalError("the command \(id) is never answered") }
    case .post(let event):
      if case .answer(let answer) = event {
        guard let count = unanswered[answer.id] else { fatalError("\(answer.id) is answered once too often") }
        unanswered[answer.id] = count > 1 ? count - 1 : nil
      }
      do throws(JSONFormProblem) {
        if try DialogEvent(json: event.json) != event { fatalError("the round trip changed \(event)") }
      } catch {
        fatalError("an event does not parse: \(error)")
      }
    case .refuse(let error):
      guard case .command = input else { break }
      if error.scope != .command { fatalError("a refusal of \(error.scope)") }
    case .answerLater:
      guard case .command(_, let id?) = input else { fatalError("\(input) cannot be answered") }
      unanswered[id, default: 0] += 1
    case .useCredential: break
    case .stream: fatalError("it has no streams")
    }
  }

  /// Every deadline must be later than the last one, except for a few that follow from each other.
  mutating func advance() {
    var immediate = 0
    for _ in 0..<100 {
      guard let deadline = session.deadline else { return }
      immediate = deadline > now ? 0 : immediate + 1
      if immediate > 4 { fatalError("the deadline is in the past") }
      now = max(now, deadline)
      handle(.tick)
    }
  }
}
