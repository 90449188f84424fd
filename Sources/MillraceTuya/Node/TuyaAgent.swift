public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceService

/// `tuya.agent`: a session with an agent of Tuya's AI stream.
///
/// - In `audio`: the user's speech, 16 kHz mono, PCM or Opus of a constant bit rate; `image`: JPEG; `text`: questions; `file`: paths of files to
///   send; `control`: commands and playback reports. Out `audio`: replies as MP3, PCM or Opus packets as they arrive, each utterance ended by an
///   empty packet `endOfUtterance`; `image`: pictures of the agent; `text`: the final text of each reply; `file`: paths of received files;
///   `events`: the vocabulary of `MillraceDialog`.
/// - Push-to-talk and tap-to-talk are one event a turn; in duplex one event lasts as long as the session, its sound never stops, and the cloud
///   divides it into rounds.
/// - A reply that the cloud breaks off is cancelled in the graph within the call that receives it. A reply that the graph cancels is not
///   delivered any further.
/// - Nodes with the same `connection` share it, with up to 20 sessions; what happens to one session leaves the others alone.
/// - Lost connections are opened again with a new session, as `reconnect` says. What was refused fails the node with a message; no message
///   contains a key, a token or what anyone said.
/// - Lane `external`; calls do not allocate. The rules are in `TuyaSession`, the wire in `TuyaWire`; `ServicePorts` does the rest.
public struct TuyaAgent: Node, ~Copyable {
  private var service: ServicePorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let voice = try TuyaResolution.voice(parameters, setup.inputs[0].shape)
    var rules = try TuyaResolution.rules(parameters, followsPlayback: setup.inputs[4].isLinked)
    let isOpus = voice.coding != .pcm
    rules.sendsSilenceAfterEnd = !isOpus
    let endpoint = try TuyaEndpoint(parameters, voice, secrets: setup.secrets)
    var outputs = ServicePorts.Outputs(audio: 0, text: 2)
    outputs.image = 1
    outputs.file = 3
    outputs.isWhole = setup.outputs[0].shape?.format.kind == .opus
    var inputs = ServicePorts.Inputs(audio: 0, image: 1, text: 2, control: 4)
    inputs.file = 3
    service = try ServicePorts(
      setup, TuyaSession(rules), endpoint, vendor: "tuya", inputs: inputs, outputs: outputs,
      voice: VoiceFormat(
        rate: TuyaVoice.rate, frame: .milliseconds(Int64(voice.frame)), isOpus: isOpus,
        preRoll: parameters.nanoseconds("preRoll")),
      eventBytes: parameters.integer("eventBytes"), asksText: true)
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
  /// The nodes of this target: `tuya.agent`.
  public static var tuya: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(TuyaAgent.self)
    return catalogue
  }
}
