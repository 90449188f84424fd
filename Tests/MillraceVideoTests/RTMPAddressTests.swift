import Foundation
import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Serialized: each test has servers, senders and players on the real-time clock.
@Suite("rtmp.pull, addresses that come while it runs", .serialized)
struct RTMPAddressTests {
  private let folder = TemporaryFolder()

  /// Two seconds of one colour and silence.
  private func makeVideo(luma: UInt8) -> String {
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (160, 120, 50)
    video.colour = { _ in (luma, 128, 128) }
    video.sound = [Int16](repeating: 0, count: 96_000)
    let path = folder.file("video\(luma).mp4")
    video.write(to: path)
    return path
  }

  /// A node without an address, and all it has told.
  private final class Player {
    let bench: NodeBench
    private(set) var pictures: [CapturedPacket] = []
    private(set) var events: [BenchEvent] = []

    init(_ format: Format = .text, _ parameters: [String: ParameterValue] = [:]) throws {
      var values: [String: ParameterValue] = [
        "width": 160, "height": 120, "first": 20, "most": 100, "timeout": 60_000,
      ]
      values.merge(parameters) { _, new in new }
      bench = try NodeBench(
        RTMPPull.self, values,
        inputs: ["address": OutputShape(format, packetDuration: nil, packetBytes: 4_096)],
        outputs: ["out", "audio", "events"], clock: .realtime)
    }

    func wait(_ condition: () -> Bool) throws -> Bool {
      try bench.wait(120) {
        pictures += bench.packets()
        _ = bench.packets("audio")
        events += bench.events()
        return condition()
      }
    }

    func names(_ name: String) -> [BenchEvent] { events.filter { $0.name == name } }
    var words: String { events.map(\.json).joined(separator: "\n") }

    /// Waits for a picture of this luma.
    func sees(_ luma: Int) throws -> Bool {
      try wait { pictures.last.map { abs(Int($0.bytes[0]) - luma) < 8 } == true }
    }
  }

  private static let missing = "rtmp://127.0.0.1:\(Loopback.freePort())/live/hush-key"

  @Test(
    "an address begins a stream, another one replaces it, an empty one stops it; the same one changes nothing",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func changes() throws {
    let server = try #require(StreamServer())
    let dark = LiveStream(video: makeVideo(luma: 60), to: server.url("hush-dark"))
    let bright = LiveStream(video: makeVideo(luma: 200), to: server.url("hush-bright"))
    defer { dark.stop() }
    defer { bright.stop() }
    try #require(dark.waitForStart() && bright.waitForStart())
    let player = try Player()
    try player.bench.run()
    #expect(player.bench.events().isEmpty && !player.bench.hasEnded)
    player.bench.push(text: server.url("hush-dark"))
    let isDark = try player.sees(60)
    #expect(isDark, "\(player.words) \(server.log)")
    player.bench.push(text: "\(server.url("hush-bright"))\n")
    let isBright = try player.sees(200)
    #expect(isBright, "\(player.words)")
    #expect(player.names("ended").last?.json.contains(#""why":"replaced""#) == true, "\(player.words)")
    player.bench.push(text: server.url("hush-bright"))
    let count = player.pictures.count
    let goesOn = try player.wait { player.pictures.count > count + 5 }
    #expect(goesOn && player.names("connected").count == 2, "\(player.words)")
    player.bench.push(text: "")
    let isStopped = try player.wait { player.names("ended").count == 2 }
    #expect(isStopped && player.names("ended").last?.json.contains(#""why":"stopped""#) == true)
    let last = player.pictures.count
    player.bench.push(text: server.url("hush-dark"))
    let isDarkAgain = try player.sees(60)
    #expect(isDarkAgain)
    // Nothing of the stopped stream follows, and positions and times continue.
    #expect(player.pictures[last...].allSatisfy { $0.bytes[0] < 130 })
    #expect(player.pictures.map(\.position) == (0..<Int64(player.pictures.count)).map { $0 })
    #expect(
      zip(player.pictures, player.pictures.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp })
    let firsts = player.names("firstPicture")
    #expect(firsts.count == 3 && firsts.allSatisfy { $0.number("ms") ?? 0 > 0 }, "\(player.words)")
    #expect(player.names("size").count == 3)
    #expect(!player.words.contains("hush"), "\(player.words)")
    #expect(player.bench.close() == [])
  }

