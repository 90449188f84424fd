internal import MillraceConformance
internal import MillraceCore
internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// A connection of a client, with its sessions. On the network thread.
final class DoubleConnection: @unchecked Sendable {
  enum State {
    /// The first frame is expected.
    case fresh
    /// Its keys are known, and the answer is due; in v1 the client's name and password come first.
    case greeted
    case open
    case over
  }

  /// Codes of the cloud.
  enum Code {
    static let ok = 200, badRequest = 400, unauthenticated = 401, serverError = 500
    static let closedByClient = 601, reused = 602, silent = 604, expired = 605, full = 607
    static let tokenExpired = 1_001
  }

  let double: TuyaDouble.Server
  let desk: TokenDesk
  let number: Int
  private let stream: ByteStream
  private var reader: FrameReader
  private var writer: FrameWriter?
  private(set) var state = State.fresh
  private(set) var isV1 = false
  private(set) var sessions: [DoubleSession] = []
  /// Sessions that this side has closed: packets for them may be on their way.
  private var closedSessions: Set<String> = []
  /// How many of them are remembered.
  static let mostClosedSessions = 1_000
  /// True: nothing is sent or received any more.
  private var isStalled = false
  /// True: it stays before the dialogue: sessions come and go, and nothing in them is answered.
  private var isHeld = false
  private var coalesced: [UInt8]?
  /// Milliseconds between two pings, as the client has declared.
  private var pingInterval = 0
  private var quiet = QuietSeconds()
  /// Number of the latest plan to close an expired connection; earlier ones are void.
  private var expiry = 0

  init(_ double: TuyaDouble.Server, _ desk: TokenDesk, _ stream: ByteStream, number: Int) {
    self.double = double
    self.desk = desk
    self.stream = stream
    self.number = number
    reader = FrameReader(localKey: double.scenario.localKey)
  }

  var id: String { "connection-\(number)" }
  var isOver: Bool { state == .over }

  // MARK: Receiving

  func handle(_ event: ByteStreamEvent) {
    switch event {
    case .opened, .drained: break
    case .bytes(let bytes):
      guard !isStalled, state != .over else { return }
      quiet.reset()
      reader.arrive(bytes)
      receive()
    case .finished:
      if state != .over, reader.isWithinPacket {
        double.violate("cutPacket", "the stream ended within a packet")
      }
      end()
      stream.close()
    case .closed: end()
    }
  }

  private func receive() {
    do throws(WireFault) {
      while state != .over, !isStalled, let packet = try reader.next() { try take(packet) }
    } catch {
      double.violate(error.kind.rawValue, error.text)
      close(Code.badRequest)
    }
  }

  private func take(_ packet: CloudPacket) throws(WireFault) {
    switch (packet.type, state) {
    case (PacketType.clientHello, .fresh): try greet(packet)
    case (PacketType.clientHello, _): double.violate("secondHello", "a ClientHello came again")
    case (PacketType.authRequest, .greeted) where isV1: authenticate(packet)
    case (PacketType.authRequest, _):
      double.violate("wrongAuth", "AuthReq belongs behind the ClientHello of v1")
    case (PacketType.connectionClose, _):
      double.note("> close \(packet.number(AttributeID.connectionCloseCode) ?? 0)")
      if packet.bytes(of: AttributeID.connectionCloseCode) == nil { missing("31", "ConnClose") }
      end()
      stream.close()
    case (_, .greeted):
      double.violate("beforeAuth", "a packet of type \(packet.type) before the connection was accepted")
    default: try takeOpen(packet)
    }
  }

  private func takeOpen(_ packet: CloudPacket) throws(WireFault) {
    switch packet.type {
    case PacketType.ping: pong(packet)
    case PacketType.sessionNew: try create(packet)
    case PacketType.sessionClose: closeByClient(packet)
    case PacketType.refreshRequest: refresh(packet)
    case _ where isHeld: break
    case PacketType.event:
      let event = try CloudEvent(packet, isV1: isV1)
      guard let session = sessions.first(where: { $0.id == event.session }) else {
        if !closedSessions.contains(event.session) {
          double.violate("unknownSession", "an event of a session that does not exist")
        }
        return
      }
      session.take(event)
    case PacketType.authResponse, PacketType.pong, PacketType.refreshResponse, PacketType.sessionState,
      PacketType.delayDisconnect:
      double.violate("wrongDirection", "a packet of type \(packet.type) is the cloud's")
    default:
      guard let kind = DataKind(packet: packet.type) else {
        return double.note("# a packet of type \(packet.type)")
      }
      try deliver(packet, kind)
    }
  }

