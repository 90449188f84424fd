import MillraceCore
import MillraceDialog
import MillraceJSON

/// Feeds messages of a Bailian service to a session, one per line of the input. A line that does not start with a brace is another input
/// of the session, chosen by its first byte. The first byte of the whole input selects the settings of the session.
///
/// Neither the parser nor the session may crash. A message that parses must survive a round trip, and every error must have a text. Besides
/// what `SessionWatch` requires, the session must send and deliver only while it is connected, cancel and end only what it has delivered, and
/// stay within its bounds.
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
  switch line.first {
  case UInt8(ascii: "b"): return .audio
  case UInt8(ascii: "r"):
    return .lost(DialogError(vendor: "bailian", category: .auth, reaction: .refuse, text: "401"))
  default:
    let loss = DialogError(vendor: "bailian", category: .network, reaction: .reconnect, text: "gone")
    return SessionWatch<BailianSession>.input(line, loss: loss)
  }
}

/// A session and the state that its actions imply.
private struct Dialog {
  private var watch: SessionWatch<BailianSession>
  private var reply = Reply()

  init(_ rules: BailianRules) { watch = SessionWatch(BailianSession(rules)) }

  mutating func take(_ input: BailianInput) {
    reply.note(input, watch.session.phase)
    reply.check(watch.take(input), of: input, watch.session)
  }

  mutating func advance() {
    var reply = reply
    watch.advance { reply.check($0, of: .tick, $1) }
  }
}

/// What the session may send over, and what it may do with audio.
private struct Reply {
  private var isConnected = false
  /// Audio was delivered that has been neither ended as an utterance nor cancelled.
  private var hasAudio = false
  private var canBeCancelled = false

  /// The most commands of the service that may be pending.
  private static let maxCommands = 64

  mutating func note(_ input: BailianInput, _ phase: BailianSession.Phase) {
    switch input {
    case .opened: isConnected = isConnected || phase == .connecting
    case .lost: isConnected = false
    default: break
    }
  }

  mutating func check(_ actions: [BailianAction], of input: BailianInput, _ session: BailianSession) {
    for action in actions { check(action, of: input, session) }
    if session.pendingCommands > Self.maxCommands {
      fatalError("\(session.pendingCommands) pending commands")
    }
  }

  private mutating func check(_ action: BailianAction, of input: BailianInput, _ session: BailianSession) {
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
    case .stream: fatalError("it has no streams")
    case .deliverImage, .deliverFile: fatalError("it has no images and files to deliver")
    case .end, .post, .refuse, .answerLater, .useCredential: break
    }
  }
}
