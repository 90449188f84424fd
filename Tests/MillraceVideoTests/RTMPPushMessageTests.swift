import Glibc
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Serialized: each test has a server, a sender and a player on the real-time clock.
@Suite("rtmp.push, messages in pictures", .serialized)
struct RTMPPushMessageTests {
  private static let uuid = "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"

  /// Pictures made in real time, each brighter than the one before, a player of their stream, and the events of both.
  private final class Relay {
    let sender: NodeBench
    let player: NodeBench
    private(set) var told: [BenchEvent] = []
    private(set) var seen: [BenchEvent] = []
    private(set) var pictures: [CapturedPacket] = []
    private(set) var sent = 0
    private let start: Nanoseconds

    init(_ url: String, _ format: Format = .event) throws {
      sender = try NodeBench(
        RTMPPush.self,
        [
          "url": .string(url), "first": 20, "most": 100, "timeout": 120_000, "keyInterval": 400,
          "queue": 60_000,
        ],
        inputs: [
          "in": pictureInput(160, 120), "sei": OutputShape(format, packetDuration: nil, packetBytes: 4_096),
        ], clock: .realtime)
      player = try NodeBench(
        RTMPPull.self,
        ["url": .string(url), "width": 160, "height": 120, "first": 20, "most": 100, "timeout": 60_000],
        outputs: ["out", "events"], clock: .realtime)
      start = sender.now
    }

    /// Sends pictures as they are due, until a condition holds; false after two minutes.
    func run(until condition: () throws -> Bool) throws -> Bool {
      let end = Clock(.realtime).now + .milliseconds(120_000)
      while try !condition() {
        guard Clock(.realtime).now < end else { return false }
        let now = Int((sender.now - start) / 1_000_000)
        while sent * 40 <= now {
          sender.push(
            bytes: FlashAndClick.picture(0, [], width: 160, height: 120), to: "in", duration: 1,
            timestamp: start + .milliseconds(Int64(sent * 40)))
          sent += 1
        }
        _ = try sender.wait(0) { true }
        _ = try player.wait(0) { true }
        pictures += player.packets()
        told += sender.events()
        seen += player.events()
        usleep(5_000)
      }
      return true
    }

    var messages: [BenchEvent] { seen.filter { $0.name == "sei" && $0.string("uuid") != nil } }
    var words: String { (told + seen).map(\.json).joined(separator: "\n") }
    var errors: [String] { told.filter { $0.name == "error" }.compactMap { $0.string("text") } }
  }

  @Test(
    "messages arrive with their pictures, whole and in order, as text and as bytes",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func messages() throws {
    let server = try #require(StreamServer())
    let relay = try Relay(server.url("messages"))
    try #require(try relay.run { relay.pictures.count > 5 }, "\(relay.words)")
    let longest = String(repeating: "x", count: UserData.most)
    for event in [
      #"{"event":"sei","uuid":"\#(Self.uuid)","text":"{\"STATUS\":\"TextStart\"}"}"#,
      // Another node's event is no message, and the order of those of one picture stays.
      #"{"event":"state","state":"listening"}"#,
      #"{"event":"sei","uuid":"\#(Self.uuid.uppercased())","base64":"AQID/w=="}"#,
      #"{"event":"sei","text":"\#(longest)"}"#,
    ] { relay.sender.push(text: event, to: "sei") }
    let own = relay.messages.count
    try #require(try relay.run { relay.messages.count >= own + 3 }, "\(relay.words)")
    let arrived = relay.messages.suffix(3)
    #expect(
      arrived.map { $0.string("text") ?? $0.string("base64") ?? "" } == [
        #"{"STATUS":"TextStart"}"#, "AQID/w==", longest,
      ])
    #expect(
      arrived.map { $0.string("uuid") } == [Self.uuid, Self.uuid, "7b1c9c1e-5a0d-4f7e-9d3a-2f0b8a6c41d7"])
    #expect(Set(arrived.map { $0.number("picture") }).count == 1)
    // Each went with one picture.
    let count = relay.pictures.count
    try #require(try relay.run { relay.pictures.count > count + 10 }, "\(relay.words)")
    #expect(relay.messages.count == own + 3 && relay.errors == [])
    #expect(relay.sender.close() == [] && relay.player.close() == [])
  }

  @Test(
    "what is no message is reported, and the stream continues",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func refusals() throws {
    let server = try #require(StreamServer())
    let relay = try Relay(server.url("refusals"))
    try #require(try relay.run { relay.pictures.count > 5 }, "\(relay.words)")
    let events: [(String, String)] = [
      ("[]", "the event is not a JSON object"),
      (#"{"event":"sei"}"#, #"the event has neither "text" nor a valid "base64""#),
      (#"{"event":"sei","base64":"A"}"#, #"the event has neither "text" nor a valid "base64""#),
      (#"{"event":"sei","uuid":"a0a1","text":"x"}"#, #"the event's "uuid" is not a UUID"#),
      (#"{"event":"sei","uuid":7,"text":"x"}"#, #"the event's "uuid" is not a UUID"#),
      (
        #"{"event":"sei","text":"\#(String(repeating: "x", count: UserData.most + 1))"}"#,
        "the message for a picture has 2049 bytes"
      ),
    ]
    for (event, _) in events { relay.sender.push(text: event, to: "sei") }
    try #require(try relay.run { relay.errors.count >= events.count }, "\(relay.words)")
    #expect(relay.errors == events.map(\.1))
    let count = relay.pictures.count
    #expect(try relay.run { relay.pictures.count > count + 10 }, "\(relay.words)")
    #expect(relay.sender.close() == [] && relay.player.close() == [])
  }

  @Test(
    "more messages than pictures can take are dropped, counted and reported; the others arrive",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func flood() throws {
    let server = try #require(StreamServer())
    let relay = try Relay(server.url("flood"), .text)
    try #require(try relay.run { relay.pictures.count > 5 }, "\(relay.words)")
    let own = relay.messages.count
    let most = PictureEncoder.mostMessages
    for number in 1...most + 3 { relay.sender.push(text: "message \(number)", to: "sei") }
    try #require(try relay.run { relay.messages.count >= own + most }, "\(relay.words)")
    #expect(relay.errors == ["3 messages for pictures were dropped: \(most) wait already"])
    #expect(relay.messages.suffix(most).map { $0.string("text") } == (1...most).map { "message \($0)" })
    // As many with each picture as a player reports.
    let places = relay.messages.suffix(most).compactMap { $0.number("picture") }
    #expect(places == places.sorted() && Set(places).count == most / UserData.mostOfPicture)
    #expect(relay.sender.close() == [] && relay.player.close() == [])
  }
}
