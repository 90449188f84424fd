internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal
internal import Synchronization

/// Carries out the commands of a node. Each one with an `id` is answered exactly once, at the latest when the call ends. On the thread of
/// the call's loop.
final class CallCommands {
  /// Commands whose answers are outstanding at most; further ones are refused.
  private static let mostUnanswered = 1_000
  /// Commands in one run.
  private static let mostInRun = 64
  /// Milliseconds of a digit: RFC 4733 section 2.5.2.3 has at least 40 ms on the telephone network; a key may be held.
  private static let toneMilliseconds = 40...6_000
  /// Digits in one command.
  private static let mostDigits = 64

  private unowned let call: RTCCall
  private let context: CallContext
  private var unanswered: Set<String> = []

  init(_ call: RTCCall, _ context: CallContext) {
    self.call = call
    self.context = context
  }

  /// Carries out what has come. True when more waits.
  func run() -> Bool {
    let queue = context.exchange.commands
    for _ in 0..<Self.mostInRun {
      guard !context.isCrowded, !call.isEnding, let record = queue.peek() else { break }
      let bytes = unsafe Array(record.bytes)
      queue.drop(record)
      take(bytes)
    }
    if queue.takeRequest() { context.exchange.waker.wake() }
    // Crowded: the next run comes by the call's timer.
    return !context.isCrowded && !call.isEnding && queue.peek() != nil
  }

  /// The call is over: what is not carried out never will be. Called until the end is reported, for what comes meanwhile; after that the
  /// node answers by itself.
  func end(_ failure: DialogError?) {
    var reason = failure ?? RTCError.ended.error("the call has ended", reaction: .continue)
    reason.scope = .command
    for id in unanswered.sorted() { context.post(.answer(DialogAnswer(id, .failed(reason)))) }
    unanswered = []
    let queue = context.exchange.commands
    while !context.isCrowded, let record = queue.peek() {
      let bytes = unsafe Array(record.bytes)
      queue.drop(record)
      if let id = Self.id(of: bytes) { context.post(.answer(DialogAnswer(id, .failed(reason)))) }
    }
    if queue.takeRequest() { context.exchange.waker.wake() }
  }

  private static func id(of bytes: [UInt8]) -> String? {
    do throws(JSONProblem) { return DialogControl.id(of: try JSONValue(parsing: bytes)) } catch { return nil }
  }

  // MARK: Answers

  private static func refusal(_ text: String) -> DialogError { RTCError.command.error(text, scope: .command) }

  /// Posts what came of a command; without an id only a failure.
  private func answer(_ id: String?, _ error: DialogError?) {
    var error = error
    error?.scope = .command
    if let id {
      let result: DialogAnswer.Result = if let error { .failed(error) } else { .done(nil) }
      context.post(.answer(DialogAnswer(id, result)))
    } else if let error {
      context.post(.error(error))
    }
  }

