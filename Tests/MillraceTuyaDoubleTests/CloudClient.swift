import MillraceCore
import MillraceDoubles
import MillraceJSON
import MillraceNet
import Testing

@testable import MillraceTuyaDouble

/// A wait that came to nothing.
struct WaitFailure: Error, CustomStringConvertible {
  let description: String
}

/// Waits until a condition holds, at most ten minutes.
func wait(_ what: String, until holds: () -> Bool) async throws {
  let end = ContinuousClock.now + .seconds(600)
  while !holds() {
    guard ContinuousClock.now < end else { throw WaitFailure(description: "no \(what) within ten minutes") }
    try await Task.sleep(for: .milliseconds(4))
  }
}

/// A client led by a test, in one of the dialects. It has the double's own frames, which are tested against the golden packets.
final class CloudClient: Sendable {
  struct State {
    var reader: FrameReader
    var writer: FrameWriter
    var packets: [CloudPacket] = []
    var fault: WireFault?
    var isOpen = false
    var isOver = false
  }

  static let sends: [UInt16] = [1, 3, 5, 7, 9]
  static let receives: [UInt16] = [2, 4, 6, 8, 10]
  private static let random = Array("aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF".utf8)
  private static let signRandom = Array("zY9xW8vU7tS6rQ5pO4nM3lK2jI1hG0fE".utf8)

  let dialect: CloudDialect
  let double: TuyaDouble
  let state: Locked<State>
  private let stream: ByteStream

  var isV1: Bool { dialect.isV1 }

  init(_ double: TuyaDouble, _ dialect: CloudDialect = .v21(level: 2), localKey: String? = nil) throws {
    self.double = double
    self.dialect = dialect
    var request = ByteStreamRequest(try WebAddress(double.address))
    if let roots = double.roots { request.trust = .file(roots) }
    request.proxy = .direct
    request.limits.open = 600_000
    request.limits.close = 600_000
    request.limits.backlog = 64 << 20
    let sign = dialect.isV1 ? Self.signRandom : Self.random
    let keys = try CloudKeys(
      dialect, localKey: localKey ?? double.localKey, cryptRandom: Self.random, signRandom: sign)
    var reader = FrameReader(keys, from: .cloud)
    reader.limit = 8_192
    let state = Locked(State(reader: reader, writer: FrameWriter(keys, from: .client)))
    self.state = state
    stream = ByteStream.open(request) { event in
      state.withLock { state in
        switch event {
        case .opened: state.isOpen = true
        case .bytes(let bytes): Self.receive(bytes, &state)
        case .finished, .closed: state.isOver = true
        case .drained: break
        }
      }
    }
  }

  private static func receive(_ bytes: [UInt8], _ state: inout State) {
    state.reader.arrive(bytes)
    do throws(WireFault) {
      while state.fault == nil, let packet = try state.reader.next() { state.packets.append(packet) }
    } catch { state.fault = error }
  }

  // MARK: Sending

  func send(_ packet: CloudPacket) async throws {
    try await wait("connection") { state.withLock { $0.isOpen || $0.isOver } }
    let frames = try state.withLock { try $0.writer.frames(of: packet) }
    for frame in frames { _ = stream.send(frame) }
  }

  func send(raw bytes: [UInt8]) async throws {
    try await wait("connection") { state.withLock { $0.isOpen || $0.isOver } }
    _ = stream.send(bytes)
  }

  func cancel() { stream.cancel() }
  func finish() { stream.finish() }

  func hello(_ change: (inout CloudPacket) -> Void = { _ in }) async throws {
    var packet = CloudPacket(PacketType.clientHello)
    packet.attributes = [
      CloudAttribute(AttributeID.clientType, number: 1), CloudAttribute(AttributeID.clientID, double.client),
    ]
    if case .v21(let level) = dialect {
      packet.attributes.append(CloudAttribute(AttributeID.suite, [UInt8(level)] + Self.random))
    } else {
      packet.attributes += [
        CloudAttribute(18, "HmacSHA256"), CloudAttribute(19, "iv"),
        CloudAttribute(AttributeID.cryptRandom, Self.random),
        CloudAttribute(AttributeID.signRandom, Self.signRandom),
      ]
    }
    packet.attributes += [
      CloudAttribute(AttributeID.largestFragment, number: 4_096),
      CloudAttribute(AttributeID.pingInterval, number: 60_000),
    ]
    change(&packet)
    try await send(packet)
  }

  func auth(user: String = TuyaMembers().user, password: String = TuyaMembers().password) async throws {
    try await send(
      CloudPacket(
        PacketType.authRequest,
        [CloudAttribute(AttributeID.user, user), CloudAttribute(AttributeID.password, password)]))
  }

  /// Connects, and waits until the double has accepted it.
  func connect() async throws {
    try await hello()
    if isV1 { try await auth() }
    try await wait("AuthResp") { status != nil || isOver }
  }

