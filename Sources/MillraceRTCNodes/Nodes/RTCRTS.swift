public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceService

/// `rtc.rts`: plays or pushes a stream of a live network by its one-shot signalling: RTS of Alibaba Cloud, RTD of NetEase.
///
/// - `direction` play: out `audio`, `video`. `push`: in `audio`, `video`. `control`: commands.
/// - One request with an offer, and its answer, as JSON. There is neither trickle nor a request at the end, which the server notices by the
///   end of the media. Its `trace_id`, which its support asks for, is the event `extra` `trace`.
/// - Lost connections and refusals are handled as by `rtc.whip`.
/// - Lane `external`; calls do not allocate. `RTCPorts` and `RTCCall` do the rest.
public struct RTCRTS: Node, ~Copyable {
  private var session: RTCPorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let (kept, parameters) = (copy setup, setup.parameters)
    let plays = RTSForm.plays(parameters)
    let media = RTCCallParameters.media(setup, sends: !plays, receives: plays)
    let settings = try RTCCallParameters.settings(setup, media)
    let form = try RTSForm.settings(parameters, media: media)
    session = try RTCPorts(
      kept, RTCPorts.Inputs(audio: 0, video: 1, data: 2, control: 3),
      RTCPorts.Outputs(audio: 0, video: 1, data: 2)
    ) { (exchange) throws(NodeProblem) in
      try RTCNodeCall(kept, exchange, settings) { _ in .success(RTSClient(form)) }
    }
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try session.process(&ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try session.finish(&ports)
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    session.receive(message, &ports)
  }

  public mutating func interrupted(_ ports: inout Ports) { session.interrupted(&ports) }

  public borrowing func explain(_ fault: NodeFault) -> String? { session.explain(fault) }

  public static let contract = RTCPortContracts.contract(
    "rtc.rts", "plays or pushes a stream of a live network with low delay (RTS, RTD)",
    text: """
      The one-shot signalling of live networks: `aliyun` sends its offer to the stream's own address, `artc:` meaning `https:`; \
      `netease` sends it to `endpoint`, with `appKey`. The keys of a stream's address are not shown.
      """,
    inputs: [
      RTCPortContracts.audioIn, RTCPortContracts.videoIn, RTCPortContracts.dataIn, RTCPortContracts.control,
    ],
    outputs: [RTCPortContracts.audioOut, RTCPortContracts.videoOut, RTCPortContracts.dataOut],
    parameters: RTSForm.parameters,
    examples: [
      #"{ "type": "rtc.rts", "url": "${env:RTS_URL}" }"#,
      #"{ "type": "rtc.rts", "url": "artc://push.example.org/live/stream", "direction": "push" }"#,
    ],
    resolve: { RTSForm.resolve(&$0) })
}

/// The parameters of `rtc.rts`, their checks, and the settings of its signalling.
enum RTSForm {
  static let parameters: [ParameterContract] =
    [
      ParameterContract(
        "url", .string, required: true, secret: .address,
        text: "address of the stream: artc:, https:, or http: on this machine"),
      ParameterContract(
        "direction", .choice(RTSDirection.allCases.map(\.rawValue)), default: "play",
        text: "play: receives the stream; push: sends it"),
      ParameterContract(
        "dialect", .choice(RTSDialect.allCases.map(\.rawValue)), default: "aliyun",
        text: "whose signalling it is"),
      ParameterContract(
        "endpoint", .string, secret: .address,
        text: "address that takes offers: netease needs it; default for aliyun: the stream's own"),
      ParameterContract(
        "sdkVersion", .string, default: "0.0.1", text: "version of the client, as reported to the server"),
      ParameterContract("appKey", .string, secret: .whole, text: "key of the application (netease)"),
    ] + RTCParameters.session

  static func plays(_ parameters: ParameterValues) -> Bool { parameters.string("direction") == "play" }

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let plays = plays(parameters)
    ServiceParameters.checkProxy(&resolution)
    do throws(NodeProblem) {
      let settings = try settings(parameters, media: SignalMedia())
      if let problem = settings.problem { throw problem }
    } catch {
      resolution.refuse(error.parameter ?? "url", error.text, cure: error.cure)
    }
    RTCResolution.checkLinks(
      &resolution,
      RTCResolution.Directions(
        sends: !plays, receives: plays,
        cure: "set \"direction\" to \"\(plays ? "push" : "play")\", or remove the link"))
    RTCResolution.checkSession(&resolution)
    RTCResolution.resolveOutputs(&resolution)
  }

  /// The settings of the signalling.
  static func settings(
    _ parameters: ParameterValues, media: SignalMedia
  ) throws(NodeProblem) -> RTSSettings {
    var settings = RTSSettings(
      url: parameters.string("url"), media: media,
      direction: RTSDirection(rawValue: parameters.string("direction")) ?? .play,
      dialect: RTSDialect(rawValue: parameters.string("dialect")) ?? .aliyun)
    if let endpoint = parameters.given("endpoint") {
      settings.endpoint = try RTCCallParameters.address(endpoint, "endpoint")
    }
    settings.sdkVersion = parameters.string("sdkVersion")
    settings.appKey = parameters.given("appKey")
    settings.timeout = parameters.integer("signal")
    settings.roots = parameters.text("roots")
    settings.proxy = try RTCCallParameters.proxy(parameters)
    settings.verify = parameters.bool("verify")
    settings.plain = parameters.bool("plain")
    return settings
  }
}
