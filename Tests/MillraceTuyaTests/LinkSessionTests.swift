import MillraceDialog
import MillraceJSON
import MillraceService
import TestSystem
import Testing

@testable import MillraceTuya

private let image = TuyaChannelName(.image)
private let video = TuyaChannelName(.video)
private let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0]

/// Parts of a second: a picture does not end by itself while a test runs.
@Sendable private func endlessPictures(_ target: inout TuyaTarget) {
  target.pictureParts = 1_000
  target.pictureRate = 8
}

/// A picture of many parts.
private let large = jpeg + [UInt8](repeating: 0, count: 100_000)

@Suite("Tuya: the sessions of a connection", .timeLimit(.minutes(10))) struct LinkSessionTests {
  /// The text of the error that was reported last.
  private func text(_ session: LinkSession) -> String {
    if case .closed(let error)? = session.events.last { return error.text }
    return ""
  }

  // MARK: A session that cannot be created

  @Test("a session with an id that is in use fails and says what to change; the other continues")
  func sameID() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let (first, second) = (LinkSession(over: connection), LinkSession(over: connection))
    try await first.begin("s")
    try await second.begin("s")
    try await second.expect { second.words.last == "closed 39002 - refuse" }
    #expect(text(second).contains("give each node another \"session\""))
    first.call(.text("still here", TuyaChannelName(.text), userData: nil))
    try await eventually { cloud.received.last?.type == .text }
    first.close()
    try await eventually { cloud.peers[0].isEnded }
    #expect(cloud.received.map(\.word) == ["hello", "new s", "text 3 onlyOne 10", "end s 200", "close 601"])
  }

  @Test("a session whose creation fits no frame fails, and nothing of it goes to the cloud")
  func largeCreation() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let (first, second) = (LinkSession(over: connection), LinkSession(over: connection))
    try await first.begin("s1")
    try await second.expect { second.words.count == 2 }
    let data: JSONValue = ["a": .string(String(repeating: "x", count: 5_000))]
    second.call(
      .createSession(TuyaCreation(id: "s2", isShared: false, userData: data)),
      .startEvent("e", userData: nil), .text("a", TuyaChannelName(.text), userData: nil))
    try await second.expect { second.words.last == "closed 39002 - refuse" }
    #expect(text(second).contains("shorten \"sessionAttributes\""))
    first.close()
    try await eventually { cloud.peers[0].isEnded }
    #expect(cloud.received.map(\.word) == ["hello", "new s1", "end s1 200", "close 601"])
  }

  @Test("a connection whose only session cannot be created is closed")
  func onlySession() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.expect { session.words.count == 2 }
    let data: JSONValue = ["a": .string(String(repeating: "x", count: 5_000))]
    session.call(.createSession(TuyaCreation(id: "s", isShared: false, userData: data)))
    try await session.expect { session.words.last == "closed 39002 - refuse" }
    try await eventually { cloud.peers[0].isEnded }
    #expect(cloud.received.map(\.word) == ["hello", "close 601"])
  }

  // MARK: A session that leaves

  @Test("a session that leaves a stalled network is closed in the cloud, so that its id is free again")
  func cancelled() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let (first, second) = (LinkSession(over: connection), LinkSession(over: connection))
    try await first.begin("s1")
    try await second.begin("s2")
    second.use { $0.cancel() }
    let third = LinkSession(over: connection)
    try await third.begin("s2")
    try await eventually { cloud.received.count == 5 }
    #expect(cloud.received.map(\.word) == ["hello", "new s1", "new s2", "end s2 200", "new s2"])
    for session in [first, third] { session.close() }
  }

  @Test("a picture in parts ends with the session that has begun it, where others send on its channel, too")
  func sharedPictureEnds() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(endlessPictures), on: .shared)
    let (first, second) = (LinkSession(over: connection), LinkSession(over: connection))
    try await first.begin("s1", isShared: true)
    try await second.begin("s2", isShared: true)
    first.call(.startEvent("e", userData: nil), .image(large, format: .jpeg, image, userData: nil, call: 1))
    try await eventually { cloud.received.contains { $0.word == "image 105 start 1000" } }
    first.close()
    try await eventually { cloud.received.contains { $0.word == "end s1 200" } }
    #expect(cloud.received.suffix(2).map(\.word) == ["image 105 end 0", "end s1 200"])
    second.close()
  }

  // MARK: Events that are broken off

  @Test("a question that is broken off before its picture was sent is not ended, and another may follow")
  func brokenQuestion() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(endlessPictures), on: .shared))
    try await session.begin("s")
    session.call(
      .startEvent("a", userData: nil), .image(large, format: .jpeg, image, userData: nil, call: 1),
      .endPayloads(event: "a", image, userData: nil), .endEvent("a", userData: nil),
      .startEvent("b", userData: nil), .breakEvent("a", userData: nil))
    try await session.expect { session.words.last == "failed 1 39006" }
    try await eventually { cloud.received.last?.word == "event 0 b" }
    #expect(
      cloud.received.filter { $0.type == .event }.map(\.word) == ["event 0 a", "event 4 a", "event 0 b"])
    session.close()
  }

  @Test("a video begins again in the next event, also when the one before was broken off or not ended")
  func videoAgain() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(
      over: TuyaConnection(cloud.target(), on: .shared), terms: TuyaTerms(sends: [.audio, .video]))
    try await session.begin("s")
    func frame(_ call: Int) async throws {
      session.call(.image(jpeg, format: .jpeg, video, userData: nil, call: call))
      try await session.expect { session.words.last == "sent \(call)" }
    }
    session.call(.startEvent("a", userData: nil))
    try await frame(1)
    session.call(.breakEvent("a", userData: nil), .startEvent("b", userData: nil))
    try await frame(2)
    // The cloud has ended it.
    session.call(.startEvent("c", userData: nil))
    try await frame(3)
    try await frame(4)
    try await eventually { cloud.received.count == 10 }
    #expect(
      cloud.received.dropFirst(2).map(\.word) == [
        "event 0 a", "video 3 start 4", "event 4 a", "event 0 b", "video 3 start 4", "event 0 c",
        "video 3 start 4", "video 3 streaming 4",
      ])
    session.close()
  }

  @Test("a picture that waits in an event that the cloud has ended is not sent in the next")
  func endedByCloud() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(endlessPictures), on: .shared))
    try await session.begin("s")
    session.call(
      .startEvent("a", userData: nil), .image(large, format: .jpeg, image, userData: nil, call: 1),
      .startEvent("b", userData: nil), .endEvent("b", userData: nil))
    try await session.expect { session.words.last == "failed 1 39006" }
    try await eventually { cloud.received.last?.word == "event 2 b" }
    session.close()
  }

  @Test("a frame of a video that was not taken leaves the beginning to the next")
  func refusedFrame() throws {
    let inbox = TuyaInbox(on: .shared, limit: 1, onRoom: {}) { _ in }
    var line = TuyaLine(1, TuyaWireSettings(voice: TuyaVoice(.pcm)), .v21, inbox)
    var (routes, streams) = (TuyaRoutes(), TuyaSharedStreams())
    let creation = TuyaCreation(id: "s", isShared: false, userData: nil)
    let terms = TuyaTerms(sends: [.video])
    let channels = try routes.create(1, creation, terms)
    _ = line.create(creation, TuyaGrant(token: TuyaSecret("t"), terms: terms), channels)
    func frame() throws -> TuyaBulk? {
      let call = TuyaCall.image(jpeg, format: .jpeg, video, userData: nil, call: 1)
      guard case .bulk(let bulk, _, _, _)? = try line.orders(for: call, at: 0, &streams).first else {
        return nil
      }
      return bulk
    }
    func begins(_ bulk: TuyaBulk?) -> Bool {
      if case .video(_, let isFirst)? = bulk?.kind { return isFirst }
      return false
    }
    #expect(begins(try frame()))
    let taken = try #require(try frame())
    #expect(begins(taken))
    line.noteQueued(taken)
    #expect(!begins(try frame()))
  }

  // MARK: Limits

  @Test("a picture and a text that are too large fail, and say how large they may be")
  func limits() async throws {
    let folder = TemporaryFolder()
    let tooLarge = jpeg + [UInt8](repeating: 0, count: TuyaPicture.mostBytes - 3)
    put(tooLarge, at: folder.file("a.jpg"))
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    let text = String(repeating: "x", count: 32_001)
    session.call(
      .image(tooLarge, format: .jpeg, image, userData: nil, call: 1),
      .file(path: folder.file("a.jpg"), name: nil, image, userData: nil, call: 2),
      .text(text, TuyaChannelName(.text), userData: nil),
      .text(String(text.dropLast()), TuyaChannelName(.text), userData: nil))
    try await eventually { cloud.received.count == 3 }
    #expect(cloud.received.last?.word == "text 3 onlyOne 32000")
    try await session.expect { session.words.last == "failed 0 39008" }
    #expect(session.words.suffix(3) == ["failed 1 39008", "failed 2 39009", "failed 0 39008"])
    for (event, size) in zip(session.events.suffix(3), ["1000000", "1000000", "32000"]) {
      guard case .message(.failed(let error, _)) = event else { continue }
      #expect(error.text.contains(size))
    }
    session.close()
  }
}
