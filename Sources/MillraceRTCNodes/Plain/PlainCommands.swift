internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal

/// Carries out the commands of a node `rtc.rtp`, each at once; one with an `id` is answered exactly once. On the thread of the call's loop.
struct PlainCommands {
  /// Commands in one run.
  private static let mostInRun = 64
  /// Milliseconds of a digit: RFC 4733 section 2.5.2.3 has at least 40 ms on the telephone network; a key may be held.
  private static let toneMilliseconds = 40...6_000
  /// Digits in one command.
  private static let mostDigits = 64

  private unowned let call: PlainCall
  private let context: CallContext

  init(_ call: PlainCall, _ context: CallContext) {
    self.call = call
    self.context = context
  }

  /// Carries out what has come. True when more waits.
  func run() -> Bool {
    let queue = context.exchange.commands
    for _ in 0..<Self.mostInRun {
      guard !context.isCrowded, !call.isOver, let record = queue.peek() else { break }
      let bytes = unsafe Array(record.bytes)
      queue.drop(record)
      take(bytes)
    }
    if queue.takeRequest() { context.exchange.waker.wake() }
    return !context.isCrowded && !call.isOver && queue.peek() != nil
  }

  /// The call is over: what waits never will be carried out. Called until the end is reported, for what comes meanwhile; after that the
  /// node answers by itself.
  func end(_ failure: DialogError?) {
    let reason = failure ?? RTCError.ended.error("the call has ended", reaction: .continue)
    let queue = context.exchange.commands
    while !context.isCrowded, let record = queue.peek() {
      let bytes = unsafe Array(record.bytes)
      queue.drop(record)
      do throws(JSONProblem) {
        if let id = DialogControl.id(of: try JSONValue(parsing: bytes)) { answer(id, reason) }
      } catch { continue }
    }
    if queue.takeRequest() { context.exchange.waker.wake() }
  }

  // MARK: Answers

  private static func refusal(_ text: String) -> DialogError { RTCError.command.error(text, scope: .command) }

  /// Posts what came of a command; without an id only a failure.
  private func answer(_ id: String?, _ error: DialogError?) {
    var error = error
    error?.scope = .command
    if let id {
      context.post(.answer(DialogAnswer(id, error.map { .failed($0) } ?? .done(nil))))
    } else if let error {
      context.post(.error(error))
    }
  }

  private func take(_ bytes: [UInt8]) {
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      return answer(nil, Self.refusal("invalid command: \(error)"))
    }
    do throws(JSONFormProblem) {
      guard case .command(let command, let id)? = try DialogControl.read(json) else { return }
      obey(command, id)
    } catch {
      answer(DialogControl.id(of: json), Self.refusal("invalid command: \(error)"))
    }
  }

  private func obey(_ command: DialogCommand, _ id: String?) {
    guard case .hangUp(let named, _) = command else { return answer(id, error(of: command)) }
    guard named == nil else {
      return answer(id, Self.refusal("there is one call only; leave \"call\" out"))
    }
    answer(id, nil)
    call.hangUp()
  }

  /// Carries a command out. Returns why it cannot be.
  private func error(of command: DialogCommand) -> DialogError? {
    switch command {
    case .mute(let track, let isOn, .none): mute(track, isOn)
    case .publish(let track, let isOn): publish(track, isOn)
    case .subscribe(.all, let track, let isOn), .subscribe(.new, let track, let isOn): hear(track, isOn)
    case .mute, .subscribe: Self.refusal("peers have no names here; leave \"peer\" out")
    case .update(let values): update(values)
    case .extra("requestKeyFrame", _): requestKeyFrame()
    case .extra("dtmf", let payload): dial(payload)
    case .extra(let name, _):
      Self.refusal("\"\(name)\" is not supported; there are requestKeyFrame and dtmf")
    default: Self.refusal("\"\(command.name)\" is not supported by plain RTP")
    }
  }

  // MARK: Commands

  private static func isMedium(_ track: DialogTrack) -> Bool { track == .audio || track == .video }

  private func mute(_ track: DialogTrack, _ isOn: Bool) -> DialogError? {
    guard Self.isMedium(track) else {
      return Self.refusal("only audio and video can be muted, and not \"\(track.rawValue)\"")
    }
    call.mute(track, isOn)
    return nil
  }

  private func publish(_ track: DialogTrack, _ isOn: Bool) -> DialogError? {
    if let problem = mute(track, !isOn) { return problem }
    context.post(.track(track, isOn ? .published : .unpublished))
    return nil
  }

  private func hear(_ track: DialogTrack, _ isOn: Bool) -> DialogError? {
    guard Self.isMedium(track) else {
      return Self.refusal("only audio and video can be subscribed to, and not \"\(track.rawValue)\"")
    }
    call.hear(track, isOn)
    return nil
  }

  private func requestKeyFrame() -> DialogError? {
    call.requestKeyFrame()
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
    return call.dial(digits, milliseconds: milliseconds)
      ? nil : Self.refusal("digits cannot be sent: nothing is linked to \"audio\", or too many wait")
  }
}
