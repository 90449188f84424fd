public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceService

/// `ivh.avatar`: Tencent's interactive virtual human, an avatar that is rendered by the service.
///
/// - In `audio`: speech for the avatar to speak, 16 kHz mono PCM, from a microphone or another bot; `text`: texts to speak or questions;
///   `control`: commands, playback reports, and the event `firstPicture` of `rtmp.pull`. Out `text`: what is spoken; `stream`: the address of
///   the picture and its sound, for `rtmp.pull`; `events`: the vocabulary of `MillraceDialog`.
/// - Voice is sent in the packets of the interface's generation, on an absolute schedule, never faster. A bot's reply waits in the graph, and
///   its `endOfUtterance` ends the utterance; of a microphone the oldest audio is dropped when it is late.
/// - A new text or voice waits until the current one is spoken; `force` interrupts it.
/// - The service's session is closed however the node ends.
/// - Lane `external`; calls do not allocate. The rules are in `IVHSession`; `ServicePorts` does the rest.
public struct IVHAvatar: Node, ~Copyable {
  private var service: ServicePorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let rules = try IVHResolution.rules(parameters, followsPlayback: setup.inputs[2].isLinked)
    let endpoint: IVHEndpoint
    do throws(NetError) {
      endpoint = try IVHResolution.endpoint(parameters, rules, secrets: setup.secrets)
    } catch {
      throw NodeProblem(error.text, parameter: "url")
    }
    service = try ServicePorts(
      setup, IVHSession(rules), endpoint, vendor: "ivh",
      inputs: ServicePorts.Inputs(audio: 0, image: nil, text: 1, control: 2),
      outputs: ServicePorts.Outputs(audio: nil, text: 0, stream: 1),
      voice: IVHResolution.voice(parameters, rules), eventBytes: parameters.integer("eventBytes"),
      asksText: parameters.string("text") == "ask")
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try service.process(&ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try service.finish(&ports)
  }

  public mutating func interrupted(_ ports: inout Ports) { service.interrupted(&ports) }

  public mutating func receive(_ order: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    service.receive(order, &ports)
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { service.explain(fault) }
}

extension Catalogue {
  /// The nodes of this target: `ivh.avatar`.
  public static var ivh: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(IVHAvatar.self)
    return catalogue
  }
}