  private func take(_ bytes: [UInt8]) {
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      return answer(nil, Self.refusal("invalid command: \(error)"))
    }
    // The wish of a decoder, or of another node of the family.
    if json["event"]?.string == "extra", json["name"]?.string == "keyframeRequested" {
      _ = call.requestKeyFrames()
      return
    }
    do throws(JSONFormProblem) {
      guard case .command(let command, let id)? = try DialogControl.read(json) else { return }
      obey(command, id)
    } catch {
      answer(DialogControl.id(of: json), Self.refusal("invalid command: \(error)"))
    }
  }

  private func obey(_ command: DialogCommand, _ id: String?) {
    if let id, unanswered.contains(id) {
      return answer(
        id, Self.refusal("the command before it with the same \"id\" is not answered yet; use another"))
    }
    guard unanswered.count < Self.mostUnanswered else {
      return answer(
        id, Self.refusal("\(Self.mostUnanswered) commands wait for their answers; wait for some of them"))
    }
    if case .hangUp(nil, _) = command {
      answer(id, nil)
      return call.hangUp()
    }
    // Also where the signalling takes it: later attempts begin with it, and it is a secret.
    if case .refreshAuth(let token?) = command, context.settings.takesToken, Self.isToken(token) {
      call.use(token: token)
    }
    if let id { unanswered.insert(id) }
    let isTaken =
      call.signalling?.perform(command) { [weak call = self.call] error in
        call?.finish(command: { $0.finish(id, error) })
      } ?? false
    if isTaken { return }
    if let id { unanswered.remove(id) }
    answer(id, local(command))
  }

  /// The signalling has carried a command out. The call may have ended, and answered it, before.
  private func finish(_ id: String?, _ error: DialogError?) {
    guard !call.isOver else { return }
    if let id, unanswered.remove(id) == nil { return }
    answer(id, error)
    context.entry?.wake()
  }

  // MARK: What needs no signalling

  /// Carries a command out here. Returns why it cannot be.
  private func local(_ command: DialogCommand) -> DialogError? {
    switch command {
    case .mute(let track, let isOn, let peer): mute(track, isOn, peer)
    case .publish(let track, let isOn): publish(track, isOn)
    case .subscribe(let peers, let track, let isOn): subscribe(peers, track, isOn)
    case .update(let values): update(values)
    case .data(let data): send(data)
    case .refreshAuth(let token): refresh(token)
    case .hangUp: Self.refusal("there is one call only; leave \"call\" out")
    case .extra("requestKeyFrame", let payload): call.requestKeyFrames(place: payload["medium"]?.integer)
    case .extra("dtmf", let payload): dial(payload)
    case .extra(let name, _) where call.signalling == nil:
      Self.refusal("\"\(name)\" has come between two attempts to connect; it is discarded")
    case .extra(let name, _):
      Self.refusal("\"\(name)\" is not supported; there are requestKeyFrame and dtmf")
    default: Self.refusal("\"\(command.name)\" is not supported by this form of signalling")
    }
  }

  private func mute(_ track: DialogTrack, _ isOn: Bool, _ peer: String?) -> DialogError? {
    guard track == .audio || track == .video else {
      return Self.refusal("only audio and video can be muted, and not \"\(track.rawValue)\"")
    }
    guard let peer else {
      call.mute(track, isOn)
      return nil
    }
    return hear(track, !isOn, call.sessions.filter { $0.peer == peer }, "no peer \"\(peer)\" is there")
  }

  private func publish(_ track: DialogTrack, _ isOn: Bool) -> DialogError? {
    if let problem = mute(track, !isOn, nil) { return problem }
    context.post(.track(track, isOn ? .published : .unpublished))
    return nil
  }

  private func subscribe(_ peers: DialogPeers, _ track: DialogTrack, _ isOn: Bool) -> DialogError? {
    guard track == .audio || track == .video else {
      return Self.refusal("only audio and video can be subscribed to, and not \"\(track.rawValue)\"")
    }
    switch peers {
    case .all:
      call.hears(track, isOn)
      return hear(track, isOn, call.sessions, nil)
    case .new:
      call.hears(track, isOn)
      return nil
    case .one(let peer):
      return hear(track, isOn, call.sessions.filter { $0.peer == peer }, "no peer \"\(peer)\" is there")
    }
  }

  private func hear(
    _ track: DialogTrack, _ isOn: Bool, _ sessions: [CallSession], _ problem: String?
  ) -> DialogError? {
    if sessions.isEmpty, let problem { return Self.refusal(problem) }
    for session in sessions {
      if track == .audio { session.isSoundMuted = !isOn } else { session.arePicturesMuted = !isOn }
    }
    return nil
  }

  /// `{bitrate, videoBitrate}` in bits a second.
  private func update(_ values: JSONValue) -> DialogError? {
    guard let members = values.members, !members.isEmpty else {
      return Self.refusal("\"values\" must have \"bitrate\" or \"videoBitrate\", in bit/s")
    }
    var limits: [String: Int] = [:]
    for member in members {
      guard member.name == "bitrate" || member.name == "videoBitrate" else {
        return Self.refusal("\"\(member.name)\" cannot be changed; \"bitrate\" and \"videoBitrate\" can")
      }
      let range = member.name == "bitrate" ? 6_000...510_000 : 10_000...100_000_000
      guard let value = member.value.integer, range.contains(value) else {
        return Self.refusal(
          "\"\(member.name)\" must be \(range.lowerBound) to \(range.upperBound) bit/s")
      }
      limits[member.name] = value
    }
    call.setLimits(sound: limits["bitrate"], pictures: limits["videoBitrate"])
    return nil
  }

  private func send(_ data: DialogData) -> DialogError? {
    var sessions = call.sessions
    if let peer = data.peer {
      sessions = sessions.filter { $0.peer == peer }
      guard !sessions.isEmpty else { return Self.refusal("no peer \"\(peer)\" is there") }
    }
    return switch data.content {
    case .text(let text): call.send(Array(text.utf8), isText: true, label: data.label, to: sessions)
    case .bytes(let bytes): call.send(bytes, isText: false, label: data.label, to: sessions)
    }
  }

  private static func isToken(_ token: String) -> Bool {
    !token.isEmpty && CredentialText.isHeaderValue(token)
  }

  private func refresh(_ token: String?) -> DialogError? {
    guard context.settings.takesToken else {
      return Self.refusal(
        "this node has no key that can be replaced while it runs; restart it with another \"bearer\"")
    }
    guard let token, Self.isToken(token) else {
      return Self.refusal("\"refreshAuth\" needs a \"token\" without control characters")
    }
    call.use(token: token)
    return nil
  }

  /// `{digits, ms}`.
  private func dial(_ payload: JSONValue) -> DialogError? {
    let range = Self.toneMilliseconds
    let milliseconds = payload["ms"] == nil ? 100 : payload["ms"]?.integer ?? -1
    guard range.contains(milliseconds) else {
      return Self.refusal("\"ms\" of dtmf must be \(range.lowerBound) to \(range.upperBound)")
    }
    let digits = payload["digits"]?.string?.uppercased() ?? ""
    guard !digits.isEmpty, digits.utf8.count <= Self.mostDigits,
      digits.allSatisfy({ "0123456789*#ABCD".contains($0) })
    else {
      return Self.refusal("\"digits\" of dtmf must be 1 to \(Self.mostDigits) of 0-9, *, #, A-D")
    }
    var isTaken = false
    for session in call.sessions where session.isConnected {
      isTaken = session.session?.send(tones: digits, milliseconds: milliseconds) == true || isTaken
    }
    return isTaken ? nil : Self.refusal("no session takes digits (telephone-event); nothing is sent")
  }
}