  /// Data belongs to every session that has listed its id.
  private func deliver(_ packet: CloudPacket, _ kind: DataKind) throws(WireFault) {
    let media = try CloudMedia(kind, packet.payload, isV1: isV1)
    let parameters = try StreamParameters(kind, of: packet, isV1: isV1)
    let takers = sessions.filter { $0.channels.sends[media.channel] != nil }
    guard !takers.isEmpty else {
      if closedSessions.isEmpty {
        double.violate(
          "unknownChannel", "\(kind.rawValue) on data id \(media.channel), which no session has listed")
      }
      return
    }
    if kind == .audio { double.noteReceived(media.data) }
    // Of several sessions with the same microphone, those that listen take it.
    let ready = takers.filter(\.hasEvent)
    // One that has joined in the middle of a stream waits for the next.
    let begun = media.flag.hasParameters ? [] : ready.filter { $0.hasStream(media.channel) }
    let listening = begun.isEmpty ? ready : begun
    for session in listening.isEmpty ? Array(takers.prefix(1)) : listening { session.take(media, parameters) }
  }

  // MARK: Opening

  private func greet(_ packet: CloudPacket) throws(WireFault) {
    guard let keys = reader.keys else { return }
    isV1 = keys.dialect.isV1
    state = .greeted
    let scenario = double.scenario
    let declared =
      packet.number(AttributeID.largestFragment).flatMap { Int(exactly: $0) } ?? FrameReader.usualLimit
    var limit = FrameWriter.limit(declared, keys.dialect)
    if scenario.fragment > 0 { limit = min(limit, scenario.fragment) }
    // The cipher of v1 is not known yet.
    if !isV1 { writer = FrameWriter(keys, from: .cloud, limit: limit) } else { v1Limit = limit }
    double.note("> hello \(isV1 ? "v1" : "v21")")
    check(hello: packet)
    pingInterval = packet.number(AttributeID.pingInterval).flatMap { Int(exactly: $0) } ?? 0
    if !isV1 { decide() }
  }

  private var v1Limit = FrameReader.usualLimit

  private func check(hello packet: CloudPacket) {
    let type = packet.number(AttributeID.clientType)
    if type != 1 && type != 2 { double.violate("wrongHello", "attribute 11 (client type) is 1 or 2") }
    if packet.text(AttributeID.clientID)?.isEmpty ?? true { missing("12 (client id)", "ClientHello") }
    if packet.bytes(of: AttributeID.pingInterval) == nil { missing("20 (ping interval)", "ClientHello") }
    isKnown = packet.text(AttributeID.clientID) == double.scenario.client
  }

  private var isKnown = false

  func missing(_ attribute: String, _ packet: String) {
    double.violate("missingAttribute", "\(packet) has no attribute \(attribute)")
  }

  private func authenticate(_ packet: CloudPacket) {
    double.note("> auth")
    if let keys = reader.keys { writer = FrameWriter(keys, from: .cloud, limit: v1Limit) }
    let scenario = double.scenario
    isKnown =
      isKnown && packet.text(AttributeID.user) == scenario.user
      && packet.text(AttributeID.password) == scenario.password
    decide()
  }

  /// Accepts the client, or refuses it as the scenario says.
  private func decide() {
    let scenario = double.scenario
    if number <= scenario.answers.count { return refuse(scenario.answers[number - 1]) }
    let place = number - scenario.answers.count
    if place <= scenario.closes.count { return close(scenario.closes[place - 1]) }
    if number <= scenario.refusals { return refuse(Self.code(of: scenario.refusalStatus)) }
    guard isKnown, !double.haveKeysExpired else { return refuse(Code.unauthenticated) }
    double.later(scenario.delay) { [self] in if state == .greeted { accept() } }
  }

  /// The status of the stream for one of HTTP.
  private static func code(of status: Int) -> Int {
    [400, 401, 404, 408, 504].contains(status) ? status : Code.serverError
  }

