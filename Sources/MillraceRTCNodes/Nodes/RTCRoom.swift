public import MillraceCore
internal import MillraceDialog
internal import MillraceRTCSignal

/// `rtc.room`: takes part in an open room (Documentation/room.md), or has one.
///
/// - In `audio`, `video`: what this participant publishes; `data`: messages to all others; `events1` to `events8`: events of other nodes
///   for all others; `control`: commands. Out `audio`: all others, mixed; `audio1` to `audio8`: one participant each, in the
///   same 10 ms; `video`: one participant at a time; `video1` to `video8`: one participant each; `data`: messages.
/// - A participant that joins later gets the latest `state` and `turn` of each node at `events1` to `events8` (`RoomCatchUp`).
/// - `extra` `slot` says who is at which numbered output; participants are events `peer`, speakers `speaking`; a removal is `kicked`.
/// - With `listen` the node has a hub of its own, with a page for browsers, and is its first member.
/// - What the hub refuses fails the node with a message; a lost connection is opened again, and the room joined again, with back-off, until
///   `giveUp`. A session that the hub ends alone is followed by another.
/// - When somebody closes the room, the node has ended; with a hub of its own it joins the room again.
/// - Lane `external`; calls do not allocate. `RTCPorts` and `RTCCall` do the rest.
public struct RTCRoom: Node, ~Copyable {
  private var session: RTCPorts

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let (kept, parameters) = (copy setup, setup.parameters)
    let media = RoomForm.media(setup)
    var settings = try RTCCallParameters.settings(setup, media)
    settings.takesToken = !parameters.has("listen")
    settings.renewsSession = true
    settings.sendsEvents = setup.inputs.indices.contains { $0 > 3 && setup.inputs[$0].isLinked }
    // The hub looks for its candidates before it answers an offer.
    settings.signal += .milliseconds(Int64(RoomClientSettings.describing))
    let call = settings
    session = try RTCPorts(kept, Self.inputs(setup), Self.outputs(setup)) { (exchange) throws(NodeProblem) in
      if parameters.has("listen") {
        return try HostedRoomCall(kept, exchange, call, media)
      }
      let form = try RoomForm.client(parameters, media)
      let latest = Locked<RoomClient?>(nil)
      let announced = Locked<RoomCatchUpSignalling?>(nil)
      return try RTCNodeCall(kept, exchange, call) { attempt in
        var form = form
        if let token = attempt.token { form.token = token }
        // What commands have changed holds for the attempts to come.
        form.wishes = latest.withLock { $0 }?.wishes
        let client = RoomClient(form)
        latest.withLock { $0 = client }
        guard call.sendsEvents else { return .success(client) }
        return .success(RoomCatchUpSignalling.follow(announced, with: client))
      }
    }
  }

  private static func inputs(_ setup: borrowing NodeSetup) -> RTCPorts.Inputs {
    var inputs = RTCPorts.Inputs(audio: 0, video: 1, data: 2, control: 3)
    inputs.events = Array(setup.inputs.indices.dropFirst(4))
    return inputs
  }

  private static func outputs(_ setup: borrowing NodeSetup) -> RTCPorts.Outputs {
    var outputs = RTCPorts.Outputs(audio: 0, video: 1, data: 2)
    for number in 0..<RoomForm.tracks {
      outputs.audios.append(RTCPorts.Track(output: 3 + number, medium: UInt8(number)))
      outputs.videos.append(RTCPorts.Track(output: 3 + RoomForm.tracks + number, medium: UInt8(number)))
    }
    return outputs
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
    "rtc.room", "takes part in an open room, or has one with a page for browsers",
    text: """
      Joins a room of a hub by `url`, or has a hub of its own with `listen`: browsers open its page, and other programs join by the wire \
      of the room. In a room that forwards, the sound of every participant comes by itself, and is mixed here; in a room that mixes there is one sound \
      of all others. Its own sound never comes back.
      """,
    inputs: [
      RTCPortContracts.audioIn, RTCPortContracts.videoIn, RTCPortContracts.dataIn, RTCPortContracts.control,
      RoomForm.events,
    ],
    outputs: [RTCPortContracts.audioOut, RTCPortContracts.videoOut, RTCPortContracts.dataOut]
      + RoomForm.tracks("audio", RTCPortContracts.soundOut, "audio received from one participant")
      + RoomForm.tracks("video", RTCPortContracts.videoOut, "encoded pictures received from one participant"),
    parameters: RoomForm.parameters,
    examples: [
      #"{ "type": "rtc.room", "listen": 8080, "user": "bot", "name": "Bot" }"#,
      #"{ "type": "rtc.room", "url": "wss://rooms.example.org", "room": "standup", "user": "recorder", "token": "${env:ROOM_TOKEN}" }"#,
    ],
    resolve: { RoomForm.resolve(&$0) })
}

/// A call of a node in a room of its own hub, and the hub.
final class HostedRoomCall: Sendable {
  private let host: RoomHost
  private let call: RTCNodeCall

  init(
    _ setup: borrowing NodeSetup, _ exchange: RTCExchange, _ settings: RTCCallSettings, _ media: SignalMedia
  ) throws(NodeProblem) {
    let parameters = setup.parameters
    let pictures = RoomForm.pictures(setup, media)
    let own = RoomForm.ownKey()
    let host = RoomHost(RoomForm.server(parameters, pictures: pictures, own: own))
    self.host = host
    let latest = Locked<HostedRoomClient?>(nil)
    let (announced, sendsEvents) = (Locked<RoomCatchUpSignalling?>(nil), settings.sendsEvents)
    call = try RTCNodeCall(setup, exchange, settings) { attempt in
      let earlier = latest.withLock { $0 }?.wishes
      let client = HostedRoomClient(host, tells: attempt.number == 1, earlier: earlier) { port in
        do throws(NodeProblem) {
          return .success(try RoomForm.client(parameters, media, port: port, own: own))
        } catch {
          return .failure(RTCError.failed.error(error.description, reaction: .refuse))
        }
      }
      latest.withLock { $0 = client }
      guard sendsEvents else { return .success(client) }
      return .success(RoomCatchUpSignalling.follow(announced, with: client))
    }
    host.start()
  }

  deinit { host.stop() }
}
