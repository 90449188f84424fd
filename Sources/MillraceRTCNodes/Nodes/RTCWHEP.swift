public import MillraceCore

/// `rtc.whep`: plays from a WHEP endpoint (draft-ietf-wish-whep), or is one.
///
/// - Out `audio`, `video`, `data`: what arrives, as a client. In `audio`, `video`, `data`: what viewers get, as a server; `control`:
///   commands; `address`: an endpoint learnt while the graph runs.
/// - Sound is encoded once for all viewers; those who take none of its codecs are refused with a message. Pictures are those of the input,
///   at a bitrate that the slowest viewer's network carries.
/// - Lost connections, refusals and the end are handled as by `rtc.whip`.
/// - Lane `external`; calls do not allocate, but for an address. `RTCPorts` and `RTCCall` do the rest.
public struct RTCWHEP: Node, ~Copyable {
  private var session: HTTPSession

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) { session = try HTTPSession(.whep, setup) }

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
    "rtc.whep", "plays sound and pictures by WHEP, as client or as server",
    text: """
      With `url` it plays from an endpoint of WHEP; with `listen` it is one, and sends what is linked to all its viewers. Received \
      sound is mixed and free of jitter; pictures stay encoded, for `video.decode`, and in step with the sound. The rules for clients, \
      hosts and certificates of a server are those of `net.websocket`.
      """,
    inputs: HTTPForm.inputs, outputs: HTTPForm.outputs, parameters: HTTPForm.whep.parameters,
    examples: [
      #"{ "type": "rtc.whep", "url": "${env:WHEP_URL}", "bearer": "${env:WHEP_TOKEN}" }"#,
      #"{ "type": "rtc.whep", "listen": 8080, "path": "/play", "viewers": 20 }"#,
    ],
    resolve: { HTTPForm.whep.resolve(&$0) })
}
