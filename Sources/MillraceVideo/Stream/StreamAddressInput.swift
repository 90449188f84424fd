internal import MillraceCore

/// The input `address` of a node that plays or pushes a live stream: of several packets that wait, the last one counts.
struct StreamAddressInput {
  /// What the packets ask for.
  enum Change {
    case none
    /// This address from now on; with `restarts` even if it is the present one.
    case begin(StreamAddress, restarts: Bool)
    case end
  }

  /// What came of the packets that waited.
  struct Requests {
    var change = Change.none
    /// The next reply begins.
    var hasNextReply = false
    /// What could not be understood; shows nothing of an address.
    var problems: [NodeProblem] = []
  }

  /// True if a link is attached.
  let isLinked: Bool
  private let index: Int
  private let isEvent: Bool
  private let roots: String?
  private let secrets: Secrets

  /// The input with this index of a node.
  init(_ setup: borrowing NodeSetup, input index: Int) {
    let values = setup.parameters
    isLinked = setup.inputs[index].isLinked
    isEvent = setup.inputs[index].shape?.format == .event
    roots = values.has("roots") ? values.string("roots") : nil
    secrets = setup.secrets
    self.index = index
  }

  /// Takes all packets that wait; their addresses are secrets of the graph when it returns.
  func take(_ ports: inout Ports) -> Requests {
    var requests = Requests()
    while let packet = ports.next(index) {
      switch StreamRequest(packet, isEvent: isEvent, roots: roots, learning: secrets) {
      case .begin(let address):
        switch requests.change {
        case .none, .begin(_, restarts: false): requests.change = .begin(address, restarts: false)
        case .end, .begin(_, restarts: true): requests.change = .begin(address, restarts: true)
        }
      case .end: requests.change = .end
      case .nextReply: requests.hasNextReply = true
      case .nothing: continue
      case .refused(let problem): requests.problems.append(problem)
      }
    }
    return requests
  }
}

extension Ports {
  /// Posts what is wrong with a packet at the input `address`, and the cure.
  mutating func post(_ problem: NodeProblem, as event: Int) {
    post(event) { event in
      event.field("text", utf8: Array(problem.text.utf8).span)
      if let cure = problem.cure { event.field("cure", utf8: Array(cure.utf8).span) }
    }
  }
}
