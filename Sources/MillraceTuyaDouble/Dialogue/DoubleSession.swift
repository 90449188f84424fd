internal import MillraceConformance
internal import MillraceCore
internal import MillraceDoubles
internal import MillraceJSON

/// A session of a client: its events, and the replies to them. On the network thread.
final class DoubleSession: @unchecked Sendable {
  /// What the session is doing for its latest round.
  enum Stage {
    case idle, thinking, responding
  }

  let connection: DoubleConnection
  let double: TuyaDouble.Server
  let id: String
  let token: String
  let channels: SessionChannels
  private(set) var format = ReplyFormat()
  /// The client has tools.
  let hasTools: Bool

  // What the client sends.
  var events: [OpenEvent] = []
  /// Ids of events that are over, and of rounds: what crosses their end on the wire names them.
  var knownIDs: Set<String> = []
  /// Ids of requests to the client's tools that it has not answered.
  var toolRequests: Set<String> = []
  var isAsleep = false

  // The reply.
  var stage = Stage.idle
  /// The id of the latest round: that of its event, or of a long event with a suffix.
  var round = ""
  /// The round that the user's voice has begun; empty: none.
  var hearing = ""
  var rounds = 0
  /// The round whose start was sent.
  var started = ""
  var turn = TuyaScenario.Turn()
  /// The number of the current plan; scheduled steps of an older one are skipped.
  var plan = 0
  /// The number of the reply among all of the double.
  var number = 0
  var textCount: UInt64 = 0
  /// Bytes so far of the client's picture.
  var pictureBytes = 0
  var isOver = false

  init(_ connection: DoubleConnection, _ opening: SessionOpening) {
    self.connection = connection
    double = connection.double
    id = opening.id
    token = opening.token ?? ""
    channels = SessionChannels(opening.lists, connection.double.scenario.own)
    let attributes = opening.userData.session
    hasTools = attributes?["deviceMcp"]?["supportCustomMCP"]?.bool ?? false
    do throws(ReplyFormatProblem) { format = try ReplyFormat(attributes) } catch {
      double.violate("replyFormats", error.text)
    }
  }

  var hasEvent: Bool { !events.isEmpty }

  /// A stream of this data id has begun in an event.
  func hasStream(_ channel: UInt16) -> Bool { events.contains { $0.openChannels.contains(channel) } }

  /// The session is over: nothing more is sent.
  func end() {
    isOver = true
    plan += 1
    events = []
  }

  // MARK: Sending

  /// Sends an event; twice in a turn that repeats everything.
  func send(_ type: EventType, _ id: String, data: JSONValue? = nil) {
    var event = CloudEvent(type, session: self.id, id: id)
    if type == .end { event.time = UnixClock.milliseconds }
    if let data { event.data = data.bytes }
    double.note("< \(type)")
    for _ in 0..<times { send(event.packet(isV1: connection.isV1)) }
  }

  var times: Int { turn.fault?.kind == .repeated && stage != .idle ? 2 : 1 }

  func send(_ packet: CloudPacket) { if !isOver { connection.send(packet) } }

  /// Sends data on the channel of its kind; nothing where the session has none.
  func send(_ kind: DataKind, _ flag: StreamFlag, _ data: [UInt8], _ parameters: StreamParameters? = nil) {
    guard let channel = channels.receives[kind] else { return }
    let media = CloudMedia(kind, channel, flag, time: UnixClock.milliseconds, count: textCount, data)
    send(media.packet(isV1: connection.isV1, parameters))
  }

  /// Sends a text that need not be a document.
  func send(text: [UInt8]) {
    textCount += 1
    send(.text, .onlyOne, text)
  }

  // MARK: Faults

  func misbehave(at place: ServiceFault.Place) -> Bool {
    guard let fault = turn.fault, fault.place == place else { return false }
    return connection.misbehave(fault, self)
  }

  /// The round fails; the session continues.
  func fail() {
    send(.serverTimeover, round)
    finish()
  }

  func sendUnknown() {
    let document: JSONValue = [
      "bizId": .string(round), "bizType": "ASTONISHMENT", "eof": 1,
      "data": ["why": .string(ServiceFault.userText)],
    ]
    double.noteUnknown(document)
    send(text: document.bytes)
  }

  /// Ends the round.
  func finish() {
    send(.end, round)
    plan += 1
    stage = .idle
  }
}
