internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph

/// The nodes of a graph that a dialogue is led with.
struct TalkParts: Equatable {
  var service: String
  /// `dialog.turn`, if the graph has one: commands go there.
  var turn: String?
  var mode = DialogMode.duplex
  /// True when a picture can go with a question: the service has eyes.
  var showsPictures = false
  /// True when the graph itself has pictures to show.
  var seesByItself = false
  /// Bytes a command may have.
  var room = GraphRun.longestMessage

  init(service: String, turn: String? = nil, mode: DialogMode = .duplex) {
    self.service = service
    self.turn = turn
    self.mode = mode
  }

  /// What takes commands.
  var commandNode: String { turn ?? service }

  /// Looks for them; nil when nothing in the graph is a service.
  init?(_ plan: GraphPlan) {
    // Every service posts this, and nothing else does.
    func isService(_ node: GraphPlan.Node) -> Bool {
      node.contract.events.contains { $0.name == "conversationStarted" }
    }
    guard let service = plan.nodes.first(where: isService) else { return nil }
    self.init(service: service.name)
    let turn = plan.nodes.first { $0.contract.type == "dialog.turn" }
    self.turn = turn?.name
    if service.parameters.has("mode") {
      mode = DialogMode(rawValue: service.parameters.string("mode")) ?? .duplex
    }
    if let port = turn?.outputs.first(where: { $0.name == "control" }), let shape = port.shape {
      room = min(room, shape.packetBytes)
    }
    showsPictures = service.contract.inputs.contains { $0.name == "image" }
    let picture = plan.nodes.first { $0.contract.type == "dialog.picture" }
    seesByItself = picture?.inputs.first { $0.name == "in" }?.isLinked ?? false
  }
}
