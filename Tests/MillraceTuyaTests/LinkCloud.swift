import MillraceCore
import MillraceCrypto
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceService
import Testing

@testable import MillraceTuya

/// A cloud on this machine that answers logins, and otherwise does what a test says.
final class LinkCloud: Sendable {
  static let key = "0123456789abcdef"

  /// What a test decides about a packet, on the peer's loop. True: it was answered; false: the cloud's own answer.
  typealias Rule = @Sendable (TuyaPacket, Peer) -> Bool

  /// A client's connection.
  final class Peer: @unchecked Sendable {
    /// The first connection has number 1.
    let number: Int
    private let stream: ByteStream
    private var reader: TuyaFrameReader
    private var writer: TuyaFrameWriter
    private let cloud: LinkCloud
    private let packets = Locked<[TuyaPacket]>([])
    private let ended = Locked(false)
    private let dialect: TuyaDialect

    init(_ number: Int, _ stream: ByteStream, _ cloud: LinkCloud) {
      self.number = number
      self.stream = stream
      self.cloud = cloud
      dialect = cloud.dialect
      // Those of a client come with its hello.
      let keys = TuyaKeys(
        localKey: SecretKey(utf8: "none"), random: [UInt8](repeating: 0, count: TuyaKeys.randomBytes))
      let framing = TuyaFraming(dialect, keys: keys)
      reader = TuyaFrameReader(framing, .up)
      writer = TuyaFrameWriter(framing, .down)
    }

    /// What the client has sent.
    var received: [TuyaPacket] { packets.withLock { $0 } }
    /// The client has closed the connection.
    var isEnded: Bool { ended.withLock { $0 } }

    func take(_ event: ByteStreamEvent) {
      switch event {
      case .bytes(let bytes): read(bytes)
      case .finished: stream.close()
      case .closed: ended.withLock { $0 = true }
      case .opened, .drained: break
      }
    }

    private func read(_ bytes: [UInt8]) {
      if dialect == .v1 && received.isEmpty { useRandoms(in: bytes) }
      reader.append(bytes)
      while true {
        let packet: TuyaPacket
        do throws(TuyaWireProblem) {
          guard let next = try reader.next() else { return }
          packet = next
        } catch {
          // Nothing that follows would be right: the client does not have to wait for an answer.
          Issue.record("the client sent an invalid frame: \(error.text)")
          return stream.cancel()
        }
        if packet.type == .clientHello { use(packet) }
        packets.withLock { $0.append(packet) }
        if !cloud.rule.withLock({ $0 })(packet, self) { answer(packet) }
      }
    }

    private func use(_ hello: TuyaPacket) {
      guard dialect != .v1 else { return }
      use(
        TuyaKeys(
          localKey: SecretKey(utf8: LinkCloud.key),
          random: Array((hello.attributes.bytes(.securitySuite) ?? [0]).dropFirst())))
    }

    private func use(_ keys: TuyaKeys) {
      reader.use(keys)
      writer.use(keys)
    }

    /// The hello of v1 is signed with a key that it gives itself: its randoms are looked for in the frame, which comes in one piece here.
    private func useRandoms(in frame: [UInt8]) {
      func number(_ from: Int, _ count: Int) -> Int {
        frame[from..<from + count].reduce(0) { $0 << 8 | Int($1) }
      }
      var values: [Int: [UInt8]] = [:]
      // Head and length, type, length of the attributes; each has id, kind, length and value.
      var index = 5 + 4 + 1 + 4
      let end = index + number(index - 4, 4)
      while index < end {
        let length = number(index + 3, 4)
        values[number(index, 2)] = Array(frame[index + 7..<index + 7 + length])
        index += 7 + length
      }
      use(
        TuyaKeys(
          localKey: SecretKey(utf8: LinkCloud.key), cryptRandom: values[13] ?? [],
          signRandom: values[14] ?? []))
    }

    /// The answer of every cloud: 200 to a login.
    func answer(_ packet: TuyaPacket) {
      switch packet.type {
      case .clientHello where dialect != .v1, .authRequest: accept()
      case .ping: send(TuyaPacket(.pong))
      default: break
      }
    }

    /// Accepts the login.
    func accept(_ status: TuyaStatus = .ok) {
      var attributes = TuyaAttributes()
      attributes.add(.status, UInt64(status.rawValue))
      attributes.add(.connectionID, "connection-\(number)")
      send(TuyaPacket(.authResponse, attributes))
    }

    /// Sends a packet. On any thread.
    func send(_ packet: TuyaPacket) {
      stream.loop.run { [self] in
        var bytes: [UInt8] = []
        do { try writer.append(packet, to: &bytes) } catch { Issue.record(error) }
        _ = stream.send(bytes)
      }
    }