  @Test(
    "a stop and the same address in one go restart the stream",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func restart() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(luma: 60), to: server.url("restart"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player()
    player.bench.push(text: server.url("restart"))
    let isSeen = try player.sees(60)
    #expect(isSeen)
    player.bench.push(text: "")
    player.bench.push(text: server.url("restart"))
    let isAgain = try player.wait { player.names("firstPicture").count == 2 }
    #expect(isAgain, "\(player.words)")
    #expect(player.bench.close() == [])
  }

  @Test(
    "a service's events begin and stop a stream; its other events do nothing",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func events() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(luma: 60), to: server.url("events"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player(.event)
    let url = server.url("events").replacing("/", with: "\\/")
    for (begin, end) in [("", #"{"event":"streamEnded"}"#), (#","id":1"#, #"{"event":"stream"}"#)] {
      let count = player.names("ended").count
      player.bench.push(text: #"{"event":"stream","url":"\#(url)"\#(begin)}"#)
      let before = player.pictures.count
      let isSeen = try player.wait { player.pictures.count > before }
      #expect(isSeen, "\(player.words)")
      player.bench.push(text: #"{"event":"state","state":"thinking","url":"rtmp://nobody/a/b"}"#)
      player.bench.push(text: end)
      let isStopped = try player.wait { player.names("ended").count == count + 1 }
      #expect(isStopped, "\(player.words)")
    }
    #expect(player.names("error").isEmpty && !player.words.contains("replaced"), "\(player.words)")
    #expect(player.bench.close() == [])
  }

  @Test(
    "what is no address is an error that says why and not what it was, and the stream continues",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func refused() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(luma: 60), to: server.url("refused"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player()
    player.bench.push(text: server.url("refused"))
    let isSeen = try player.sees(60)
    #expect(isSeen)
    let long = "rtmp://host/app/hush" + String(repeating: "x", count: 2_048)
    for (text, cause) in [
      ("http://127.0.0.1/live/hush", "the address does not start with rtmp: or rtmps:"),
      ("rtmp://host/hush", "the address has no stream name after the application"),
      ("rtmp://host/live/hu sh", "the address contains a space or a control character"),
      (long, "the address has more than 2048 bytes"),
    ] {
      let (count, pictures) = (player.names("error").count, player.pictures.count)
      player.bench.push(text: text)
      let isTold = try player.wait {
        player.names("error").count > count && player.pictures.count > pictures + 2
      }
      #expect(isTold, "\(player.words)")
      let cure = "use an address such as \\\"rtmp://live.example.org/app/stream\\\""
      let end = "\"event\":\"error\",\"text\":\"\(cause)\",\"cure\":\"\(cure)\"}"
      #expect(player.names("error").last?.json.hasSuffix(end) == true, "\(player.words)")
    }
    #expect(player.names("connected").count == 1 && player.names("ended").isEmpty)
    #expect(!player.words.contains("hush") && !player.words.contains("hu sh"))
    #expect(player.bench.close() == [])
  }

  @Test("an event that is no event is an error, too", .timeLimit(.minutes(30)))
  func garbled() throws {
    let player = try Player(.event)
    for (text, cause) in [
      ("rtmp://127.0.0.1/live/hush", "the event is not a JSON object"),
      (#"{"event":"stream","url":["hush"]}"#, #"the event's \"url\" is not a text"#),
    ] {
      let count = player.names("error").count
      player.bench.push(text: text)
      let isTold = try player.wait { player.names("error").count > count }
      #expect(isTold && player.words.contains(cause) && !player.words.contains("hush"), "\(player.words)")
    }
    #expect(player.bench.close() == [])
  }

  @Test(
    "an address that does not answer is left at once for another one, and at a stop",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func connecting() throws {
    let (first, second) = (SilentServer(), SilentServer())
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(luma: 60), to: server.url("found"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player(.text, ["timeout": 600_000])
    player.bench.push(text: "rtmp://127.0.0.1:\(first.port)/live/hush-key")
    try player.bench.run()
    #expect(first.waitForClient())
    player.bench.push(text: server.url("found"))
    let isSeen = try player.sees(60)
    let hasLeft = first.waitForClose()
    #expect(isSeen && hasLeft, "\(player.words)")
    player.bench.push(text: "rtmp://127.0.0.1:\(second.port)/live/hush-key")
    try player.bench.run()
    #expect(second.waitForClient())
    player.bench.push(text: "")
    try player.bench.run()
    let hasLeftToo = second.waitForClose()
    #expect(hasLeftToo)
    #expect(player.bench.close() == [])
  }

  @Test("a stream that is lost for good waits for its address to come again", .timeLimit(.minutes(30)))
  func lost() throws {
    let player = try Player(.text, ["reconnect": false])
    for count in 1...2 {
      player.bench.push(text: Self.missing)
      let isOver = try player.wait { player.names("ended").count == count }
      #expect(isOver && player.names("disconnected").count == count, "\(player.words)")
      #expect(player.names("ended").last?.json.contains(#""why":"lost""#) == true)
    }
    #expect(!player.bench.hasEnded && !player.words.contains("hush"))
    #expect(player.bench.close() == [])
  }

  @Test("the node ends when its input and its stream have ended", .timeLimit(.minutes(30)))
  func ending() throws {
    let unused = try Player()
    try unused.bench.finish()
    #expect(unused.bench.hasEnded && unused.bench.close() == [])
    let player = try Player(.text, ["reconnect": false])
    player.bench.push(text: Self.missing)
    player.bench.end("address")
    let hasEnded = try player.wait { player.bench.hasEnded }
    #expect(hasEnded && player.events.last?.name == "ended", "\(player.words)")
    #expect(player.bench.close() == [])
  }

  @Test(
    "a stream continues after its input has ended",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func outliving() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(luma: 60), to: server.url("outliving"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player()
    player.bench.push(text: server.url("outliving"))
    player.bench.end("address")
    let goesOn = try player.wait { player.pictures.count > 20 }
    #expect(goesOn && !player.bench.hasEnded, "\(player.words)")
    #expect(player.bench.close() == [])
  }

  @Test("without `url` the input has to be linked")
  func required() throws {
    for problem in [
      #expect(throws: BenchProblem.self) { try NodeBench(RTMPPull.self, clock: .realtime) },
      #expect(throws: BenchProblem.self) {
        try NodeBench(RTMPPush.self, inputs: ["in": pictureInput()], clock: .realtime)
      },
    ] {
      let text = "\(try #require(problem))"
      #expect(
        text.contains(
          #"there is no address: neither "url" nor a link to the input "address"; set "url", or link"#),
        "\(text)")
    }
  }

  // MARK: Messages

  @Test(
    "messages in pictures are reported with their pictures: as text, or in Base64",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func messages() throws {
    let uuid = [UInt8](0xA0...0xAF)
    let server = try #require(StreamServer())
    for (name, content, expected) in [
      (
        "text", Array(#"{"status_data":{"STATUS":"AudioStart"}}"#.utf8),
        #""bytes":39,"text":"{\"status_data\":{\"STATUS\":\"AudioStart\"}}"}"#
      ),
      ("bytes", [1, 2, 3, 255], #""bytes":4,"base64":"AQID/w=="}"#),
      ("long", [UInt8](repeating: UInt8(ascii: "x"), count: 2_049), #""bytes":2049}"#),
    ] as [(String, [UInt8], String)] {
      let stream = LiveStream(
        video: makeVideo(luma: 60), to: server.url(name), message: uuid + content)
      defer { stream.stop() }
      try #require(stream.waitForStart(), "\(stream.problem ?? "")")
      let player = try Player()
      player.bench.push(text: server.url(name))
      let mark = #""uuid":"a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf","#
      let isTold = try player.wait {
        player.names("sei").filter { $0.json.contains(mark) }.count >= 2
      }
      try #require(isTold, "\(player.words)")
      let told = player.names("sei").filter { $0.json.contains(mark) }
      #expect(told.allSatisfy { $0.json.hasSuffix(mark + expected) }, "\(told)")
      // The first picture is a key frame, and the next one is a pass of the video later, or less.
      let pictures = told.compactMap { $0.number("picture") }
      #expect(pictures.first == 0 && pictures[1] > 0 && pictures[1] <= 50, "\(pictures)")
      #expect(player.bench.close() == [])
    }
  }

  @Test("a message whose text would be too long for an event with its escapes is reported in Base64")
  func escapes() {
    func text(_ payload: [UInt8]) -> [UInt8]? {
      UserData(uuid: [], payload: payload, byteCount: payload.count).text
    }
    // An event has room for 2,732 bytes, as many as 2,048 bytes take in Base64.
    for (byte, most) in [(UInt8(ascii: "\""), 1_366), (UInt8(ascii: "\n"), 455)] {
      let longest = [UInt8](repeating: byte, count: most)
      #expect(text(longest) == longest)
      #expect(text(longest + [byte]) == nil)
    }
    let plain = [UInt8](repeating: UInt8(ascii: "x"), count: 2_048)
    #expect(text(plain) == plain)
  }

  // MARK: Secrets

  /// Emits an address, then waits.
  private struct AddressSource: Node {
    static let address = "rtmp://127.0.0.1:\(Loopback.freePort())/live/hush-key-4711?sign=open-sesame"
    static let contract = NodeContract(
      "test.address", "emits an address", outputs: [PortContract("out", .kind(.text), text: "the address")],
      drive: .itself
    ) { resolution in
      resolution.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 256)
      resolution.pacing = .paced
    }
    private var hasEmitted = false

    init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

    mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
      guard !hasEmitted else { return .done }
      hasEmitted = true
      var packet = try ports.makePacket(0, bytes: Self.address.utf8.count, of: .none)
      var content = packet.mutableSamples(of: UInt8.self)
      for (index, byte) in Self.address.utf8.enumerated() { content[index] = byte }
      ports.emit(packet, to: 0)
      return .done
    }
  }

  @Test("an address is a secret of the run from the moment it comes", .timeLimit(.minutes(30)))
  func learnt() async throws {
    var catalogue = Catalogue()
    catalogue.add(AddressSource.self)
    catalogue.add(RTMPPull.self)
    catalogue.add(RTMPPush.self)
    catalogue.add(VideoCapture.self)
    var graph = GraphDescription("learnt")
    graph.add("source", "test.address")
    graph.add("pull", "rtmp.pull", ["width": 16, "height": 16])
    graph.add("push", "rtmp.push")
    graph.link("source -> pull.address")
    graph.link("source -> push.address")
    graph.link("pull -> push")
    let run = try Engine(catalogue: catalogue, workers: 1).prepare(
      try Graph.load(graph, catalogue: catalogue))
    let listener = run.events
    #expect(run.secrets.redacting(AddressSource.address).contains("hush"))
    run.start()
    var told: Set<String> = []
    for await event in listener {
      told.insert(event.name)
      #expect(!event.json.contains("4711") && !event.json.contains("sesame"), "\(event.json)")
      if told.isSuperset(of: ["disconnected", "refused"]) { break }
    }
    let shown = run.secrets.redacting(AddressSource.address)
    #expect(shown.hasSuffix("/live/•••"), "\(shown)")
    run.stop()
    #expect(run.waitUntilStopped(timeout: .seconds(120))?.leakedBlocks == 0)
  }
}
