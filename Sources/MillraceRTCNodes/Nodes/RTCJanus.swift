public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceService

/// `rtc.janus`: takes part in a room of the WebRTC server Janus, or plays one of its streams.
///
/// - `audiobridge`: in `audio`, out `audio`: the mix of all others. `videoroom`: in `audio`, `video`: what this client publishes; out: what
///   the others publish. `echotest`: what is sent comes back. `streaming`: out only. `textroom`: `data` in and out are the texts of the
///   room.
/// - `control`: commands. Participants are events `peer`, speakers `speaking`; a removal from the room is `kicked`.
/// - An error inside an answer that HTTP calls a success is an error. What the server refuses fails the node with a message; a lost
///   connection is opened again, and the room joined again, with back-off, until `giveUp`.
/// - Lane `external`; calls do not allocate. `RTCPorts` and `RTCCall` do the rest.
public struct RTCJanus: Node, ~Copyable {
  private var session: RTCPorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let (kept, parameters) = (copy setup, setup.parameters)
    let directions = JanusForm.directions(JanusForm.plugin(parameters))
    let media = JanusForm.media(setup)
    let form = try JanusForm.settings(parameters, media: media)
    var settings = try RTCCallParameters.settings(setup, media)
    if form.plugin == .textroom {
      settings.textRoom = TextRoom(form)
      // Janus opens no channel by itself.
      settings.opensChannels = true
    }
    settings.takesToken = true
    let call = settings
    session = try RTCPorts(
      kept,
      RTCPorts.Inputs(
        audio: directions.sends ? 0 : nil, video: directions.sends ? 1 : nil, data: 2, control: 3),
      RTCPorts.Outputs(
        audio: directions.receives ? 0 : nil, video: directions.receives ? 1 : nil, data: 2)
    ) { (exchange) throws(NodeProblem) in
      try RTCNodeCall(kept, exchange, call) { attempt in
        var form = form
        if let token = attempt.token { form.token = token }
        return .success(JanusClient(form))
      }
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
    "rtc.janus", "takes part in a room of the WebRTC server Janus, or plays one of its streams",
    text: """
      Speaks with Janus over HTTP or a WebSocket. `audiobridge` is a room with one mix of sound; `videoroom` forwards everybody's \
      sound and pictures; `textroom` carries texts over a data channel; `streaming` plays a mountpoint; `echotest` sends everything \
      back. A room that is a number is written as text: `"1234"`.
      """,
    inputs: [
      RTCPortContracts.audioIn, RTCPortContracts.videoIn, RTCPortContracts.dataIn, RTCPortContracts.control,
    ],
    outputs: [RTCPortContracts.audioOut, RTCPortContracts.videoOut, RTCPortContracts.dataOut],
    parameters: JanusForm.parameters,
    examples: [
      #"{ "type": "rtc.janus", "url": "http://127.0.0.1:8088/janus", "plugin": "audiobridge", "room": "1234", "display": "bot" }"#,
      #"{ "type": "rtc.janus", "url": "wss://janus.example.org/ws", "plugin": "videoroom", "room": "1234", "pin": "${env:ROOM_PIN}", "subscribe": ["all"] }"#,
      #"{ "type": "rtc.janus", "url": "ws://127.0.0.1:8188", "plugin": "streaming", "stream": "1" }"#,
    ],
    resolve: { JanusForm.resolve(&$0) })
}