  private func refuse(_ status: Int) {
    double.note("< refused \(status)")
    send(CloudPacket(PacketType.authResponse, [CloudAttribute(AttributeID.connectionStatus, number: status)]))
    end()
    stream.close()
  }

  private func accept() {
    state = .open
    double.note("< accepted")
    send(
      CloudPacket(
        PacketType.authResponse,
        [
          CloudAttribute(AttributeID.connectionStatus, number: Code.ok),
          CloudAttribute(AttributeID.connectionID, id),
        ]))
    if double.scenario.willDisconnect { send(CloudPacket(PacketType.delayDisconnect)) }
    planExpiry()
    watch()
    if let fault = double.firstFault(at: .connecting), misbehave(fault, nil) { isHeld = fault.kind == .hold }
  }

  // MARK: Life

  private func pong(_ packet: CloudPacket) {
    guard let time = packet.bytes(of: AttributeID.clientTime) else { return missing("113", "Ping") }
    send(
      CloudPacket(
        PacketType.pong,
        [
          CloudAttribute(AttributeID.clientTime, time),
          CloudAttribute(AttributeID.serverTime, number: UnixClock.milliseconds),
        ]))
  }

  /// A client that says nothing for one and a half times its own interval is gone.
  private func watch() {
    guard pingInterval > 0 else { return }
    let limit = pingInterval * 3 / 2_000 + 1
    double.later(1_000) { [self] in
      guard state == .open, !isStalled else { return }
      if quiet.tick(isDue: true, limit: limit) {
        double.violate("latePing", "nothing came for \(limit) s; a ping is due every \(pingInterval) ms")
        return close(Code.silent)
      }
      watch()
    }
  }

  private func planExpiry() {
    expiry += 1
    let plan = expiry
    double.later(double.scenario.expire * 1_000) { [self] in
      if plan == expiry, state == .open { close(Code.expired) }
    }
  }

  private func refresh(_ packet: CloudPacket) {
    double.note("> refresh")
    if packet.text(AttributeID.connectionID) != id {
      double.violate("wrongConnection", "RefreshReq has another connection id")
    }
    double.change { $0.renewals += 1 }
    send(
      CloudPacket(
        PacketType.refreshResponse,
        [
          CloudAttribute(AttributeID.connectionStatus, number: Code.ok),
          CloudAttribute(AttributeID.expiry, number: UnixClock.seconds + double.scenario.expire),
        ]))
    planExpiry()
  }

  /// Closes the connection with a code.
  func close(_ code: Int) {
    guard state != .over else { return }
    double.note("< close \(code)")
    send(
      CloudPacket(PacketType.connectionClose, [CloudAttribute(AttributeID.connectionCloseCode, number: code)])
    )
    end()
    stream.close()
  }

  /// Nothing more happens here.
  private func end() {
    flush()
    state = .over
    for session in sessions { session.end() }
    sessions = []
  }

  // MARK: Sessions

  func create(_ packet: CloudPacket) throws(WireFault) {
    let opening = try SessionOpening(packet, isV1: isV1)
    double.note("> session")
    if let problem = opening.problem(sessions, double.scenario.own) {
      double.violate(problem)
      return refuse(session: opening.id, Code.badRequest)
    }
    guard sessions.count < double.scenario.sessions else { return refuse(session: opening.id, Code.full) }
    var isIssued = false
    switch desk.judge(opening.token) {
    case .good(let fromServer): isIssued = fromServer
    case .expired:
      // The client does not know yet, and may have begun an event; it closes the session itself.
      noteClosed(opening.id)
      return report(state: Code.tokenExpired, of: opening.id)
    case .missing:
      double.violate("noToken", "SessionNew has no agent token (attribute 45)")
      return refuse(session: opening.id, Code.unauthenticated)
    case .foreign, .unknown: return refuse(session: opening.id, Code.unauthenticated)
    }
    if isIssued, opening.bizTag != UInt64(double.scenario.bizTag) {
      double.violate("wrongBizTag", "the business tag is not that of the token")
    }
    _ = double.begin(session: opening.id, opening.json)
    let session = DoubleSession(self, opening)
    sessions.append(session)
    if let fault = double.firstFault(at: .listening) { _ = misbehave(fault, session) }
  }

  private func refuse(session id: String, _ code: Int) {
    double.note("< session closed \(code)")
    noteClosed(id)
    send(
      CloudPacket(
        PacketType.sessionClose,
        [
          CloudAttribute(AttributeID.sessionID, id),
          CloudAttribute(AttributeID.sessionCloseCode, number: code),
        ]))
  }

