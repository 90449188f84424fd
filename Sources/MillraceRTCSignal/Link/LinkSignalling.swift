internal import MillraceCore
package import MillraceDialog
internal import MillraceJSON
internal import MillraceNet

/// How `LinkSignalling` takes part.
package struct LinkSettings: Sendable {
  /// What an offer of this side carries.
  package var media: SignalMedia
  /// This side begins; otherwise it waits for an offer.
  package var offers = false
  /// When both sides offer at once, this one takes its offer back. Exactly one of two sides that offer must.
  package var isPolite = true
  /// Candidates that are found after the description are sent.
  package var isTrickle = true

  package init(media: SignalMedia) { self.media = media }
}

/// Signalling with one other side over something that carries messages both ways, and of which this knows nothing: links of a graph, a
/// socket, a pipe.
///
/// - What this side says goes to a closure. What the other side says comes as a command `extra` with a name of `LinkMessage.names`, which
///   is refused with an error that says what is wrong with it: a description that cannot be read, an answer without an offer.
/// - A side that offers is a client: its session 0 is the call, another attempt offers again, and a lost offer is one without an answer.
/// - A side that waits is a server, of one client at a time: sessions have numbers from 1, and a new offer takes the place of the session
///   before. A side that takes its offer back in favour of the other's waits from then on.
/// - The other side learns of the end by `LinkMessage.hangUp`, also where the network of the media is gone.
///
/// Works on the network thread, where it reports, and calls the closure; only a network thread that cannot be started is reported from
/// within `begin`. A few allocations for each message.
package final class LinkSignalling: Signalling {
  private struct State {
    var machine: LinkMachine
    var report: (@Sendable (SignalEvent) -> Void)?
    var hasBegun = false
    var isRunning = false
  }

  /// Random bytes of a session's name.
  private static let nameBytes = 8

  private let isTrickle: Bool
  private let send: @Sendable (LinkMessage) -> Void
  private let state: Locked<State>

  /// - Parameter send: takes what this side says, in order. Called on the network thread; must not block.
  package init(_ settings: LinkSettings, send: @escaping @Sendable (LinkMessage) -> Void) {
    isTrickle = settings.isTrickle
    self.send = send
    let name = SecretText.random(bytes: Self.nameBytes)
    state = Locked(State(machine: LinkMachine(settings, name: name)))
  }

  package var traits: SignalTraits {
    SignalTraits(
      isTrickle: isTrickle, canRestart: true, isServer: state.withLock { $0.machine.waits })
  }

  // MARK: Any thread

  package func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    let isFirst = state.withLock { state in
      guard !state.hasBegun else { return false }
      state.hasBegun = true
      return true
    }
    guard isFirst else { return }
    do throws(NetError) { try NetLoop.begin() } catch { return report(.closed(SignalStatus.error(error))) }
    state.withLock { state in
      state.report = report
      state.isRunning = true
    }
    pass(.begin)
  }

  package func describe(_ session: SignalSessionID, sdp: String) { pass(.describe(session.number, sdp: sdp)) }

  package func add(_ candidate: String?, to session: SignalSessionID) {
    pass(.candidate(session.number, candidate))
  }

  package func restart(_ session: SignalSessionID, sdp: String) { pass(.restart(session.number, sdp: sdp)) }

  package func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {
    pass(.refuse(session.number, error))
  }

  package func end(_ session: SignalSessionID) { pass(.ended(session.number)) }

  package func perform(
    _ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void
  ) -> Bool {
    guard case .extra(let name, let payload) = command, LinkMessage.names.contains(name), isRunning else {
      return false
    }
    NetLoop.shared.run { [self] in
      do throws(JSONFormProblem) {
        let message = try LinkMessage(name, payload)
        done(handle(.message(message)))
      } catch {
        done(RTCError.command.error("the other side's \"\(name)\" cannot be read: \(error)", scope: .command))
      }
    }
    return true
  }

  package func end(_ done: @escaping @Sendable () -> Void) {
    guard isRunning else { return done() }
    NetLoop.shared.run { [self] in
      state.withLock { $0.report = nil }
      _ = handle(.end)
      done()
    }
  }

  private var isRunning: Bool { state.withLock { $0.isRunning } }

  private func pass(_ input: LinkInput) {
    guard isRunning else { return }
    NetLoop.shared.run { [self] in _ = handle(input) }
  }

  // MARK: The network thread

  /// Gives an input to the machine, and carries out what it asks for. Returns why a message was not taken.
  private func handle(_ input: LinkInput) -> DialogError? {
    let (steps, report) = state.withLock { ($0.machine.handle(input), $0.report) }
    var refusal: DialogError?
    for step in steps {
      switch step {
      case .send(let message): send(message)
      case .report(let event): report?(event)
      case .refuse(let error): refusal = error
      }
    }
    return refusal
  }
}