  func open(
    _ session: String = "session-1", sends: [UInt16] = sends, receives: [UInt16] = receives,
    token: String? = nil,
    bizTag: Int = 119, attributes: JSONValue? = nil, _ change: (inout CloudPacket) -> Void = { _ in }
  ) async throws {
    var data = CloudUserData()
    data.session = attributes
    var packet = CloudPacket(
      PacketType.sessionNew,
      [
        CloudAttribute(AttributeID.bizCode, number: 65_537),
        CloudAttribute(AttributeID.bizTag, number: bizTag),
        CloudAttribute(AttributeID.sessionID, session),
        CloudAttribute(AttributeID.agentToken, token ?? double.agentToken),
      ] + data.attributes(isV1: isV1), payload: ChannelLists(sends: sends, receives: receives).payload)
    change(&packet)
    try await send(packet)
  }

  func send(
    _ type: EventType, _ id: String, in session: String = "session-1", chat: JSONValue? = nil,
    channel: UInt16? = nil,
    data: JSONValue? = nil
  ) async throws {
    var event = CloudEvent(type, session: session, id: id)
    event.userData.chat = chat
    event.userData.payloadsEnd = channel
    if let data { event.data = data.bytes }
    try await send(event.packet(isV1: isV1))
  }

  func send(
    _ kind: DataKind, _ channel: UInt16, _ flag: StreamFlag, _ data: [UInt8],
    _ parameters: StreamParameters? = nil,
    time: UInt64 = UnixClock.milliseconds
  ) async throws {
    let media = CloudMedia(kind, channel, flag, time: time, data)
    try await send(media.packet(isV1: isV1, parameters))
  }

  /// A question as text, in an event of its own.
  func ask(_ words: String, _ id: String, in session: String = "session-1", channel: UInt16 = 3) async throws
  {
    try await send(.start, id, in: session)
    try await send(.text, channel, .onlyOne, Array(words.utf8))
    try await send(.payloadsEnd, id, in: session, channel: channel)
    try await send(.end, id, in: session)
  }

  // MARK: What came

  var isOver: Bool { state.withLock { $0.isOver } }
  var fault: WireFault? { state.withLock { $0.fault } }
  var packets: [CloudPacket] { state.withLock { $0.packets } }

  var status: Int? { code(PacketType.authResponse, AttributeID.connectionStatus) }
  var closeCode: Int? { code(PacketType.connectionClose, AttributeID.connectionCloseCode) }
  var sessionCode: Int? { code(PacketType.sessionClose, AttributeID.sessionCloseCode) }
  var stateCode: Int? { code(PacketType.sessionState, AttributeID.sessionStateCode) }

  private func code(_ type: UInt8, _ attribute: UInt16) -> Int? {
    packets.last { $0.type == type }?.number(attribute).map { Int($0) }
  }

  var events: [CloudEvent] {
    packets.filter { $0.type == PacketType.event }.compactMap { try? CloudEvent($0, isV1: isV1) }
  }

  func has(_ type: EventType, _ id: String? = nil) -> Bool {
    events.contains { $0.known == type && (id == nil || $0.id == id) }
  }

  func media(_ kind: DataKind) -> [CloudMedia] {
    packets.filter { $0.type == kind.packet }.compactMap { try? CloudMedia(kind, $0.payload, isV1: isV1) }
  }

  var documents: [JSONValue] { media(.text).compactMap { try? JSONValue(parsing: $0.data) } }

  /// Events and documents in their order, such as `start`, `ASR 0`.
  var order: [String] {
    packets.compactMap { packet in
      switch packet.type {
      case PacketType.event: (try? CloudEvent(packet, isV1: isV1))?.known.map { "\($0)" }
      case PacketType.text:
        (try? CloudMedia(.text, packet.payload, isV1: isV1)).flatMap { try? JSONValue(parsing: $0.data) }
          .map { "\($0["bizType"]?.string ?? "?") \($0["eof"]?.integer ?? -1)" }
      case PacketType.audio:
        (try? CloudMedia(.audio, packet.payload, isV1: isV1)).flatMap {
          $0.flag == .streaming ? nil : "audio \($0.flag)"
        }
      default: nil
      }
    }
  }

  func audioParameters() throws -> [StreamParameters] {
    try packets.filter { $0.type == PacketType.audio }.compactMap {
      try StreamParameters(.audio, of: $0, isV1: isV1)
    }
  }

  var violations: [String] { double.seen.violations.map(\.name) }
}

/// Sounds of the tests.
enum Sound {
  static let pcm = StreamParameters.audio(.init(codec: 101, rate: 16_000))

  /// 20 ms of a tone, or of silence.
  static func frame(loud: Bool) -> [UInt8] {
    (0..<320).flatMap { index -> [UInt8] in
      let sample: Int16 = loud ? (index % 2 == 0 ? 6_000 : -6_000) : 0
      return [UInt8(truncatingIfNeeded: sample), UInt8(truncatingIfNeeded: sample >> 8)]
    }
  }

  /// Half a second of speech and a pause that ends it.
  static let utterance: [[UInt8]] =
    Array(repeating: frame(loud: true), count: 25) + Array(repeating: frame(loud: false), count: 35)
}

extension TuyaScenario {
  /// Replies whose samples are their number, so that nothing needs a voice.
  static var numbered: TuyaScenario {
    var scenario = TuyaScenario()
    scenario.isNumbered = true
    scenario.speed = 1_000
    scenario.turns[0].thinks = 0
    return scenario
  }
}
