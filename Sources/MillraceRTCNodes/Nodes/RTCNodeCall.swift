internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTC
internal import MillraceRTCSignal

/// A call that other nodes of the same graph find by the name of its node, for as long as the node has it. The call itself ends with the
/// node's exchange.
final class RTCNodeCall: Sendable {
  private let call: RTCCall
  private let graph: GraphIdentity
  private let name: String

  /// Begins a call.
  /// - Parameters:
  ///   - setup: of the node.
  ///   - exchange: that of the node's ports.
  ///   - settings: of the call.
  ///   - make: makes the signalling of each attempt.
  /// - Throws: when the system has no thread for it.
  init(
    _ setup: borrowing NodeSetup, _ exchange: RTCExchange, _ settings: RTCCallSettings,
    _ make: @escaping RTCCall.Maker
  ) throws(NodeProblem) {
    let loop: RTCLoop
    do throws(RTCProblem) { loop = try RTCLoops.next() } catch {
      throw NodeProblem("\(error)", cure: "raise the limit of processes (ulimit -u)")
    }
    call = RTCCall(exchange, settings, on: loop, make: make)
    graph = setup.graph
    name = setup.name
    graph.publish(call, as: name)
    call.start()
  }

  deinit { graph.withdraw(call, as: name) }

  /// True when a node `rtc.data` of the graph wants channels of this node's sessions, which therefore have to be agreed on from the
  /// beginning.
  static func isWantedForData(_ setup: borrowing NodeSetup) -> Bool {
    let (graph, name) = (setup.graph, setup.name)
    return graph.visible.contains { member in
      guard member.type == RTCData.contract.type, member.parameters.has("of") else { return false }
      return graph.node(member.parameters.string("of"), from: member.name)?.member.name == name
    }
  }
}
