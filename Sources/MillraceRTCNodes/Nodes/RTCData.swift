public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTC
internal import MillraceService
internal import Synchronization

/// `rtc.data`: a data channel of the sessions of another node of the graph.
///
/// - In `data`: messages to send, one a packet; out `data`: text messages that come.
/// - The channel is opened in every session of the node `of`, and again in every new one; with several sessions a message goes to all. What
///   is sent without a session waits in its link. A message of more than `largest` bytes is refused, and one of more than `warn` reported;
///   between two there are at least `every` ms, and what comes earlier waits.
/// - Messages that are lost on either side, for want of room or because the peer does not take them, are reported at most once a second.
/// - It ends with the node `of`, with its message if that has failed. The end of its inputs closes the channel.
/// - Lane `external`; calls do not allocate.
public struct RTCData: Node, ~Copyable {
  private let link: DataLink
  private let attachment: DataAttachment
  private var messages: MessagePorts
  /// Between two messages.
  private let interval: Nanoseconds
  private var nextAt: Nanoseconds = .min
  private let isInputLinked: Bool
  private var wasOpen = false
  private var reported = 0
  private var throttle = EventThrottle()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let (name, graph) = (setup.name, setup.graph)
    let of = parameters.string("of")
    let target = try DataForm.target(of, from: name, in: graph)
    let link = DataLink(
      label: parameters.given("label") ?? name, delivery: DataForm.delivery(parameters), waker: setup.waker)
    attachment = try DataAttachment(link, to: target)
    self.link = link
    let largest = parameters.integer("largest")
    messages = MessagePorts(
      up: link.up, down: link.down, input: setup.inputs[0].isLinked ? 0 : nil,
      output: setup.outputs[0].isLinked ? 0 : nil, largestUp: largest, largestDown: DataLink.messageBytes,
      warnAbove: parameters.integer("warn"))
    interval = .milliseconds(Int64(parameters.integer("every")))
    isInputLinked = setup.inputs[0].isLinked
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = link.end.isReported
    if try work(&ports) { return .again }
    if isOver, link.down.peek() == nil { return try conclude(&ports) }
    if ports.isDraining, !isInputLinked { reportOver() }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    ports.wake(at: ports.now + .milliseconds(250))
    let isOver = link.end.isReported
    if try work(&ports) { return .again }
    if isOver, link.down.peek() == nil { return try conclude(&ports) }
    reportOver()
    return .again
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { link.end.explain(fault) }

  private mutating func work(_ ports: inout Ports) throws(NodeFault) -> Bool {
    postOpen(&ports)
    reportLost(&ports)
    let isDue = ports.now >= nextAt
    let work = try messages.work(&ports, sends: isDue)
    if work.sent { nextAt = ports.now &+ interval }
    if work.sent || work.wantsMore { link.wakeSessions() }
    if work.isAny {
      ports.wake(at: ports.now)
    } else if !isDue, isInputLinked, ports.hasPacket(0) {
      ports.wake(at: nextAt)
    }
    return work.isAny
  }

  private mutating func postOpen(_ ports: inout Ports) {
    let isOpen = link.channels.load(ordering: .relaxed) > 0
    guard isOpen != wasOpen else { return }
    wasOpen = isOpen
    if isOpen { ports.post(Self.connectedEvent) }
  }

  private mutating func reportLost(_ ports: inout Ports, isLast: Bool = false) {
    let lost = link.lostUp.load(ordering: .relaxed) + link.lostDown.load(ordering: .relaxed)
    let count = lost - reported
    guard count > 0, throttle.allows(at: ports.now, isLast: isLast) else { return }
    reported = lost
    ports.post(MessagePorts.errorEvent) { event in
      event.field("vendor", "rtc")
      event.field("name", "sctpFailed")
      event.field("category", "network")
      event.field("reaction", "continue")
      event.field("scope", "connection")
      event.field("count", count)
      event.field("text", "messages were lost: there was no room for them, or the peer does not take them")
    }
  }

  private func reportOver() {
    guard !link.isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    link.wakeSessions()
  }

  private mutating func conclude(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    messages.conclude(&ports)
    reportLost(&ports, isLast: true)
    return try link.end.conclude()
  }

  /// The index of `connected`.
  private static let connectedEvent = DialogEvent.contracts.firstIndex { $0.name == "connected" } ?? 0

  public static let contract = RTCPortContracts.contract(
    "rtc.data", "a data channel of the sessions of another rtc node",
    text: """
      Messages beside sound and pictures, in a channel of their own: in order and complete, or with a limited time or number of \
      attempts. The peer sees the channel by its `label`. `connected` tells that it is open.
      """,
    inputs: [RTCPortContracts.dataIn], outputs: [RTCPortContracts.dataOut], parameters: DataForm.parameters,
    examples: [
      #"{ "type": "rtc.data", "of": "call", "label": "captions" }"#,
      #"{ "type": "rtc.data", "of": "call", "label": "pointer", "ordered": false, "retransmits": 0, "every": 0 }"#,
    ],
    resolve: { DataForm.resolve(&$0) })
}
