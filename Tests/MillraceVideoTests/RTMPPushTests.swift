import CFFmpeg
import Glibc
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Serialized: each test has a server, a sender and a player on the real-time clock.
@Suite("rtmp.push", .serialized)
struct RTMPPushTests {
  /// Pictures and audio made in real time: a flash and a click every 800 ms.
  private final class Sender {
    let node: NodeBench
    private(set) var events: [BenchEvent] = []
    /// True: pictures only.
    var isMute = false
    private let start: Nanoseconds
    private var sent = 0

    init(_ url: String, _ parameters: [String: ParameterValue] = [:], width: Int = 160, height: Int = 120)
      throws
    {
      var values: [String: ParameterValue] = [
        // Nothing is abandoned or dropped if the machine is busy for some seconds.
        "url": .string(url), "first": 20, "most": 100, "timeout": 120_000, "keyInterval": 1_000,
        "patience": 5_000, "queue": 60_000,
      ]
      values.merge(parameters) { _, new in new }
      node = try NodeBench(
        RTMPPush.self, values, inputs: ["in": pictureInput(width, height), "audio": soundInput()],
        clock: .realtime)
      start = node.now
      (self.width, self.height) = (width, height)
    }
    private let width: Int
    private let height: Int

    /// Pushes what is due by now.
    func sendDue() throws {
      let now = Int((node.now - start) / 1_000_000)
      while sent + 40 <= now { try send() }
      try node.run()
      events += node.events()
    }

    /// Pushes the next 40 ms, due or not.
    func send() throws {
      let flashes = [sent / 800 * 800 + 400]
      let time = start + .milliseconds(Int64(sent))
      node.push(
        bytes: FlashAndClick.picture(sent, flashes, width: width, height: height), to: "in", duration: 1,
        timestamp: time)
      if !isMute {
        node.push(FlashAndClick.sound(flashes, start: sent, milliseconds: 40), to: "audio", timestamp: time)
      }
      sent += 40
      try node.run()
      events += node.events()
    }

    /// Runs until a condition holds; false after two minutes.
    func send(until condition: () -> Bool) throws -> Bool {
      let end = Clock(.realtime).now + .milliseconds(120_000)
      while !condition() {
        guard Clock(.realtime).now < end else { return false }
        try sendDue()
        usleep(5_000)
      }
      return true
    }

    func names(_ name: String) -> [BenchEvent] { events.filter { $0.name == name } }

    /// All messages of the node.
    var words: String { events.map(\.json).joined(separator: "\n") }
  }

  private static func closed() -> String { "rtmp://127.0.0.1:\(Loopback.freePort())/live/hush-key" }

