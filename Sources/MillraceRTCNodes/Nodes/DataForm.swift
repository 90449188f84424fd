internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTC
internal import MillraceService
internal import Synchronization

/// The parameters of `rtc.data`, their checks, and what they mean.
enum DataForm {
  static let parameters: [ParameterContract] = [
    ParameterContract(
      "of", .string, required: true,
      text: "name of the rtc node of this graph whose sessions have the channel"
    ).naming(NodeReference(to: hosts, distinct: "label")),
    ParameterContract("label", .string, text: "what the peer knows the channel by; default: the node's name"),
    ParameterContract("ordered", .bool, default: true, text: "true: messages arrive in their order"),
    ParameterContract(
      "lifetime", .integer(0...65_535), unit: "ms",
      text: "a message is given up after this time; default: never"),
    ParameterContract(
      "retransmits", .integer(0...65_535),
      text: "a message is given up after so many repetitions; default: never"),
    ParameterContract(
      "largest", .integer(1...262_144), unit: "bytes", default: 51_200,
      text: "a larger message to send is refused"),
    ParameterContract(
      "warn", .integer(0...262_144), unit: "bytes", default: .integer(usualWarning),
      text: "a larger message to send is reported as `extra` `largeMessage`; 0: never"),
    ParameterContract(
      "every", .integer(0...60_000), unit: "ms", default: 50,
      text: "shortest time between two messages; what comes earlier waits"),
    ServiceParameters.eventBytes,
  ]

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.given("of") == nil {
      resolution.refuse("of", "the name of a node is empty", cure: "set it to the name of an rtc node")
    }
    if parameters.has("lifetime") && parameters.has("retransmits") {
      resolution.refuse(
        "retransmits", "a channel is limited by time or by repetitions, and not by both",
        cure: "leave \"lifetime\" or \"retransmits\" out")
    }
    if let label = parameters.given("label"), label.utf8.count > mostLabelBytes {
      resolution.refuse(
        "label", "the label has \(label.utf8.count) bytes", cure: "use at most \(mostLabelBytes)")
    }
    let (largest, warn) = (parameters.integer("largest"), parameters.integer("warn"))
    if warn > largest, warn != usualWarning {
      resolution.refuse(
        "warn", "\"warn\" is \(warn) bytes and \"largest\" \(largest): no message is sent that is reported",
        cure: "set \"warn\" below \"largest\", or to 0")
    }
    resolution.pacing = .live
    resolution.outputs["data"] = OutputShape(
      .text, packetDuration: nil, packetBytes: DataLink.messageBytes, burst: 0)
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: parameters.integer("eventBytes") + 256)
  }

  /// Bytes from which a message is reported unless a graph says otherwise.
  private static let usualWarning = 4_096
  /// Bytes of the longest label: far below the 65,535 of RFC 8832 section 5.1, and shown in events.
  private static let mostLabelBytes = 256

  /// How messages are delivered.
  static func delivery(_ parameters: ParameterValues) -> SCTPAssociation.Delivery {
    var delivery = SCTPAssociation.Delivery()
    delivery.isOrdered = parameters.bool("ordered")
    if parameters.has("lifetime") {
      delivery.reliability = .lifetime(milliseconds: UInt32(clamping: parameters.integer("lifetime")))
    } else if parameters.has("retransmits") {
      delivery.reliability = .retransmissions(UInt32(clamping: parameters.integer("retransmits")))
    }
    return delivery
  }

  /// Types of nodes with sessions that have data channels.
  private static let hosts = ["rtc.whip", "rtc.whep", "rtc.rts", "rtc.janus", "rtc.peer"]

  /// The node whose sessions have the channel.
  /// - Throws: that there is none, and which there are.
  static func target(
    _ name: String, from reader: String, in graph: GraphIdentity
  ) throws(NodeProblem) -> (member: GraphIdentity.Member, graph: GraphIdentity) {
    let found = graph.node(name, from: reader)
    if let found, hosts.contains(found.member.type) { return found }
    let known = graph.visible.filter { hosts.contains($0.type) }.map { "\"\($0.name)\"" }
    let wrong =
      found.map { "\"\(name)\" is of type \($0.member.type), which has no sessions" }
      ?? "there is no node \"\(name)\""
    throw NodeProblem(
      wrong, parameter: "of",
      cure: known.isEmpty
        ? "add one of \(hosts.joined(separator: ", "))" : "set it to \(known.joined(separator: " or "))")
  }
}

/// A link that is attached to the call of another node as soon as that is there, and leaves it when this is released.
final class DataAttachment: Sendable {
  private let link: DataLink
  private let call: Locked<RTCCall?>
  private let observation: GraphIdentity.Observation

  /// - Parameters:
  ///   - link: one that is attached to nothing yet.
  ///   - target: the node with the call.
  /// - Throws: when the call is there, and has a channel of this name.
  init(
    _ link: DataLink, to target: (member: GraphIdentity.Member, graph: GraphIdentity)
  ) throws(NodeProblem) {
    let (call, problem) = (Locked<RTCCall?>(nil), Locked<NodeProblem?>(nil))
    observation = target.graph.observe(target.member.name) { thing in
      // A link serves one call: that of a node which was restarted is for nodes that are restarted, too.
      guard let found = thing as? RTCCall, call.withLock({ $0 }) == nil else { return }
      do throws(NodeProblem) {
        try found.attach(link)
        call.withLock { $0 = found }
      } catch {
        problem.withLock { $0 = error }
        link.end.report(SessionEnd.Failure(NodeFault(.gone), error.description))
      }
    }
    self.link = link
    self.call = call
    if let problem = problem.withLock({ $0 }) { throw problem }
  }

  deinit {
    if let call = call.withLock({ $0 }) { call.detach(link) } else { link.stop() }
  }
}