    /// Sends bytes that are no frame.
    func send(raw bytes: [UInt8]) { stream.loop.run { [self] in _ = stream.send(bytes) } }
    /// Closes the connection.
    func close() { stream.close() }
    /// Closes it at once. Where bytes were not read yet, the client sees a reset.
    func abort() { stream.cancel() }
    /// Reads nothing more.
    func pause() { stream.pause() }
    func resume() { stream.resume() }
  }

  let dialect: TuyaDialect
  let port: Int
  let rule: Locked<Rule>
  private let all = Locked<[Peer]>([])
  private let server: Locked<ByteStreamServer?> = Locked(nil)

  private init(_ dialect: TuyaDialect, port: Int, _ rule: @escaping Rule) {
    self.dialect = dialect
    self.port = port
    self.rule = Locked(rule)
  }

  /// Starts one.
  static func listen(
    _ dialect: TuyaDialect = .v21, _ rule: @escaping Rule = { _, _ in false }
  ) async throws -> LinkCloud {
    var limits = ByteStreamLimits()
    limits.open = 600_000
    limits.close = 600_000
    let waiting = Locked<LinkCloud?>(nil)
    let server = try await ByteStreamServer.listen(port: 0, limits: limits) { _ in
      .accept { stream in
        guard let cloud = waiting.withLock({ $0 }) else { return { _ in } }
        let peer = cloud.all.withLock { all in
          let peer = Peer(all.count + 1, stream, cloud)
          all.append(peer)
          return peer
        }
        return { peer.take($0) }
      }
    }
    let cloud = LinkCloud(dialect, port: server.port, rule)
    waiting.withLock { $0 = cloud }
    cloud.server.withLock { $0 = server }
    return cloud
  }

  deinit { server.withLock { $0?.stop() } }

  var peers: [Peer] { all.withLock { $0 } }
  /// What the clients have sent, over all connections.
  var received: [TuyaPacket] { peers.flatMap(\.received) }

  /// Settings of a connection to it, with times that no test waits for.
  func target(_ change: (inout TuyaTarget) -> Void = { _ in }) -> TuyaTarget {
    var access = TuyaAccess()
    access.address = try? WebAddress("tcp://127.0.0.1:\(port)")
    access.client = "client"
    access.localKey = SecretKey(utf8: Self.key)
    access.user = "user"
    access.password = TuyaSecret("password")
    var target = TuyaTarget(access)
    target.dialect = dialect
    target.proxy = .direct
    target.open = 600_000
    target.answer = 600_000
    target.ping = 3_600_000
    change(&target)
    return target
  }
}

/// A session of a test: its wire, and what was reported to it.
final class LinkSession: @unchecked Sendable {
  let loop: NetLoop
  private let state = Locked<[ServiceEvent<TuyaNotice>]>([])
  /// On the session's loop.
  private var wire: TuyaWire?

  init(
    over connection: TuyaConnection, tokens: TuyaTokens? = nil, terms: TuyaTerms = TuyaTerms(),
    on loop: NetLoop = .shared, settings: TuyaWireSettings? = nil,
    during: @escaping @Sendable (ServiceEvent<TuyaNotice>, TuyaWire) -> Void = { _, _ in }
  ) {
    self.loop = loop
    let tokens = tokens ?? TuyaTokens(given: TuyaGrant(token: TuyaSecret("agent-token"), terms: terms))
    let settings = settings ?? TuyaWireSettings(voice: TuyaVoice(.pcm, frame: 40))
    loop.run { [self] in
      wire = TuyaWire(settings, over: connection, tokens: tokens, on: loop) { [self] event in
        #expect(loop.isCurrent)
        if let wire { during(event, wire) } else { Issue.record("an event came from within a call") }
        state.withLock { $0.append(event) }
      }
    }
  }

  var events: [ServiceEvent<TuyaNotice>] { state.withLock { $0 } }

  /// The events in short words.
  var words: [String] { events.map(Self.word) }

  /// Why there was no token the last time that one was asked for.
  var problem: String? {
    for case .message(.tokenFailed(let problem, _)) in events.reversed() { return problem.text }
    return nil
  }

  /// Sound that arrived, in one.
  var audio: [UInt8] {
    events.flatMap { event -> [UInt8] in
      if case .audio(let bytes) = event { return bytes }
      return []
    }
  }

  private static func word(_ event: ServiceEvent<TuyaNotice>) -> String {
    switch event {
    case .opened: "opened"
    case .audio(let bytes): "audio \(bytes.count)"
    case .image(let bytes): "image \(bytes.count)"
    case .invalidMessage(let text): "invalid \(text)"
    case .closed(let error): "closed \(error.code ?? 0) \(error.detail ?? "-") \(error.reaction.name)"
    case .message(let notice): word(notice)
    }
  }

