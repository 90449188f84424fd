internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTCSignal
internal import MillraceService

/// The session of a node of WHIP or WHEP, whose endpoint may come while the graph runs.
///
/// - With the input `address` linked, each address there gets a session of its own, in place of the one before, whose resource is released.
///   The same address changes nothing while its session lives. Without an address the inputs are discarded.
/// - A session that fails then does not fail the node: the error was posted, and the node waits for another address.
/// - What arrives there is a secret of the graph before anything shows it.
///
/// On the node's thread. A call does not allocate, but for an address, which begins a session as the start of the graph does.
struct HTTPSession: ~Copyable {
  private let form: HTTPForm
  private let setup: NodeSetup
  /// The input `address`, if it is linked.
  private let address: Int?
  private let isEvent: Bool
  private var session: SessionPorts?
  private var endpoint: String?

  init(_ form: HTTPForm, _ setup: borrowing NodeSetup) throws(NodeProblem) {
    let kept = copy setup
    let address = kept.inputs[HTTPForm.address].isLinked ? HTTPForm.address : nil
    // Not only with the first address that comes.
    try RTCCallParameters.checkInterfaces(kept.parameters)
    try RTCCallParameters.checkFiles(kept.parameters)
    let endpoint = kept.parameters.given("url")
    var session: SessionPorts?
    if endpoint != nil || kept.parameters.has("listen") {
      session = SessionPorts(try form.ports(kept, endpoint))
    }
    self.form = form
    self.setup = kept
    self.address = address
    isEvent = kept.inputs[HTTPForm.address].shape?.format.kind == .event
    self.endpoint = endpoint
    self.session = session
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    follow(&ports)
    guard let session else {
      discard(&ports)
      return isOver(ports) ? .ended : .done
    }
    do throws(NodeFault) {
      let outcome = try session.ports.process(&ports)
      guard outcome == .ended, address != nil else { return outcome }
    } catch {
      guard address != nil, session.ports.explain(error) != nil else { throw error }
    }
    leave()
    return .again
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let session else { return .ended }
    do throws(NodeFault) { return try session.ports.finish(&ports) } catch {
      guard address != nil, session.ports.explain(error) != nil else { throw error }
      return .ended
    }
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) {
    session?.ports.receive(message, &ports)
  }

  mutating func interrupted(_ ports: inout Ports) {
    session?.ports.interrupted(&ports)
  }

  borrowing func explain(_ fault: NodeFault) -> String? { session?.ports.explain(fault) }

  // MARK: Addresses

  private mutating func follow(_ ports: inout Ports) {
    guard let address else { return }
    while ports.hasPacket(address), let packet = ports.next(address) {
      let request = EndpointRequest(packet, isEvent: isEvent)
      switch request {
      case .nothing: break
      case .end: leave()
      case .refused(let text): refuse(text, &ports)
      case .begin(let url): begin(url, &ports)
      }
    }
  }

  private mutating func begin(_ url: String, _ ports: inout Ports) {
    guard url != endpoint || session == nil else { return }
    setup.secrets.learn(url, as: .address)
    do throws(NodeProblem) {
      let next = SessionPorts(try form.ports(setup, url))
      leave()
      session = next
      endpoint = url
    } catch {
      refuse(error.description, &ports)
    }
  }

  /// Ends the session; its resource is released by another thread.
  private mutating func leave() {
    session = nil
    endpoint = nil
  }

  /// Without a session, nothing that comes has somewhere to go.
  private func discard(_ ports: inout Ports) {
    for input in 0..<HTTPForm.address { while ports.next(input) != nil {} }
  }

  private func isOver(_ ports: borrowing Ports) -> Bool {
    guard let address, !ports.isDraining, !ports.isOver(address) else { return true }
    var hasSources = false
    for input in 0...2 where ports.isLinked(input: input) {
      hasSources = true
      if !ports.isOver(input) { return false }
    }
    return hasSources
  }

  private func refuse(_ text: String, _ ports: inout Ports) {
    let bytes = Array(setup.secrets.redacting(text).utf8)
    ports.post(MessagePorts.errorEvent) { event in
      event.field("vendor", "rtc")
      event.field("name", "command")
      event.field("category", "request")
      event.field("reaction", "continue")
      event.field("scope", "command")
      event.field("text", utf8: bytes.span)
    }
  }
}

/// The ports of a session, behind a reference: a session comes and goes within the node's life.
private final class SessionPorts {
  var ports: RTCPorts

  init(_ ports: consuming RTCPorts) { self.ports = ports }
}
