public import MillraceCore

/// `rtc.whip`: publishes to a WHIP endpoint (RFC 9725), or is one.
///
/// - In `audio`: PCM of any common form, encoded here, or Opus packets; `video`: H.264 or VP8 of `video.encode`; `data`: messages;
///   `control`: commands; `address`: an endpoint learnt while the graph runs. Out `audio`, `video`, `data`: what arrives, as a server or in
///   mode `sendrecv`.
/// - As a client it offers a session with all its candidates, and releases the server's resource at the end. As a server it takes one
///   publisher a path; a second one is refused until the first has gone.
/// - A lost connection is restarted where the server allows it, and otherwise recreated, with back-off, until `giveUp`. What was refused
///   fails the node with a message; a server continues.
/// - Live: what the network cannot carry is dropped and counted.
/// - Lane `external`; calls do not allocate, but for an address. `RTCPorts` and `RTCCall` do the rest.
public struct RTCWHIP: Node, ~Copyable {
  private var session: HTTPSession

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) { session = try HTTPSession(.whip, setup) }

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
    "rtc.whip", "publishes sound and pictures by WHIP, as client or as server",
    text: """
      With `url` it publishes to an endpoint of WHIP (RFC 9725); with `listen` it is one, and takes one publisher. `sendrecv` carries \
      media both ways in one session. Sound is encoded here, as Opus or G.711; pictures come encoded, from `video.encode`, whose \
      `control` takes this node's events: they tell the bitrate that the network carries, and when a peer needs a key frame. The rules \
      for clients, hosts and certificates of a server are those of `net.websocket`.
      """,
    inputs: HTTPForm.inputs, outputs: HTTPForm.outputs, parameters: HTTPForm.whip.parameters,
    examples: [
      #"{ "type": "rtc.whip", "url": "${env:WHIP_URL}", "bearer": "${env:WHIP_TOKEN}" }"#,
      #"{ "type": "rtc.whip", "listen": 8080, "path": "/publish" }"#,
      #"{ "type": "rtc.whip", "listen": 8443, "host": "0.0.0.0", "certificate": "bot.pem", "key": "bot.key", "bearer": "${env:BOT_TOKEN}", "mode": "sendrecv" }"#,
    ],
    resolve: { HTTPForm.whip.resolve(&$0) })
}
