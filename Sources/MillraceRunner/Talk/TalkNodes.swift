internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph

/// The nodes of a graph that matter for an interactive dialogue, and their capabilities.
struct TalkNodes: Equatable {
  var service: String
  /// The `dialog.turn` node, if there is one. It receives the commands.
  var turn: String?
  var mode = DialogMode.duplex
  /// True when the service accepts pictures with a question.
  var acceptsPictures = false
  /// True when the graph itself provides pictures.
  var hasOwnPictures = false
  /// Longest command in bytes.
  var maxCommandBytes = GraphRun.longestMessage

  init(service: String, turn: String? = nil, mode: DialogMode = .duplex) {
    self.service = service
    self.turn = turn
    self.mode = mode
  }

  /// The node that receives commands.
  var commandNode: String { turn ?? service }

  /// True for the node of a service with dialogues: only these have this event.
  static func isService(_ contract: NodeContract) -> Bool {
    contract.events.contains { $0.name == "conversationStarted" }
  }

  /// Finds the nodes; nil when the graph has no service.
  init?(_ plan: GraphPlan) {
    guard let service = plan.nodes.first(where: { Self.isService($0.contract) }) else { return nil }
    self.init(service: service.name)
    let turn = plan.nodes.first { $0.contract.type == "dialog.turn" }
    self.turn = turn?.name
    if service.parameters.has("mode") {
      mode = DialogMode(rawValue: service.parameters.string("mode")) ?? .duplex
    }
    if let port = turn?.outputs.first(where: { $0.name == "control" }), let shape = port.shape {
      maxCommandBytes = min(maxCommandBytes, shape.packetBytes)
    }
    acceptsPictures = service.contract.inputs.contains { $0.name == "image" }
    let picture = plan.nodes.first { $0.contract.type == "dialog.picture" }
    hasOwnPictures = picture?.inputs.first { $0.name == "in" }?.isLinked ?? false
  }
}
