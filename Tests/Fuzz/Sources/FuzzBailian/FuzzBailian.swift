import MillraceCore
import MillraceDialog

/// Feeds messages of a Bailian service to a dialogue, one a line of the input; a line that does not begin with a brace is something
/// else that happens, by its first byte. The first byte of the input says how the dialogue behaves.
///
/// Neither reading nor the dialogue may crash. What can be read is read the same when it is written anew, and a refusal has words. Of the
/// dialogue: the end is the last it asks for; it sends and hands on only while it is connected, voids and ends only what it has handed
/// on, keeps no more than its bounds, and its time goes forward.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzBailian(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  var dialogue = Dialogue(rules(first))
  for line in bytes.dropFirst().split(separator: 0x0A) {
    if line.first == UInt8(ascii: "{") {
      dialogue.take(read(Array(line)))
    } else if let input = input(line) {
      dialogue.take(input)
    }
  }
  dialogue.letTimePass()
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
  return rules
}

private func read(_ line: [UInt8]) -> BailianInput {
  do throws(BailianProblem) {
    let message = try BailianMessage(parsing: line)
    do throws(BailianProblem) {
      if try BailianMessage(parsing: message.raw.bytes) != message {
        fatalError("another message: \(message)")
      }
    } catch {
      fatalError("a message that does not read back: \(error)")
    }
    return .message(message)
  } catch {
    if error.description.isEmpty { fatalError("a refusal without words") }
    return .garbled(error.description)
  }
}

private func input(_ line: ArraySlice<UInt8>) -> BailianInput? {
  guard let first = line.first else { return nil }
  let text = String(decoding: line.dropFirst(), as: UTF8.self)
  switch first {
  case UInt8(ascii: "S"): return .start
  case UInt8(ascii: "O"): return .opened
  case UInt8(ascii: "b"): return .sound
  case UInt8(ascii: "l"):
    return .lost(DialogError(vendor: "bailian", category: .network, reaction: .reconnect, text: "gone"))
  case UInt8(ascii: "r"):
    return .lost(DialogError(vendor: "bailian", category: .auth, reaction: .refuse, text: "401"))
  case UInt8(ascii: "a"): return .audible
  case UInt8(ascii: "f"): return .finished
  case UInt8(ascii: "v"): return .voided
  case UInt8(ascii: "d"): return .delivered
  case UInt8(ascii: "o"): return .soundOver
  case UInt8(ascii: "L"): return .leaving
  case UInt8(ascii: "t"): return .tick
  case UInt8(ascii: "c"):
    guard let json = try? JSONValue(parsing: text), let command = try? DialogCommand(json: json) else {
      return nil
    }
    return .command(command)
  default: return nil
  }
}

/// A session, and what has been seen of it.
private struct Dialogue {
  private var session: BailianSession
  private var now: Nanoseconds = 0
  private var isConnected = false
  /// Sound was handed on that no utterance was made of; that was not voided.
  private var hasSound = false
  private var mayBeVoided = false
  private var hasEnded = false

  /// Commands of the service that may wait, as the session bounds them.
  private static let mostCommands = 64

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
    if wasClosed && !actions.isEmpty { fatalError("words after the end: \(actions)") }
    for action in actions { check(action, of: input) }
    if session.phase == .closed {
      if !hasEnded { fatalError("closed without an end: \(actions)") }
      if session.deadline != nil { fatalError("closed, and time is waited for") }
      if session.uplink != .drop { fatalError("closed, and sound is wanted") }
    }
    if session.commands.count > Self.mostCommands { fatalError("\(session.commands.count) commands wait") }
  }

  private mutating func check(_ action: BailianAction, of input: BailianInput) {
    if hasEnded { fatalError("words after the end: \(action)") }
    switch action {
    case .send(let request):
      if !isConnected { fatalError("nobody is there to be told \(request)") }
      let json = request.json(task: "t", dialog: session.dialog)
      do throws(JSONProblem) {
        if try JSONValue(parsing: json.bytes) != json { fatalError("another request: \(json)") }
      } catch {
        fatalError("a request that does not read: \(error)")
      }
    case .deliver:
      if input != .sound { fatalError("no sound came with \(input)") }
      (hasSound, mayBeVoided) = (true, true)
    case .endUtterance:
      if !hasSound { fatalError("an utterance without sound") }
      hasSound = false
    case .voidReply:
      if !mayBeVoided { fatalError("nothing of the reply was handed on") }
      (hasSound, mayBeVoided) = (false, false)
    case .connect, .disconnect: isConnected = false
    case .end: hasEnded = true
    case .post(let event):
      do throws(DialogFormProblem) {
        if try DialogEvent(json: event.json) != event { fatalError("another event: \(event)") }
      } catch {
        fatalError("an event that does not read: \(error)")
      }
    case .useKey: break
    }
  }

  /// Every deadline is followed by a later one, but for a few that follow from each other.
  mutating func letTimePass() {
    var atOnce = 0
    for _ in 0..<100 {
      guard let deadline = session.deadline else { return }
      atOnce = deadline > now ? 0 : atOnce + 1
      if atOnce > 4 { fatalError("it waits for a time that has passed") }
      now = max(now, deadline)
      handle(.tick)
    }
  }
}
