public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceService

/// `bailian.dialog`: Alibaba's real-time multimodal dialogue (Bailian, DashScope).
///
/// - In `audio`: the user's speech, mono PCM or Opus packets; `image`: JPEG for the video channel (LiveAI); `text`: questions, or text to
///   speak; `control`: commands and playback reports. Out `audio`: replies as PCM, MP3, Ogg Opus or Opus packets as they arrive, each
///   utterance ended by an empty packet `endOfUtterance`; `text`: the final text of each reply; `events`: the vocabulary of
///   `MillraceDialog`.
/// - PCM is sent in frames of `frame` ms; in duplex continuously from the first Listening on, in every state. What was said before is
///   kept up to `preRoll`, and sent first.
/// - A reply that the service ends (barge-in, request, error) is cancelled in the graph within the call that receives it. A reply that
///   the graph cancels is not delivered any further.
/// - LocalRespondingStarted and Ended follow the playback reports at `control`; without a link there, delivered audio counts as heard.
/// - When the service ends the dialogue or the graph drains, what has arrived of a reply is delivered completely before the node ends;
///   `hangUp` cuts it off. With `"afterEnd":"wait"` the node then waits for `begin`, which starts a new dialogue, or resumes the one named by
///   `values.dialog`.
/// - Lost connections are reopened with a new task and the same dialogue. Invalid keys and refused parameters fail the node with a
///   message; no message contains a key or what anyone said.
/// - Lane `external`; calls do not allocate. The rules are in `BailianSession`; `ServicePorts` does the rest.
public struct BailianDialog: Node, ~Copyable {
  private var service: ServicePorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let inputs = ServicePorts.Inputs()
    let input = setup.inputs[0].shape
    let isOpus = input?.format.kind == .opus
    let rate = input?.format.rate ?? 16_000
    let rules = try BailianResolution.rules(
      parameters, followsPlayback: setup.inputs[3].isLinked, inputRate: rate, isOpus: isOpus)
    let endpoint: BailianEndpoint
    do throws(NetError) {
      endpoint = try BailianResolution.endpoint(parameters, rules, secrets: setup.secrets)
    } catch {
      throw NodeProblem(error.text, parameter: "url")
    }
    let frame = parameters.nanoseconds("frame")
    let isOgg = isOpus && parameters.string("opusUp") == "opus"
    var outputs = ServicePorts.Outputs()
    outputs.isWhole = setup.outputs[0].shape?.format.kind == .opus
    // The first message of a reply in packets is the Opus header, RFC 7845 section 5.1.
    outputs.header = "OpusHead"
    service = try ServicePorts(
      setup, BailianSession(rules), endpoint, vendor: "bailian", inputs: inputs, outputs: outputs,
      voice: VoiceFormat(
        rate: rate, frame: frame, isOpus: isOpus, preRoll: parameters.nanoseconds("preRoll")),
      packing: isOgg ? OggVoice(rate: rate, milliseconds: Int(frame / 1_000_000)) : nil,
      eventBytes: parameters.integer("eventBytes"), asksText: parameters.string("text") == "ask")
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
  /// The nodes of this target: `bailian.dialog`.
  public static var bailian: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(BailianDialog.self)
    return catalogue
  }
}
