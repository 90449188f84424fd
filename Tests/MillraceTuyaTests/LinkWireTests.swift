import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceService
import TestSystem
import Testing

@testable import MillraceTuya

/// Tokens that a test hands out, in order; the last again and again.
private final class Tokens: TokenSource {
  private let count = Locked(0)
  private let texts: [String]
  private let life: Nanoseconds?

  init(_ texts: [String], life: Nanoseconds? = nil) {
    self.texts = texts
    self.life = life
  }

  func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    let index = count.withLock { count in
      defer { count += 1 }
      return min(count, texts.count - 1)
    }
    let token = ServiceToken(texts[index], expiry: life.map { clock.now + $0 })
    clock.run { done(.success(token)) }
  }

  /// The grants of an agent from these tokens.
  func grants(ahead: Nanoseconds = 0) throws -> TuyaTokens {
    TuyaTokens(
      TokenProvider(self, ahead: ahead, clock: try NetServiceClock()), given: TuyaGrant(token: TuyaSecret(""))
    )
  }
}

@Suite("Tuya: the wire of a session", .timeLimit(.minutes(10))) struct LinkWireTests {
  @Test("a refused grant is renewed once; the second refusal in a row is final")
  func refusedGrant() async throws {
    let cloud = try await LinkCloud.listen { _, peer in
      peer.accept(.unauthenticated)
      return true
    }
    let tokens = try Tokens(["a", "b", "c"]).grants()
    for reaction in ["reconnect", "refuse"] {
      let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared), tokens: tokens)
      try await session.expect { session.words == ["closed 39012 401 \(reaction)"] }
    }
  }

  @Test("a connection whose time is over is opened again with another grant")
  func expired() async throws {
    let cloud = try await LinkCloud.listen()
    let tokens = try Tokens(["a", "b"]).grants()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let session = LinkSession(over: connection, tokens: tokens)
    try await session.begin("s")
    try await eventually { cloud.received.count == 2 }
    var attributes = TuyaAttributes()
    attributes.add(.closeCode, 605)
    cloud.peers[0].send(TuyaPacket(.connectionClose, attributes))
    try await session.expect { session.words.last == "closed 39012 605 reconnect" }
    let next = LinkSession(over: connection, tokens: tokens)
    try await next.begin("s")
    try await eventually { cloud.received.count == 4 }
    let used = cloud.received.filter { $0.type == .sessionNew }.map { $0.attributes.text(.agentToken) ?? "" }
    #expect(used == ["a", "b"])
    next.close()
  }

  @Test("a session can ask for another token, and creates its next session with it")
  func token() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(
      over: TuyaConnection(cloud.target(), on: .shared), tokens: try Tokens(["a", "b"]).grants())
    try await session.begin("s")
    session.call(.requestToken(5, rejectsPresent: false))
    try await session.expect { session.words.last == "token 5" }
    session.call(.closeSession(.closedByClient), .requestToken(6, rejectsPresent: true))
    try await session.expect { session.words.last == "token 6" }
    session.call(.createSession(TuyaCreation(id: "s2", isShared: false, userData: nil)))
    try await eventually { cloud.received.last?.word == "new s2" }
    #expect(cloud.received.map(\.word) == ["hello", "new s", "end s 601", "new s2"])
    #expect(cloud.received.last?.attributes.text(.agentToken) == "b")
    // What is late for the first one finds nobody: its channels were others.
    cloud.peers[0].send(.sound(2, .onlyOne, [1]))
    cloud.peers[0].send(.sound(6, .onlyOne, [2]))
    try await session.expect { session.words.last == "audio ended" }
    #expect(session.audio == [2])
    session.close()
  }

  @Test("a token that cannot be renewed is reported, and the session stays")
  func noToken() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    session.call(.requestToken(5, rejectsPresent: true))
    try await session.expect { session.words.last == "tokenFailed 5" }
    // Nobody has refused it.
    #expect(
      session.problem
        == "there is no \"provider\" to ask for another token; give \"refreshAuth\" a string \"token\"")
    session.call(.text("still here", TuyaChannelName(.text), userData: nil))
    try await eventually { cloud.received.last?.type == .text }
    // Now the cloud has.
    var attributes = TuyaAttributes()
    attributes.add(.sessionID, "s")
    attributes.add(.sessionCloseCode, 1_001)
    cloud.peers[0].send(TuyaPacket(.sessionClose, attributes))
    try await session.expect { session.words.last == "sessionClosed 1001" }
    session.call(.requestToken(6, rejectsPresent: true))
    try await session.expect { session.words.last == "tokenFailed 6" }
    #expect(session.problem?.hasPrefix("the cloud has refused the token, and it cannot be renewed") == true)
    session.close()
  }

  @Test("a token that will expire is reported")
  func expiry() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(
      over: TuyaConnection(cloud.target(), on: .shared),
      tokens: try Tokens(["a", "b", "c"], life: .milliseconds(2_000)).grants(ahead: .milliseconds(900)))
    try await session.expect { session.words.contains("tokenWillExpire") }
    session.close()
  }

  @Test("a provider that gives no valid answer ends the wire with the vendor's code")
  func invalidAnswer() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(
      over: TuyaConnection(cloud.target(), on: .shared), tokens: try Tokens(["{"]).grants())
    try await session.expect { session.words == ["closed 39003 - refuse"] }
    #expect(cloud.peers.isEmpty)
  }

  @Test("a picture in one packet is cut into frames, and arrives whole", arguments: [TuyaDialect.v21, .v1])
  func wholePicture(_ dialect: TuyaDialect) async throws {
    let cloud = try await LinkCloud.listen(dialect)
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    let picture = [0xFF, 0xD8, 0xFF] + (0..<60_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    session.call(.image(picture, format: .jpeg, TuyaChannelName(.image), userData: nil, call: 1))
    try await eventually { cloud.received.last?.type == .image }
    guard case .media(let head, let bytes)? = cloud.received.last?.content else { return }
    #expect(head.flag == .onlyOne)
    #expect(bytes == picture)
    session.close()
  }

  @Test("a packet that fits no frame fails alone; the other sessions continue")
  func tooLarge() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let (first, second) = (LinkSession(over: connection), LinkSession(over: connection))
    try await first.begin("s1")
    try await second.begin("s2")
    first.call(.startEvent("e", userData: ["a": .string(String(repeating: "x", count: 5_000))]))
    try await first.expect { first.words.last == "failed 0 39008" }
    second.call(.startEvent("e2", userData: nil))
    first.call(.startEvent("e1", userData: nil))
    try await eventually { cloud.received.last?.word == "event 0 e1" }
    #expect(cloud.received.map(\.word) == ["hello", "new s1", "new s2", "event 0 e2", "event 0 e1"])
    for session in [first, second] { session.close() }
  }

  @Test("a network that takes nothing makes calls fail, and does not collect without end")
  func stalled() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    try await eventually { cloud.received.count == 2 }
    cloud.peers[0].pause()
    let isRefused = Locked(false)
    let text = String(repeating: "x", count: 32_000)
    // More than the systems' buffers take.
    for _ in 0..<5_000 where !isRefused.withLock({ $0 }) {
      await withCheckedContinuation { continuation in
        session.use { wire in
          let isTaken = wire.call(.text(text, TuyaChannelName(.text), userData: nil))
          if !isTaken { isRefused.withLock { $0 = true } }
          // The connection has taken it when this comes.
          NetLoop.shared.run { continuation.resume() }
        }
      }
    }
    #expect(isRefused.withLock { $0 })
    session.use { wire in
      #expect(wire.backlog < 2 * TuyaConnection.stalled)
      wire.cancel()
    }
    cloud.peers[0].resume()
  }

  @Test("a file that was received is stored, under a name that is safe")
  func receivedFile() async throws {
    let folder = TemporaryFolder()
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(
      over: TuyaConnection(cloud.target(), on: .shared), terms: TuyaTerms(receives: [.audio, .file]),
      settings: TuyaWireSettings(voice: TuyaVoice(.pcm), cache: folder.path))
    try await session.begin("s")
    try await eventually { cloud.received.count == 2 }
    var attributes = TuyaAttributes()
    TuyaFileParameters(format: 4, name: "../a.json").add(to: &attributes, .v21)
    cloud.peers[0].send(.media(.file, 4, .start, [1, 2], attributes))
    cloud.peers[0].send(.media(.file, 4, .end, [3]))
    try await session.expect { session.words.last == "file ../a.json file" }
    #expect(contents(folder.file("a.json")) == [1, 2, 3])
    session.close()
  }

  @Test("a picture for all sessions goes over a shared channel once, and each is reported")
  func sharedPicture() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let sessions = [LinkSession(over: connection), LinkSession(over: connection)]
    for (index, session) in sessions.enumerated() { try await session.begin("s\(index)", isShared: true) }
    for session in sessions {
      session.call(
        .image([0xFF, 0xD8, 0xFF, 0], format: .jpeg, TuyaChannelName(.image), userData: nil, call: 3))
    }
    for session in sessions { try await session.expect { session.words.last == "sent 3" } }
    for session in sessions { session.close() }
    try await eventually { cloud.peers[0].isEnded }
    #expect(cloud.received.filter { $0.type == .image }.map(\.word) == ["image 105 onlyOne 4"])
  }

  @Test("pictures of a video are one stream, which ends before the end of its channel is reported")
  func video() async throws {
    let cloud = try await LinkCloud.listen()
    let terms = TuyaTerms(sends: [.audio, .video])
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared), terms: terms)
    try await session.begin("s")
    let channel = TuyaChannelName(.video)
    session.call(.startEvent("e", userData: nil))
    for call in 1...3 {
      session.call(.image([0xFF, 0xD8, 0xFF, 0], format: .jpeg, channel, userData: nil, call: call))
      try await session.expect { session.words.last == "sent \(call)" }
    }
    session.call(.endPayloads(event: "e", channel, userData: nil), .endEvent("e", userData: nil))
    try await eventually { cloud.received.last?.word == "event 2 e" }
    #expect(
      cloud.received.dropFirst(2).map(\.word) == [
        "event 0 e", "video 3 start 4", "video 3 streaming 4", "video 3 streaming 4", "video 3 end 0",
        "event 1 e",
        "event 2 e",
      ])
    session.close()
  }

  @Test("an Opus packet of another size is padded; one that is too large is reported once, and dropped")
  func opus() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(
      over: TuyaConnection(cloud.target(), on: .shared),
      settings: TuyaWireSettings(voice: TuyaVoice(.opus(bitRate: 16_000), frame: 40, framesPerPacket: 2)))
    try await session.begin("s")
    session.call(.startEvent("e", userData: nil), .beginVoice(event: "e"))
    let large = [UInt8](repeating: 0x58, count: 81)
    session.speak([[UInt8](repeating: 0x58, count: 80), large, large, [0x58]])
    session.call(.endVoice(isCut: false))
    try await eventually { cloud.received.last?.word == "audio 1 end 0" }
    #expect(
      cloud.received.filter { $0.type == .audio }.map(\.word) == ["audio 1 start 160", "audio 1 end 0"])
    #expect(session.words.filter { $0.hasPrefix("failed") } == ["failed 0 39008"])
    let format = try TuyaAudioParameters(cloud.received[3].attributes)
    #expect(format?.text == "111 1 16 16000 0 16000 40 80")
    session.close()
  }

  @Test("a ping is not late because of a picture, and its silence ends the connection")
  func ping() async throws {
    let cloud = try await LinkCloud.listen { packet, _ in packet.type == .ping }
    let connection = TuyaConnection(
      cloud.target {
        $0.ping = 200
        $0.pictureParts = 100
        $0.pictureRate = 8
      }, on: .shared)
    let session = LinkSession(over: connection)
    try await session.begin("s")
    session.call(
      .image(
        [0xFF, 0xD8, 0xFF] + [UInt8](repeating: 0, count: 100_000), format: .jpeg, TuyaChannelName(.image),
        userData: nil, call: 1))
    try await session.expect { session.words.last == "closed 39012 604 reconnect" }
    try await eventually { cloud.received.contains { $0.type == .ping } }
    #expect(!cloud.received.contains { $0.word.hasPrefix("image 5 end") })
  }
}