  private static func word(_ notice: TuyaNotice) -> String {
    switch notice {
    case .connected(let id, _): "connected \(id)"
    case .token(_, let number): "token \(number)"
    case .tokenFailed(_, let number): "tokenFailed \(number)"
    case .tokenWillExpire: "tokenWillExpire"
    case .tokenExpired: "tokenExpired"
    case .sessionAnswered(let status): "answered \(status.rawValue)"
    case .sessionClosed(let status): "sessionClosed \(status.rawValue)"
    case .sessionState(let status): "sessionState \(status.rawValue)"
    case .willDisconnect: "willDisconnect"
    case .event(let event): "event \(event.type.rawValue) \(event.id)"
    case .streamBegan(.audio(let format)): "audio began \(format.codecNumber)"
    case .streamBegan(.image): "image began"
    case .streamBegan(.video): "video began"
    case .streamEnded(let kind): "\(kind.rawValue) ended"
    case .text: "text"
    case .unreadableText: "unreadable"
    case .file(_, let name, let kind): "file \(name ?? "-") \(kind.rawValue)"
    case .progress(let progress): "\(progress.name) \(progress.command ?? "-") \(progress.bytes ?? 0)"
    case .sent(let call): "sent \(call)"
    case .failed(let error, let call): "failed \(call) \(error.code ?? 0)"
    case .unknown: "unknown"
    }
  }

  /// Does something with the wire on its loop.
  func use(_ body: @escaping @Sendable (TuyaWire) -> Void) {
    loop.run { [self] in if let wire { body(wire) } }
  }

  /// Carries out calls, in order.
  func call(_ calls: TuyaCall...) {
    use { wire in for call in calls { #expect(wire.call(call)) } }
  }

  /// Sends frames of sound.
  func speak(_ frames: [[UInt8]]) { use { wire in for frame in frames { #expect(wire.send(voice: frame)) } } }

  /// Closes the wire and releases it.
  func close() {
    loop.run { [self] in
      wire?.close()
      wire = nil
    }
  }

  /// Creates the session, once it is connected.
  func begin(_ id: String, isShared: Bool = false) async throws {
    try await expect { words.contains { $0.hasPrefix("connected") } }
    call(.createSession(TuyaCreation(id: id, isShared: isShared, userData: nil)))
  }

  /// Waits until something holds, for at most two minutes.
  func expect(
    _ condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await eventually(condition, sourceLocation: sourceLocation) { "\(words)" }
  }
}

/// Waits until something holds, for at most two minutes.
func eventually(
  _ condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation,
  _ state: () -> String = { "" }
) async throws {
  let end = ContinuousClock.now + .seconds(120)
  while !condition() {
    guard ContinuousClock.now < end else {
      Issue.record("it did not happen: \(state())", sourceLocation: sourceLocation)
      throw CancellationError()
    }
    try await Task.sleep(for: .milliseconds(1))
  }
}

extension TuyaPacket {
  /// The type, and what matters of it, in short words.
  var word: String {
    switch content {
    case .media(let head, let bytes): "\(name) \(head.dataID) \(head.flag) \(bytes.count)"
    case .event(let type, _): "event \(type.rawValue) \(attributes.text(.eventID) ?? "-")"
    default: name
    }
  }

  private var name: String {
    switch type {
    case .clientHello: "hello"
    case .authRequest: "login"
    case .ping: "ping"
    case .connectionClose: "close \(attributes.integer(.closeCode) ?? 0)"
    case .sessionNew: "new \(attributes.text(.sessionID) ?? "-")"
    case .sessionClose:
      "end \(attributes.text(.sessionID) ?? "-") \(attributes.integer(.sessionCloseCode) ?? 0)"
    case .refreshRequest: "refresh \(attributes.text(.connectionID) ?? "-")"
    case .audio: "audio"
    case .image: "image"
    case .video: "video"
    case .file: "file"
    case .text: "text"
    default: "packet \(type.rawValue)"
    }
  }

  /// A packet of data.
  static func media(
    _ type: TuyaPacketType, _ id: UInt16, _ flag: TuyaStreamFlag, _ bytes: [UInt8],
    _ attributes: TuyaAttributes = TuyaAttributes()
  ) -> TuyaPacket {
    TuyaPacket(type, attributes, .media(TuyaMediaHead(id, flag), bytes))
  }

  /// Sound that begins.
  static func sound(
    _ id: UInt16, _ flag: TuyaStreamFlag, _ bytes: [UInt8], _ dialect: TuyaDialect = .v21
  ) -> TuyaPacket {
    var attributes = TuyaAttributes()
    if flag.begins { TuyaAudioParameters(.mp3).add(to: &attributes, dialect) }
    return media(.audio, id, flag, bytes, attributes)
  }

  /// An event of a session.
  static func event(_ type: TuyaEventType, _ session: String, _ id: String, _ data: String = "") -> TuyaPacket
  {
    var attributes = TuyaAttributes()
    attributes.add(.sessionID, session)
    attributes.add(.eventID, id)
    return TuyaPacket(.event, attributes, .event(type, Array(data.utf8)))
  }
}
