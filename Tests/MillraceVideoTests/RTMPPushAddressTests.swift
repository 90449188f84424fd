import Glibc
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Serialized: each test has a server, a sender and players on the real-time clock.
@Suite("rtmp.push, addresses that come while it runs", .serialized)
struct RTMPPushAddressTests {
  /// Pictures and audio made in real time, for a node that has no address yet.
  private final class Sender {
    let node: NodeBench
    private(set) var events: [BenchEvent] = []
    private let start: Nanoseconds
    private var sent = 0

    init(_ parameters: [String: ParameterValue] = [:]) throws {
      var values: [String: ParameterValue] = [
        "first": 20, "most": 100, "timeout": 120_000, "keyInterval": 1_000, "patience": 5_000,
        "queue": 60_000,
      ]
      values.merge(parameters) { _, new in new }
      node = try NodeBench(
        RTMPPush.self, values,
        inputs: [
          "in": pictureInput(160, 120), "audio": soundInput(),
          "address": OutputShape(.text, packetDuration: nil, packetBytes: 4_096),
        ], clock: .realtime)
      start = node.now
    }

    /// Pushes what is due, until a condition holds; false after two minutes.
    func send(until condition: () -> Bool) throws -> Bool {
      let end = Clock(.realtime).now + .milliseconds(120_000)
      while !condition() {
        guard Clock(.realtime).now < end else { return false }
        let now = Int((node.now - start) / 1_000_000)
        while sent + 40 <= now {
          let flashes = [sent / 800 * 800 + 400]
          let time = start + .milliseconds(Int64(sent))
          node.push(
            bytes: FlashAndClick.picture(sent, flashes, width: 160, height: 120), to: "in", duration: 1,
            timestamp: time)
          node.push(
            FlashAndClick.sound(flashes, start: sent, milliseconds: 40), to: "audio", timestamp: time)
          sent += 40
        }
        _ = try node.wait(0) { true }
        events += node.events()
        usleep(5_000)
      }
      return true
    }

    func names(_ name: String) -> [BenchEvent] { events.filter { $0.name == name } }
    var words: String { events.map(\.json).joined(separator: "\n") }
  }

