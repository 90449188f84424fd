internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCWire

/// The signalling of the present attempt of a call. On the thread of the call's loop.
struct CallSignals {
  private let loop: RTCLoop
  private var ending: EndingAttempt? {
    willSet { ending?.isAwaited = false }
  }
  /// Nil: none has begun, or it is ending.
  private(set) var current: (any Signalling)?
  /// Of the present attempt, from 1.
  private(set) var number = 0
  private(set) var begunAt: Nanoseconds = 0
  /// For the attempts to come; nil: that of the parameters.
  var token: String?

  init(_ loop: RTCLoop) { self.loop = loop }

  var traits: SignalTraits? { current?.traits }

  mutating func next(at now: Nanoseconds) -> RTCCallAttempt {
    number += 1
    begunAt = now
    return RTCCallAttempt(number: number, token: token)
  }

  mutating func begin(_ made: any Signalling, _ report: @escaping @Sendable (SignalEvent) -> Void) {
    current = made
    made.begin(report)
  }

  /// Ends it; `CallInput.signallingEnded` follows, unless another attempt has begun before.
  mutating func end(_ context: CallContext) {
    guard let old = current else { return context.note(.signallingEnded) }
    current = nil
    let waiting = EndingAttempt(context)
    let loop = loop
    old.end { loop.perform { waiting.end() } }
    ending = waiting
  }

  /// Ends it without waiting.
  mutating func drop() {
    current?.end {}
    current = nil
  }

  // MARK: Sessions

  /// Hands the description over; candidates may follow it.
  func describe(_ session: CallSession) {
    session.isDescribed = true
    current?.describe(session.id, sdp: session.description)
  }

  func restart(_ session: CallSession) { current?.restart(session.id, sdp: session.description) }

  /// Tells the other side that its latest offer for a session that runs is refused.
  func refuse(_ id: SignalSessionID, _ error: DialogError) {
    if let kind = error.name.flatMap({ RTCError(rawValue: $0) }) { current?.refuse(id, kind, error.text) }
  }

  func send(candidatesOf sessions: [CallSession]) {
    for session in sessions {
      for candidate in session.takeCandidates() { current?.add(candidate?.text, to: session.id) }
    }
  }

  /// Releases the place of a session at the other side, which learns why where it still waits for an answer.
  func end(_ id: SignalSessionID, _ error: DialogError?) {
    if let error, let kind = error.name.flatMap({ RTCError(rawValue: $0) }) {
      (current as? ResourceServer)?.refuse(id, kind, error.text)
    }
    current?.end(id)
  }
}

/// A signalling whose end is waited for. On the thread of the call's loop.
private final class EndingAttempt: @unchecked Sendable {
  private let context: CallContext
  /// False: another attempt has ended since.
  var isAwaited = true

  init(_ context: CallContext) { self.context = context }

  func end() { if isAwaited { context.note(.signallingEnded) } }
}
