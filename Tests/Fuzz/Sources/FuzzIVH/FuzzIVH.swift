import MillraceCore
import MillraceDialog
import MillraceJSON

/// Feeds what an IVH service sends to a session, one message per line of the input. A line with a brace first is a frame of the channel;
/// any other is chosen by its first byte, and may have an answer or a command behind it. The first byte of the whole input selects the rules.
///
/// Neither the parsers nor the session may crash, and every error must have a text. Besides what `SessionWatch` requires, the session must send
/// only while it is connected, speak only over an open channel, and emit the end of a stream after its address.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzIVH(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  var dialog = Dialog(rules(first))
  for line in bytes.dropFirst().split(separator: 0x0A) { dialog.take(line) }
  dialog.advance()
  return 0
}

private let second: Nanoseconds = 1_000_000_000

private func rules(_ byte: UInt8) -> IVHRules {
  let generation: IVHGeneration = byte & 1 == 0 ? .session : .stream
  var creation = IVHCreation(user: "u", avatar: generation == .stream ? .account : .project("p"))
  if byte & 2 != 0 { creation.driver = .originalVoice }
  var rules = IVHRules(
    generation, creation, reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
  rules.followsPlayback = byte & 4 != 0
  rules.isBotReply = byte & 8 != 0
  rules.linger = byte & 16 != 0 ? second : 0
  rules.sendsTextsByHTTP = byte & 32 != 0
  rules.mode = byte & 64 != 0 ? .pushToTalk : .duplex
  rules.waitsAfterEnd = byte & 128 != 0
  return rules
}

/// A session and the state that its actions imply.
private struct Dialog {
  private var watch: SessionWatch<IVHSession>
  private var wire: Wire
  private let generation: IVHGeneration

  init(_ rules: IVHRules) {
    watch = SessionWatch(IVHSession(rules))
    wire = Wire()
    generation = rules.generation
  }

  mutating func take(_ line: ArraySlice<UInt8>) {
    guard let input = input(line) else { return }
    wire.note(input, watch.session.phase)
    wire.check(watch.take(input), watch.session)
  }

  mutating func advance() {
    var wire = wire
    watch.advance { wire.check($0, $1) }
  }

  private func input(_ line: ArraySlice<UInt8>) -> IVHInput? {
    let rest = Array(line.dropFirst())
    let loss = DialogError(vendor: "ivh", category: .network, reaction: .reconnect, text: "gone")
    switch line.first {
    case UInt8(ascii: "{"):
      return read { () throws(JSONFormProblem) in
        .push(try IVHPush(parsing: Array(line), generation))
      }
    case UInt8(ascii: "A"):
      return read { () throws(JSONFormProblem) in
        switch try IVHAnswer.parse(rest) {
        case .success(let answer): .answer(answer, to: wire.number)
        case .failure(let fault): .refused(fault, to: wire.number)
        }
      }
    case UInt8(ascii: "F"): return .message(.failed(loss, to: wire.number))
    case UInt8(ascii: "C"): return .message(.channelOpened)
    case UInt8(ascii: "X"): return .message(.channelLost(loss))
    case UInt8(ascii: "p"): return .firstPicture
    case UInt8(ascii: "B"): return .voiceBegan
    case UInt8(ascii: "E"): return .voiceEnded
    default: return SessionWatch<IVHSession>.input(line, loss: loss)
    }
  }

  private func read(_ parse: () throws(JSONFormProblem) -> IVHMessage) -> IVHInput {
    do throws(JSONFormProblem) { return .message(try parse()) } catch {
      if error.description.isEmpty { fatalError("an error without a text") }
      return .invalidMessage(error.description)
    }
  }
}

/// What the session may send over.
private struct Wire {
  /// The number of the latest request.
  private(set) var number = 0
  private var isConnected = false
  private var isChannelOpen = false
  private var hasStream = false

  mutating func note(_ input: IVHInput, _ phase: IVHSession.Phase) {
    switch input {
    case .opened: isConnected = isConnected || phase == .connecting
    case .lost: (isConnected, isChannelOpen) = (false, false)
    case .message(.channelOpened): isChannelOpen = phase == .opening || isChannelOpen
    case .message(.channelLost): isChannelOpen = false
    default: break
    }
  }

  mutating func check(_ actions: [IVHAction], _ session: IVHSession) {
    for action in actions {
      switch action {
      case .send(let request): check(request)
      case .stream(let address):
        if (address == nil) != hasStream { fatalError("the stream \(address ?? "that is over") comes twice") }
        hasStream = address != nil
      case .connect, .disconnect: (isConnected, isChannelOpen) = (false, false)
      case .deliver, .endUtterance: fatalError("it has no audio to deliver")
      case .deliverImage, .deliverFile: fatalError("it has no images and files to deliver")
      case .end, .post, .refuse, .answerLater, .cancelReply, .useCredential: break
      }
    }
    if session.isClosed && hasStream { fatalError("closed without the end of its stream") }
  }

  private mutating func check(_ request: IVHRequest) {
    if !isConnected { fatalError("not connected when it sends \(request)") }
    switch request {
    case .call(_, let latest): number = latest
    case .command, .endVoice:
      if !isChannelOpen { fatalError("no channel for \(request)") }
    case .closeChannel: isChannelOpen = false
    case .openChannel, .beginVoice: break
    }
  }
}
