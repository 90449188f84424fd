import MillraceCore
import MillraceDialog
import MillraceJSON

/// Feeds what an IVH service sends to a session, one message per line of the input. A line with a brace first is a frame of the channel;
/// any other is chosen by its first byte, and may have an answer or a command behind it. The first byte of the whole input selects the rules.
///
/// Neither the parsers nor the session may crash, and every error must have a text. The session must ask for nothing after its end, send
/// only while it is connected, speak only over an open channel, emit the end of a stream after its address, answer each command once, and
/// never wait for a time in the past.
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
  private var session: IVHSession
  private let generation: IVHGeneration
  private var now: Nanoseconds = 0
  /// The number of the latest request.
  private var number = 0
  private var isConnected = false
  private var isChannelOpen = false
  private var hasStream = false
  private var hasEnded = false
  /// Commands that the session has said to answer later, each as often as it was said.
  private var unanswered: [String: Int] = [:]

  init(_ rules: IVHRules) {
    session = IVHSession(rules)
    generation = rules.generation
  }

  mutating func take(_ line: ArraySlice<UInt8>) {
    guard let first = line.first, let input = input(first, line) else { return }
    now += second / 100
    handle(input)
  }

  private func input(_ first: UInt8, _ line: ArraySlice<UInt8>) -> IVHInput? {
    let rest = Array(line.dropFirst())
    let loss = DialogError(vendor: "ivh", category: .network, reaction: .reconnect, text: "gone")
    switch first {
    case UInt8(ascii: "{"):
      return read { () throws(JSONFormProblem) in
        .push(try IVHPush(parsing: Array(line), generation))
      }
    case UInt8(ascii: "A"):
      return read { () throws(JSONFormProblem) in
        switch try IVHAnswer.parse(rest) {
        case .success(let answer): .answer(answer, to: number)
        case .failure(let fault): .refused(fault, to: number)
        }
      }
    case UInt8(ascii: "F"): return .message(.failed(loss, to: number))
    case UInt8(ascii: "S"): return .start
    case UInt8(ascii: "O"): return .opened
    case UInt8(ascii: "C"): return .message(.channelOpened)
    case UInt8(ascii: "X"): return .message(.channelLost(loss))
    case UInt8(ascii: "l"): return .lost(loss)
    case UInt8(ascii: "p"): return .firstPicture
    case UInt8(ascii: "a"): return .audible
    case UInt8(ascii: "f"): return .finished
    case UInt8(ascii: "v"): return .replyCancelled
    case UInt8(ascii: "B"): return .voiceBegan
    case UInt8(ascii: "E"): return .voiceEnded
    case UInt8(ascii: "o"): return .audioEnded
    case UInt8(ascii: "L"): return .drain
    case UInt8(ascii: "t"): return .tick
    case UInt8(ascii: "c"):
      guard let json = try? JSONValue(parsing: rest), let command = try? DialogCommand(json: json) else {
        return nil
      }
      // The id of a command: how long its text is.
      return .command(command, id: "\(rest.count)")
    default: return nil
    }
  }

  private func read(_ parse: () throws(JSONFormProblem) -> IVHMessage) -> IVHInput {
    do throws(JSONFormProblem) { return .message(try parse()) } catch {
      if error.description.isEmpty { fatalError("an error without a text") }
      return .invalidMessage(error.description)
    }
  }

  private mutating func handle(_ input: IVHInput) {
    let wasClosed = session.phase == .closed
    switch input {
    case .opened: isConnected = isConnected || session.phase == .connecting
    case .lost: (isConnected, isChannelOpen) = (false, false)
    case .message(.channelOpened): isChannelOpen = session.phase == .opening || isChannelOpen
    case .message(.channelLost): isChannelOpen = false
    default: break
    }
    let actions = session.handle(input, at: now)
    if wasClosed && !actions.isEmpty { fatalError("actions after the end: \(actions)") }
    for action in actions { check(action, of: input) }
    guard session.phase == .closed else { return }
    if !hasEnded { fatalError("closed without an end: \(actions)") }
    if session.deadline != nil { fatalError("closed with a deadline") }
    if session.uplink != .drop { fatalError("closed without dropping audio") }
    if hasStream { fatalError("closed without the end of its stream") }
  }

  private mutating func check(_ action: IVHAction, of input: IVHInput) {
    if hasEnded { fatalError("an action after the end: \(action)") }
    switch action {
    case .send(let request): check(request)
    case .stream(let address):
      if (address == nil) != hasStream { fatalError("the stream \(address ?? "that is over") comes twice") }
      hasStream = address != nil
    case .connect, .disconnect: (isConnected, isChannelOpen) = (false, false)
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
    case .deliver, .endUtterance: fatalError("it has no audio to deliver")
    case .cancelReply, .useCredential: break
    }
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