  @Test(
    "an address begins a stream in sync, another one gets a stream of its own, and an empty one stops",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func changes() throws {
    let server = try #require(StreamServer())
    let sender = try Sender()
    let first = StreamWatcher(server.url("hush-one"))
    let second = StreamWatcher(server.url("hush-two"))
    defer { first.stop() }
    defer { second.stop() }
    // What came before is for no stream.
    let begin = sender.node.now
    _ = try sender.send { sender.node.now - begin > .milliseconds(500) }
    #expect(sender.events.isEmpty)
    sender.node.push(text: server.url("hush-one"), to: "address")
    let isSeen = try sender.send { first.seen.flashes.count >= 3 && first.seen.clicks.count >= 3 }
    #expect(isSeen, "\(sender.words) \(server.log)")
    for flash in first.seen.flashes.dropLast() {
      let nearest = first.seen.clicks.map { $0 - flash }.min { abs($0) < abs($1) }
      #expect(abs(nearest ?? 999) < 10, "\(first.seen.flashes) \(first.seen.clicks)")
    }
    sender.node.push(text: server.url("hush-one"), to: "address")
    sender.node.push(text: "rtmp://host/hush", to: "address")
    let isTold = try sender.send { !sender.names("error").isEmpty }
    #expect(isTold && sender.names("ended").isEmpty, "\(sender.words)")
    sender.node.push(text: server.url("hush-two"), to: "address")
    let isOther = try sender.send {
      second.seen.flashes.count >= 3 && second.seen.clicks.count >= 3 && sender.names("completed").count == 1
    }
    #expect(isOther, "\(sender.words)")
    for flash in second.seen.flashes.dropLast() {
      let nearest = second.seen.clicks.map { $0 - flash }.min { abs($0) < abs($1) }
      #expect(abs(nearest ?? 999) < 10, "\(second.seen.flashes) \(second.seen.clicks)")
    }
    #expect(sender.names("ended").map { $0.string("why") } == ["replaced"], "\(sender.words)")
    sender.node.push(text: "", to: "address")
    let isStopped = try sender.send { sender.names("completed").count == 2 }
    #expect(isStopped && sender.names("ended").last?.string("why") == "stopped", "\(sender.words)")
    // All that a stream got was sent.
    #expect(sender.names("completed").allSatisfy { $0.number("pictures") ?? 0 >= 50 }, "\(sender.words)")
    #expect(sender.names("dropped").isEmpty && sender.names("connected").count == 2, "\(sender.words)")
    #expect(!sender.words.contains("hush"), "\(sender.words)")
    #expect(sender.node.close() == [])
  }

  @Test(
    "an address that does not answer is left at once for another one",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func connecting() throws {
    let silent = SilentServer()
    let server = try #require(StreamServer())
    let sender = try Sender(["timeout": 600_000])
    let watcher = StreamWatcher(server.url("found"))
    defer { watcher.stop() }
    sender.node.push(text: "rtmp://127.0.0.1:\(silent.port)/live/hush-key", to: "address")
    _ = try sender.send { true }
    try sender.node.run()
    #expect(silent.waitForClient())
    sender.node.push(text: server.url("found"), to: "address")
    let isSeen = try sender.send { watcher.seen.times.count > 10 }
    #expect(isSeen, "\(sender.words)")
    #expect(sender.node.close() == [])
    let hasLeft = silent.waitForClose()
    #expect(hasLeft)
  }

  @Test("a stream that has failed for good waits for another address", .timeLimit(.minutes(30)))
  func lost() throws {
    let sender = try Sender(["reconnect": false])
    let url = "rtmp://127.0.0.1:\(Loopback.freePort())/live/hush-key"
    for count in 1...2 {
      sender.node.push(text: url, to: "address")
      let isOver = try sender.send { sender.names("ended").count == count }
      #expect(isOver && sender.names("refused").count == count, "\(sender.words)")
    }
    #expect(sender.names("ended").allSatisfy { $0.string("why") == "lost" } && !sender.node.hasEnded)
    #expect(!sender.words.contains("hush"), "\(sender.words)")
    #expect(sender.node.close() == [])
  }

  @Test("a stream that was stopped and fails for good is lost", .timeLimit(.minutes(30)))
  func lostInTheBackground() throws {
    var server: SilentServer? = SilentServer()
    let port = try #require(server).port
    let sender = try Sender(["reconnect": false, "timeout": 600_000, "progress": 100])
    sender.node.push(text: "rtmp://127.0.0.1:\(port)/live/hush-key", to: "address")
    let isQueued = try sender.send { !sender.names("progress").isEmpty }
    sender.node.push(text: "", to: "address")
    let isStopped = try sender.send { !sender.names("ended").isEmpty }
    #expect(isQueued && isStopped, "\(sender.words)")
    // The server closes the connection.
    server = nil
    let isLost = try sender.send { sender.names("ended").count == 2 }
    #expect(
      isLost && sender.names("ended").map { $0.string("why") } == ["stopped", "lost"], "\(sender.words)")
    #expect(sender.names("completed").isEmpty, "\(sender.words)")
    #expect(sender.node.close() == [])
  }

  @Test(
    "a stream that was stopped and finds no connection in time is lost, and what it had queued is dropped",
    .timeLimit(.minutes(30)))
  func abandoned() throws {
    let sender = try Sender(["timeout": 400, "progress": 100])
    let url = "rtmp://127.0.0.1:\(Loopback.freePort())/live/hush-key"
    sender.node.push(text: url, to: "address")
    let isQueued = try sender.send { !sender.names("progress").isEmpty }
    sender.node.push(text: "", to: "address")
    let isLost = try sender.send { sender.names("ended").count == 2 }
    #expect(isQueued && isLost, "\(sender.words)")
    #expect(sender.names("ended").map { $0.string("why") } == ["stopped", "lost"], "\(sender.words)")
    #expect(sender.names("dropped").last?.number("pictures") ?? 0 > 0, "\(sender.words)")
    #expect(sender.names("completed").isEmpty && !sender.words.contains("hush"), "\(sender.words)")
    #expect(sender.node.close() == [])
  }

  @Test(
    "of streams that have ended and cannot be sent, four are kept and an older one is lost",
    .timeLimit(.minutes(30)))
  func tooMany() throws {
    let servers = (0..<6).map { _ in SilentServer() }
    let sender = try Sender(["timeout": 600_000, "progress": 100])
    for server in servers {
      let count = sender.names("progress").count
      sender.node.push(text: "rtmp://127.0.0.1:\(server.port)/live/hush-key", to: "address")
      let isQueued = try sender.send { sender.names("progress").count > count }
      #expect(isQueued, "\(sender.words)")
    }
    let reasons = sender.names("ended").compactMap { $0.string("why") }
    #expect(reasons.sorted() == ["lost"] + Array(repeating: "replaced", count: 5), "\(sender.words)")
    #expect(sender.names("completed").isEmpty && !sender.words.contains("hush"), "\(sender.words)")
    #expect(sender.node.close() == [])
  }

  @Test("a stream that fails for good does not block its inputs", .timeLimit(.minutes(30)))
  func failingWithInput() throws {
    let node = try NodeBench(
      RTMPPush.self, ["reconnect": false, "timeout": 120_000],
      inputs: [
        "in": pictureInput(160, 120),
        "address": OutputShape(.text, packetDuration: nil, packetBytes: 4_096),
      ], clock: .realtime)
    node.push(text: "rtmp://127.0.0.1:\(Loopback.freePort())/live/hush-key", to: "address")
    try node.run()
    let start = node.now
    let end = Clock(.realtime).now + .milliseconds(120_000)
    var sent = 0
    var hasEnded = false
    while !hasEnded && Clock(.realtime).now < end {
      // More than the link holds, so that it is full when the failure is noticed.
      for _ in 0..<40 {
        node.push(
          bytes: FlashAndClick.picture(sent, [], width: 160, height: 120), to: "in", duration: 1,
          timestamp: start + .milliseconds(Int64(sent)))
        sent += 40
      }
      try node.run()
      hasEnded = node.events().contains { $0.name == "ended" }
      usleep(50_000)
    }
    #expect(hasEnded)
    node.end("in")
    let isOver = try node.wait(120) { node.hasEnded }
    #expect(isOver)
    #expect(node.close() == [])
  }

  @Test(
    "the node ends with its pictures and audio, although another address could come", .timeLimit(.minutes(30))
  )
  func ending() throws {
    let sender = try Sender()
    sender.node.end("in")
    sender.node.end("audio")
    let hasEnded = try sender.send { sender.node.hasEnded }
    #expect(hasEnded)
    #expect(sender.node.close() == [])
  }
}