  func report(state code: Int, of id: String) {
    double.note("< session state \(code)")
    send(
      CloudPacket(
        PacketType.sessionState,
        [
          CloudAttribute(AttributeID.sessionID, id),
          CloudAttribute(AttributeID.sessionStateCode, number: code),
        ]))
  }

  /// Closes a session from this side.
  func close(_ session: DoubleSession, _ code: Int) {
    remove(session)
    refuse(session: session.id, code)
  }

  private func remove(_ session: DoubleSession) {
    session.end()
    sessions.removeAll { $0 === session }
  }

  private func closeByClient(_ packet: CloudPacket) {
    let id = packet.text(AttributeID.sessionID) ?? ""
    double.note("> session closed \(packet.number(AttributeID.sessionCloseCode) ?? 0)")
    guard let session = sessions.first(where: { $0.id == id }) else {
      if !closedSessions.contains(id) {
        double.violate("unknownSession", "SessionClose of a session that does not exist")
      }
      return
    }
    double.change { $0.stops += 1 }
    remove(session)
    noteClosed(id)
  }

  private func noteClosed(_ id: String) {
    if closedSessions.count >= Self.mostClosedSessions { closedSessions = [] }
    closedSessions.insert(id)
  }

  // MARK: Sending

  func send(_ packet: CloudPacket) {
    guard state != .over, !isStalled, writer != nil else { return }
    do throws(WireFault) {
      let frames = try writer?.frames(of: packet) ?? []
      for frame in frames { send(raw: frame) }
    } catch { double.note("# \(error.text)") }
  }

  /// Sends bytes in the scenario's way.
  private func send(raw bytes: [UInt8]) {
    switch double.scenario.delivery {
    case .whole: write(bytes)
    case .dribble: for byte in bytes { write([byte]) }
    case .coalesce:
      if coalesced == nil {
        coalesced = []
        double.later(5) { [self] in flush() }
      }
      coalesced?.append(contentsOf: bytes)
    }
  }

  private func flush() {
    guard let bytes = coalesced else { return }
    coalesced = nil
    if !isStalled { write(bytes) }
  }

  private func write(_ bytes: [UInt8]) {
    if !stream.send(bytes) { double.note("# the send backlog is full") }
  }

  // MARK: Faults

  func drop() {
    coalesced = nil
    end()
    stream.cancel()
  }

  func stall() {
    isStalled = true
    stream.pause()
  }

  /// A frame that is longer than any that the client takes.
  func sendOversized() {
    guard var maker = writer else { return }
    let body = [UInt8](repeating: 0x61, count: isV1 ? 2 << 20 : 65_000)
    if let frame = try? maker.frame(body, flag: 0, isHello: false, iv: maker.makeIV()) { send(raw: frame) }
    writer = maker
  }

  /// Breaks something on the wire; the packet is one that the client knows.
  func spoil(_ fault: TuyaWireFault, _ packet: CloudPacket) {
    guard var maker = writer else { return }
    let isV1 = isV1
    let bytes = packet.head(isV1: isV1) + packet.payload
    do throws(WireFault) {
      switch fault {
      case .signature:
        maker.spoilsSignature = true
        send(raw: try maker.frame(bytes, flag: 0, isHello: false, iv: maker.makeIV()))
      case .corrupt:
        var frame = try maker.frame(bytes, flag: 0, isHello: false, iv: maker.makeIV())
        frame[frame.count - maker.keys.dialect.trailer - 1] ^= 1
        send(raw: frame)
      case .sequence:
        maker.sequence &+= 1
        send(raw: try maker.frame(bytes, flag: 0, isHello: false, iv: maker.makeIV()))
      case .fragment: send(raw: try maker.frame(bytes, flag: 1, isHello: false, iv: maker.makeIV()))
      case .orphan: send(raw: try maker.frame(bytes, flag: 3, isHello: false, iv: maker.makeIV()))
      case .version:
        var frame = try maker.frame(bytes, flag: 0, isHello: false, iv: maker.makeIV())
        frame[0] ^= 0x0F
        send(raw: frame)
      }
    } catch { double.note("# \(error.text)") }
    writer = maker
  }
}
