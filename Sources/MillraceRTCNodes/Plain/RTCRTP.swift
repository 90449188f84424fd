public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTC

/// `rtc.rtp`: one medium over plain RTP and RTCP, for telephones, devices, FFmpeg and GStreamer.
///
/// - In `audio` or `video`, as `codec` says; out the same. `control`: commands; `extra` `dtmf` dials, and keys that come are events.
/// - Opus, PCMU, PCMA, L16 of 8 to 48 kHz, H.264, VP8; SRTP with keys that both sides know. Packets that SRTP refuses, of other payload
///   types, or of strangers are counted in `usage`, and dropped.
/// - There is no connection: the state is `listening` while packets of the peer come, or at once where only this side sends. Their absence
///   is an event `error` (`mediaTimeout`), and the node continues.
/// - A port in use fails the node with a message.
/// - Lane `external`; calls do not allocate. `RTCPorts` and `PlainCall` do the rest.
public struct RTCRTP: Node, ~Copyable {
  private var session: RTCPorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let (kept, parameters) = (copy setup, setup.parameters)
    let settings = try PlainForm.settings(setup)
    session = try RTCPorts(
      kept, RTCPorts.Inputs(audio: 0, video: 1, control: 2), RTCPorts.Outputs(audio: 0, video: 1),
      sound: PlainForm.sound(parameters)
    ) { (exchange) throws(NodeProblem) in
      let loop: RTCLoop
      do throws(RTCProblem) { loop = try RTCLoops.next() } catch {
        throw NodeProblem("\(error)", cure: "raise the limit of processes (ulimit -u)")
      }
      let call = PlainCall(exchange, settings, on: loop)
      call.start()
      return call
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
    "rtc.rtp", "sends and receives sound or pictures by plain RTP",
    text: """
      Packets go to `remote`, or with `symmetric` to where they come from. Nothing is negotiated: codec, payload type and \
      keys must be those of the peer. `sdpFile` describes the stream for programs such as FFmpeg. This is no SIP: \
      calls are made elsewhere.
      """,
    inputs: [RTCPortContracts.audioIn, RTCPortContracts.videoIn, RTCPortContracts.control],
    outputs: [RTCPortContracts.audioOut, RTCPortContracts.videoOut],
    parameters: PlainForm.parameters,
    examples: [
      #"{ "type": "rtc.rtp", "local": "0.0.0.0:5004", "symmetric": true, "codec": "pcmu" }"#,
      #"{ "type": "rtc.rtp", "remote": "127.0.0.1:5004", "codec": "opus", "sdpFile": "stream.sdp" }"#,
      #"{ "type": "rtc.rtp", "local": ":5004", "codec": "h264", "payloadType": 96, "rtcpMux": true }"#,
    ],
    resolve: { PlainResolution.resolve(&$0) })
}
