import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceService

/// `echo.dialog`: a dialogue with a service that repeats what it hears.
///
/// In `audio`: the user's speech, 16 kHz mono PCM, sent in frames of 20 ms; `control`: commands and playback reports. Out `audio`: replies,
/// each ended by an empty packet `endOfUtterance`; `events`: the vocabulary of `MillraceDialog`.
public struct EchoDialog: Node, ~Copyable {
  private static let pcm = FormatConstraint.pcm(rates: .only(16_000), channels: .only(1), samples: [.s16])
  private static let eventBytes = 4_096

  public static let contract = NodeContract(
    "echo.dialog", "a dialogue with a service that repeats what it hears",
    inputs: [
      PortContract("audio", pcm, text: "the user's speech", required: false, holds: 1),
      PortContract(
        "control", .kind(.event).or(.kind(.text)), text: "commands, and the events of audio.play",
        required: false, holds: 1),
    ],
    outputs: [PortContract("audio", pcm, text: "replies, one utterance each", required: false)],
    parameters: [
      ParameterContract("url", .string, required: true, secret: .address, text: "tls://host:port"),
      ParameterContract("key", .string, required: true, secret: .whole, text: "the key of the account"),
      ParameterContract(
        "silence", .integer(1_000...600_000), unit: "ms", default: 10_000,
        text: "longest time without a record of the service; then the connection counts as lost"),
      ServiceParameters.open, ServiceParameters.preRoll,
    ] + ServiceParameters.reconnection + ServiceParameters.network,
    events: DialogEvent.contracts, lane: .external, drive: .itself,
    asynchronousPaths: ["audio", "control"].flatMap { from in
      ["audio", "events"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    resolve: { resolution in
      ServiceParameters.checkAddress(&resolution, secure: .tls, plain: .tcp, kind: "a byte stream")
      ServiceParameters.checkProxy(&resolution)
      // Replies arrive faster than real time, and may wait outside of the graph; one that is not read must not block the user's speech.
      resolution.pacing = .waits
      resolution.outputs["audio"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320, burst: 0)
      // Time, node and name precede the members.
      resolution.outputs[NodeContract.eventsPort] = OutputShape(
        .event, packetDuration: nil, packetBytes: eventBytes + 256)
    })

  private var service: ServicePorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    var request: ByteStreamRequest
    do throws(NetError) { request = try parameters.byteStreamRequest() } catch {
      throw NodeProblem(error.text, parameter: "url")
    }
    request.limits.silence = parameters.integer("silence")
    let session = EchoSession(
      followsPlayback: setup.inputs[1].isLinked, begin: parameters.nanoseconds("open"),
      reconnect: parameters.reconnectPolicy)
    service = try ServicePorts(
      setup, session, EchoEndpoint(request: request, key: parameters.string("key")), vendor: "echo",
      inputs: ServicePorts.Inputs(audio: 0, image: nil, text: nil, control: 1),
      outputs: ServicePorts.Outputs(audio: 0, text: nil),
      voice: VoiceFormat(
        rate: 16_000, frame: .milliseconds(20), isOpus: false, preRoll: parameters.nanoseconds("preRoll")),
      eventBytes: Self.eventBytes, asksText: false)
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

/// How a connection is opened, and how messages look on it.
struct EchoEndpoint: ServiceEndpoint {
  static let vendor = "echo"
  var request: ByteStreamRequest
  var key: String

  func open(
    on loop: NetLoop, _ receive: @escaping @Sendable (ServiceEvent<EchoMessage>) -> Void
  ) -> StreamWire {
    StreamWire(
      request, on: loop, framing: LengthFraming(largest: EchoMessage.largestRecord), vendor: Self.vendor,
      voice: { [0x02] + $0 }, parse: EchoMessage.parse, receive)
  }

  func send(_ request: EchoRequest, from session: EchoSession, over wire: StreamWire) -> Bool {
    wire.send(.binary(request.record(key: key)))
  }

  func closingMessage(of session: EchoSession) -> EchoRequest? { .bye }

  mutating func use(_ credential: String) { key = credential }
}

extension Catalogue {
  /// The node `echo.dialog`.
  public static var echo: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(EchoDialog.self)
    return catalogue
  }
}
