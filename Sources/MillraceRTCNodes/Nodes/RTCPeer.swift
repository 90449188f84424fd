public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceService

/// `rtc.peer`: a session with one other side by offer and answer, in an open room (Documentation/room.md), or over links of the graph.
///
/// - In `audio`, `video`, `data`: what is sent; out: what the other side sends. `control`: commands.
/// - With `url`: the other side is a member of a room, named by `peer` or `with`, or the first one that answers. The hub need not carry
///   media.
/// - Without: `events` says to the other side, and `control` hears from it, `extra` `sdp`, `candidate` and `hangUp` (`LinkMessage`); how
///   they get there is up to the graph. The node that `offers` begins, and ends with its session; the other waits for offers, and
///   continues after each session. What the other side says wrongly is an event `error`, and changes nothing.
/// - An interrupted network is followed by an ICE restart, then by another session; lost connections and refusals are handled as by
///   `rtc.whip`.
/// - Lane `external`; calls do not allocate, but for what is said to the other side. `RTCPorts` and `RTCCall` do the rest.
public struct RTCPeer: Node, ~Copyable {
  private var session: RTCPorts
  /// Nil: in a room.
  private var link: PeerLink?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let (kept, parameters) = (copy setup, setup.parameters)
    let media = RTCCallParameters.media(setup, sends: true, receives: true)
    let isInRoom = PeerForm.isInRoom(parameters)
    var settings = try RTCCallParameters.settings(setup, media)
    settings.takesToken = isInRoom
    if isInRoom { settings.signal += .milliseconds(Int64(RoomPeerClient.grace)) }
    let call = settings
    let outbox = PeerOutbox(limit: parameters.integer("eventBytes"), waker: kept.waker)
    let ports = try RTCPorts(
      kept, RTCPorts.Inputs(audio: 0, video: 1, data: 2, control: isInRoom ? PeerForm.control : nil),
      RTCPorts.Outputs(audio: 0, video: 1, data: 2)
    ) { (exchange) throws(NodeProblem) in
      guard isInRoom else {
        let form = PeerForm.link(parameters, media)
        return try RTCNodeCall(kept, exchange, call) { _ in
          .success(LinkSignalling(form) { message in outbox.put(message) })
        }
      }
      let form = try RoomForm.client(parameters, media)
      let choice = PeerForm.choice(parameters)
      let latest = Locked<RoomPeerClient?>(nil)
      return try RTCNodeCall(kept, exchange, call) { attempt in
        var form = form
        if let token = attempt.token { form.token = token }
        // What commands have changed holds for the attempts to come.
        form.wishes = latest.withLock { $0 }?.wishes
        let client = RoomPeerClient(form, with: choice)
        latest.withLock { $0 = client }
        return .success(client)
      }
    }
    let exchange = ports.exchange
    session = ports
    let isHeard = kept.inputs[PeerForm.control].isLinked
    link = isInRoom ? nil : PeerLink(exchange, outbox, input: isHeard ? PeerForm.control : nil)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isFed = signal(&ports)
    do throws(NodeFault) {
      let outcome = try session.process(&ports)
      if outcome == .ended { link?.post(&ports) }
      return isFed && outcome == .done ? .again : outcome
    } catch {
      link?.post(&ports)
      throw error
    }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    _ = signal(&ports)
    do throws(NodeFault) {
      let outcome = try session.finish(&ports)
      if outcome == .ended { link?.post(&ports) }
      return outcome
    } catch {
      link?.post(&ports)
      throw error
    }
  }

  /// Signalling in both directions. True when something has come.
  private mutating func signal(_ ports: inout Ports) -> Bool {
    guard link != nil else { return false }
    link?.post(&ports)
    let isFed = link?.feed(&ports) ?? false
    if isFed { ports.wake(at: ports.now) }
    return isFed
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    session.receive(message, &ports)
  }

  public mutating func interrupted(_ ports: inout Ports) { session.interrupted(&ports) }

  public borrowing func explain(_ fault: NodeFault) -> String? { session.explain(fault) }

  public static let contract = RTCPortContracts.contract(
    "rtc.peer", "a session with one other side, in an open room or over links of the graph",
    text: """
      With `url` the other side is a member of a room of a hub, which passes descriptions on and need not carry media. Without, what both \
      sides have to say to each other are events `extra` `sdp`, `candidate` and `hangUp` at `events` and `control`, which the graph \
      carries: over a WebSocket, through a process, or from one node to another.
      """,
    inputs: [
      RTCPortContracts.audioIn, RTCPortContracts.videoIn, RTCPortContracts.dataIn, PeerForm.controlIn,
    ],
    outputs: [RTCPortContracts.audioOut, RTCPortContracts.videoOut, RTCPortContracts.dataOut],
    parameters: PeerForm.parameters,
    examples: [
      #"{ "type": "rtc.peer", "offers": true }"#,
      #"{ "type": "rtc.peer", "url": "wss://rooms.example.org", "room": "desk", "user": "bot", "with": "ann", "token": "${env:ROOM_TOKEN}" }"#,
    ],
    resolve: { PeerForm.resolve(&$0) })
}