  @Test(
    "a stream comes back from the server with audio and pictures in sync",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func sync() throws {
    let server = try #require(StreamServer())
    let sender = try Sender(server.url("sync"))
    let watcher = StreamWatcher(server.url("sync"))
    defer { watcher.stop() }
    let isSeen = try sender.send { watcher.seen.flashes.count >= 4 && watcher.seen.clicks.count >= 4 }
    let seen = watcher.seen
    #expect(isSeen, "\(seen.times.count) pictures, \(seen.samples.count) samples; \(sender.events)")
    #expect(seen.size == (160, 120) && seen.connections == 1)
    for flash in seen.flashes.dropLast() {
      let nearest = seen.clicks.map { $0 - flash }.min { abs($0) < abs($1) }
      #expect(abs(nearest ?? 999) < 10, "\(seen.flashes) \(seen.clicks)")
    }
    // Every picture arrived, each 40 ms after the previous one.
    #expect(zip(seen.times, seen.times.dropFirst()).allSatisfy { abs($1 - $0 - 40) <= 1.01 }, "\(seen.times)")
    let connected = try #require(sender.names("connected").first)
    #expect(connected.number("attempts") == 1 && connected.bool("again") == false)
    try sender.node.finish()
    let rest = sender.node.events()
    let completed = try #require(rest.last)
    #expect(completed.name == "completed" && (completed.number("pictures") ?? 0) >= Double(seen.times.count))
    #expect((sender.names("dropped") + rest.filter { $0.name == "dropped" }).isEmpty)
    #expect(!(sender.words + rest.map(\.json).joined()).contains("/sync"))
    #expect(sender.node.close() == [])
  }

  @Test(
    "audio that starts after the pictures does not cost the connection",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func lateSound() throws {
    let server = try #require(StreamServer())
    let sender = try Sender(server.url("late"), ["patience": 100])
    let watcher = StreamWatcher(server.url("late"))
    defer { watcher.stop() }
    sender.isMute = true
    let hasPictures = try sender.send { watcher.seen.times.count >= 25 }
    #expect(hasPictures, "\(sender.events)")
    sender.isMute = false
    let hasSound = try sender.send { watcher.seen.clicks.count >= 2 }
    #expect(hasSound && watcher.seen.connections == 1, "\(sender.events)")
    #expect(sender.names("lost").isEmpty && sender.names("connected").count == 1, "\(sender.events)")
    try sender.node.finish()
    #expect(sender.node.close() == [])
  }

  @Test(
    "rtmp.pull receives it in sync and with low delay",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func pulled() throws {
    let server = try #require(StreamServer())
    let sender = try Sender(server.url("pulled"))
    let pull = try NodeBench(
      RTMPPull.self,
      [
        "url": .string(server.url("pulled")), "width": 160, "height": 120, "first": 20, "most": 100,
        "timeout": 60_000,
      ],
      outputs: ["out", "audio", "events"], clock: .realtime)
    var flashes: [Double] = []
    var clicks: [Double] = []
    var last: UInt8 = 255
    var quiet = 0
    let isSeen = try sender.send {
      _ = try? pull.wait(0) { true }
      for picture in pull.packets() {
        if picture.bytes[0] > 128 && last <= 128 { flashes.append(Double(picture.timestamp) / 1e6) }
        last = picture.bytes[0]
      }
      for packet in pull.packets("audio") {
        for (frame, sample) in packet.int16.enumerated() {
          quiet += 1
          guard abs(Int(sample)) > 6_000 else { continue }
          if quiet > 4_800 { clicks.append(Double(packet.timestamp) / 1e6 + Double(frame) / 48) }
          quiet = 0
        }
      }
      return flashes.count >= 4 && clicks.count >= 4
    }
    #expect(isSeen, "\(flashes) \(clicks) \(pull.events())")
    let offsets = flashes.dropLast().map { flash in clicks.map { $0 - flash }.min { abs($0) < abs($1) } ?? 999
    }
    #expect(offsets.allSatisfy { abs($0) < 40 }, "\(offsets)")
    #expect(pull.close() == [] && sender.node.close() == [])
  }

  @Test(
    "rtmp.pull reports a sender that freezes, and recovers when it continues",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func frozen() throws {
    let server = try #require(StreamServer())
    let sender = try Sender(server.url("frozen"))
    let pull = try NodeBench(
      RTMPPull.self,
      [
        "url": .string(server.url("frozen")), "width": 160, "height": 120, "first": 20, "most": 100,
        "timeout": 1_000,
      ],
      outputs: ["out", "events"], clock: .realtime)
    var count = 0
    var events: [BenchEvent] = []
    func look() {
      count += pull.packets().count
      events += pull.events()
    }
    let isSeen = try sender.send {
      _ = try? pull.wait(0) { true }
      look()
      return count > 5
    }
    #expect(isSeen, "\(events)")
    events = []
    let isTold = try pull.wait(120) {
      look()
      return events.contains { $0.json.contains("no data from") }
    }
    #expect(isTold, "\(events)")
    count = 0
    let isBack = try sender.send {
      _ = try? pull.wait(0) { true }
      look()
      return count > 5
    }
    #expect(isBack, "\(events) \(sender.events)")
    #expect(pull.close() == [] && sender.node.close() == [])
  }

  @Test(
    "odd pictures are sent too", .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"),
    .timeLimit(.minutes(30)))
  func odd() throws {
    let server = try #require(StreamServer())
    let sender = try Sender(server.url("odd"), width: 17, height: 3)
    let watcher = StreamWatcher(server.url("odd"))
    defer { watcher.stop() }
    let isSeen = try sender.send { watcher.seen.times.count > 5 }
    #expect(isSeen && watcher.seen.size == (18, 4))
    #expect(sender.node.close() == [])
  }

  @Test(
    "a server that restarts gets the stream again, starting with a key frame",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func again() throws {
    let server = try #require(StreamServer())
    let sender = try Sender(server.url("again"), ["queue": 3_000])
    let first = StreamWatcher(server.url("again"))
    let isSeen = try sender.send { first.seen.times.count > 10 }
    #expect(isSeen, "\(sender.events)")
    first.stop()
    server.stop()
    let isLost = try sender.send { !sender.names("lost").isEmpty && sender.names("refused").count > 3 }
    #expect(isLost, "\(sender.events)")
    // Away for longer than the queue holds.
    let isDropped = try sender.send { !sender.names("dropped").isEmpty }
    #expect(isDropped)
    #expect(server.start())
    let isBack = try sender.send { sender.names("connected").count == 2 }
    #expect(isBack && sender.names("connected").last?.bool("again") == true)
    #expect((sender.names("connected").last?.number("attempts") ?? 0) > 3)
    let second = StreamWatcher(server.url("again"))
    defer { second.stop() }
    let isSeenAgain = try sender.send { second.seen.flashes.count >= 3 && second.seen.clicks.count >= 3 }
    #expect(isSeenAgain)
    let seen = second.seen
    // The server may send the first picture before the first sound.
    let compared = seen.flashes.dropLast().filter { $0 > (seen.clicks.first ?? 0) - 10 }
    #expect(!compared.isEmpty, "\(seen.flashes) \(seen.clicks)")
    for flash in compared {
      let nearest = seen.clicks.map { $0 - flash }.min { abs($0) < abs($1) }
      #expect(abs(nearest ?? 999) < 10, "\(seen.flashes) \(seen.clicks)")
    }
    let waits = sender.names("reconnecting").compactMap { $0.number("ms") }
    #expect(waits.allSatisfy { $0 <= 100 } && waits.max() ?? 0 > 2 * (waits.first ?? 0), "\(waits)")
    #expect(!sender.words.contains("/again") && sender.words.contains("refused"))
    #expect(sender.node.close() == [])
  }

  @Test("without a server, attempts are reported without the stream key", .timeLimit(.minutes(30)))
  func refused() throws {
    let sender = try Sender(Self.closed())
    let isTold = try sender.send { sender.names("refused").count >= 2 }
    #expect(isTold && sender.words.contains("Connection refused"), "\(sender.words)")
    #expect(!sender.words.contains("hush-key"))
    #expect(sender.node.close() == [])
  }

  @Test(
    "attempts are reported at once, even before the first picture",
    .timeLimit(.minutes(30)))
  func refusedEarly() throws {
    let sender = try Sender(Self.closed())
    var events: [BenchEvent] = []
    let isTold = try sender.node.wait(120) {
      events += sender.node.events()
      return events.filter { $0.name == "refused" }.count >= 2
    }
    #expect(isTold && events.contains { $0.name == "reconnecting" }, "\(events)")
    #expect(sender.node.close() == [])
  }

  @Test("with nothing to send, the end does not wait for a server", .timeLimit(.minutes(30)))
  func vainEnd() throws {
    let sender = try Sender(Self.closed(), ["timeout": 600_000])
    try sender.node.finish()
    #expect(sender.node.hasEnded && sender.node.events().last?.name == "completed")
    #expect(sender.node.close() == [])
  }

  @Test("without reconnect, a failed attempt fails with a message", .timeLimit(.minutes(30)))
  func fault() throws {
    let url = Self.closed()
    let sender = try Sender(url, ["reconnect": false])
    let text = #expect(throws: BenchFault.self) { _ = try sender.send { false } }?.text
    let port = url.split(separator: ":")[2].prefix { $0 != "/" }
    #expect(
      text?.hasPrefix("lost the stream \"rtmp://127.0.0.1:\(port)/live/•••\": ") == true,
      "\(text ?? "")")
    #expect(text?.contains("hush-key") == false && text?.contains("Connection refused") == true)
    #expect(sender.node.close() == [])
  }

  @Test(
    "a server that accepts but stays silent is reported after the timeout and does not block stopping",
    .timeLimit(.minutes(30)))
  func silent() throws {
    let server = SilentServer()
    let sender = try Sender("rtmp://127.0.0.1:\(server.port)/live/hush-key", ["timeout": 300])
    let isTold = try sender.send { !sender.names("refused").isEmpty }
    #expect(isTold && sender.words.contains("no answer for 300 ms"), "\(sender.words)")
    #expect(sender.node.close() == [])
    // One that would wait for ten minutes ends when it is dropped.
    let other = SilentServer()
    let patient = try Sender("rtmp://127.0.0.1:\(other.port)/live/hush-key", ["timeout": 600_000])
    try patient.send()
    #expect(other.waitForClient())
    #expect(patient.node.close() == [])
    let hasLeft = other.waitForClose()
    #expect(hasLeft)
  }

  @Test(
    "the end of the inputs waits for a connection, but not forever, and what was queued is dropped",
    .timeLimit(.minutes(30)))
  func ending() throws {
    let sender = try Sender(Self.closed(), ["timeout": 400, "queue": 60_000])
    for _ in 0..<50 { try sender.send() }
    let before = sender.node.now
    try sender.node.finish()
    #expect(sender.node.now - before >= .milliseconds(400))
    let events = sender.node.events()
    let last = try #require(events.last)
    #expect(last.name == "completed" && last.number("pictures") == 0 && last.number("seconds") == 2)
    let dropped = events.last { $0.name == "dropped" }
    #expect(dropped?.number("pictures") ?? 0 > 0 && dropped?.number("sound") ?? 0 > 0, "\(events)")
    #expect(sender.node.close() == [])
  }

  @Test(
    "without a connection, data is queued up to the limit and then dropped up to a key frame",
    .timeLimit(.minutes(30)))
  func bounded() throws {
    let sender = try Sender(Self.closed(), ["queue": 1_500, "progress": 1_000])
    for _ in 0..<250 { try sender.send() }
    let isTold = try sender.send { (sender.names("dropped").last?.number("pictures") ?? 0) > 200 }
    #expect(isTold)
    #expect(sender.names("progress").compactMap { $0.number("waiting") }.allSatisfy { $0 <= 1_500 })
    #expect(sender.names("progress").contains { ($0.number("waiting") ?? 0) > 100 })
    #expect(sender.node.close() == [])
  }

  @Test("invalid addresses and audio formats are refused, with the cure")
  func problems() {
    func refusal(_ url: String, _ sound: OutputShape = soundInput()) -> String? {
      do {
        _ = try NodeBench(
          RTMPPush.self, ["url": .string(url)], inputs: ["in": pictureInput(), "audio": sound],
          clock: .realtime)
        return nil
      } catch { return "\(error)" }
    }
    #expect(refusal("http://example.org/live/hush")?.contains("does not start with rtmp: or rtmps:") == true)
    #expect(refusal("rtmp://example.org/hush")?.contains("has no stream name after the application") == true)
    #expect(
      refusal(Self.closed(), soundInput(50_000))?.contains(
        "RTMP does not support audio of 50000 Hz; add audio.resample (rate 48000) before the input \"audio\"")
        == true)
    #expect(throws: BenchProblem.self) {
      try NodeBench(RTMPPush.self, ["url": .string(Self.closed())], inputs: ["in": pictureInput()])
    }
  }
}

@Suite("the push queue")
struct PushQueueTests {
  private func packet(_ track: MediaTrack, _ milliseconds: Int64, key: Bool = false) -> EncodedPacket {
    let made = av_packet_alloc()!
    if key || track == .sound { made.pointee.flags |= AV_PKT_FLAG_KEY }
    defer {
      var made: UnsafeMutablePointer<AVPacket>? = made
      av_packet_free(&made)
    }
    return EncodedPacket(track, at: .milliseconds(milliseconds), moving: made)
  }

  private func all(_ queue: inout PushQueue) -> [String] {
    var found: [String] = []
    while let packet = queue.take() {
      let name = packet.track == .sound ? "s" : packet.isKey ? "K" : "p"
      found.append("\(name)\(packet.time / 1_000_000)")
    }
    return found
  }

  @Test("packets leave in order of arrival")
  func order() {
    var queue = PushQueue(limit: .milliseconds(1_000))
    for time in stride(from: Int64(0), to: 1_000, by: 250) {
      queue.put(packet(.sound, time))
      queue.put(packet(.pictures, time, key: time == 0))
    }
    #expect(queue.length == .milliseconds(750))
    #expect(all(&queue) == ["s0", "K0", "s250", "p250", "s500", "p500", "s750", "p750"])
    #expect(queue.dropped == (0, 0) && !queue.awaitsKey)
  }

  @Test("an overflow is dropped up to the first key frame that leaves little enough")
  func bound() {
    var queue = PushQueue(limit: .milliseconds(1_000))
    for time in stride(from: Int64(0), through: 1_250, by: 250) {
      queue.put(packet(.pictures, time, key: time % 500 == 0))
      queue.put(packet(.sound, time))
    }
    #expect(all(&queue) == ["K500", "s500", "p750", "s750", "K1000", "s1000", "p1250", "s1250"])
    #expect(queue.dropped == (2, 2))
  }

  @Test("without a key frame everything is dropped, and nothing is accepted before the next one")
  func key() {
    var queue = PushQueue(limit: .milliseconds(500))
    queue.put(packet(.pictures, 0, key: true))
    for time in stride(from: Int64(250), through: 1_000, by: 250) { queue.put(packet(.pictures, time)) }
    queue.put(packet(.sound, 1_000))
    #expect(queue.isEmpty && queue.awaitsKey && queue.dropped == (5, 1))
    queue.put(packet(.pictures, 1_250, key: true))
    queue.put(packet(.sound, 1_250))
    #expect(!queue.awaitsKey && all(&queue) == ["K1250", "s1250"])
  }

  @Test("a new connection starts with a key frame")
  func connection() {
    var queue = PushQueue(limit: .milliseconds(5_000))
    for time in stride(from: Int64(250), through: 1_000, by: 250) {
      queue.put(packet(.sound, time))
      queue.put(packet(.pictures, time, key: time == 750))
    }
    queue.begin()
    #expect(all(&queue) == ["K750", "s1000", "p1000"] && queue.dropped == (2, 3))
    queue.put(packet(.pictures, 1_250))
    queue.begin()
    #expect(queue.isEmpty && queue.awaitsKey && queue.dropped == (3, 3))
  }
}
