import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

/// What data channels have reported. Any thread.
final class ChannelLog: Sendable {
  struct Opened: Sendable, Equatable {
    var channel: Int
    var label: String
    var protocolName: String
    var isRemote: Bool
  }

  private let log = Locked<[DataChannelEvent]>([])

  func append(_ event: DataChannelEvent) { log.withLock { $0.append(event) } }

  var events: [DataChannelEvent] { log.withLock { $0 } }

  var opened: [Opened] {
    events.compactMap {
      guard case .opened(let channel, let label, let name, let isRemote) = $0 else { return nil }
      return Opened(channel: channel, label: label, protocolName: name, isRemote: isRemote)
    }
  }

  var messages: [[UInt8]] {
    events.compactMap { if case .message(_, let bytes, _) = $0 { bytes } else { nil } }
  }

  var refusals: [String] {
    events.compactMap { if case .refused(let text) = $0 { text } else { nil } }
  }
}

/// Data channels over an association that the test plays.
private final class ChannelEnd {
  struct Sent: Equatable {
    var bytes: [UInt8]
    var stream: UInt16
    var ppid: UInt32
    var delivery: SCTPAssociation.Delivery
  }

  let log = ChannelLog()
  var sent: [Sent] = []
  var resets: [UInt16] = []
  /// What becomes of the next messages.
  var result = SCTPAssociation.Result.sent
  var canReset = true
  private(set) var channels: DataChannels!

  init(isClient: Bool, largestRemote: Int = 0) {
    channels = DataChannels(
      isClient: isClient, largestRemote: largestRemote,
      send: { [unowned self] bytes, stream, ppid, delivery in
        if result == .sent { sent.append(Sent(bytes: bytes, stream: stream, ppid: ppid, delivery: delivery)) }
        return result
      },
      close: { [unowned self] stream in
        if canReset { resets.append(stream) }
        return canReset
      }, report: { [log] in log.append($0) })
  }

  /// The peer sends a message of DCEP.
  func take(_ message: DataChannelMessage, on stream: UInt16) throws {
    var bytes = [UInt8](repeating: 0, count: message.byteCount)
    var target = bytes.mutableSpan
    try message.write(into: &target)
    take(bytes, 50, on: stream)
  }

  func take(_ bytes: [UInt8], _ ppid: UInt32, on stream: UInt16) {
    channels.take(.message(stream: stream, protocol: ppid, bytes: bytes))
  }

  /// Opens a channel of this side, and has it acknowledged.
  func open(_ label: String = "a") throws -> Int {
    let number = try #require(channels.open(DataChannelRequest(label: label)))
    channels.run(at: 0)
    try take(.acknowledgement, on: try #require(sent.last).stream)
    return number
  }
}

@Suite("data channels")
struct DataChannelsTests {
  private func connected(isClient: Bool = true, largestRemote: Int = 0) -> ChannelEnd {
    let end = ChannelEnd(isClient: isClient, largestRemote: largestRemote)
    end.channels.take(.connected)
    return end
  }

  /// Carries everything between two ends until nothing is left.
  private func exchange(_ a: ChannelEnd, _ b: ChannelEnd) {
    repeat {
      for (end, peer) in [(a, b), (b, a)] {
        end.channels.run(at: 0)
        let (sent, resets) = (end.sent, end.resets)
        end.sent = []
        end.resets = []
        for message in sent { peer.take(message.bytes, message.ppid, on: message.stream) }
        if !resets.isEmpty { peer.channels.take(.closed(streams: resets)) }
      }
    } while !a.sent.isEmpty || !b.sent.isEmpty || !a.resets.isEmpty || !b.resets.isEmpty
  }

  // MARK: Opening

  @Test("a channel that is opened before the association is connected is opened then")
  func opensLater() throws {
    let end = ChannelEnd(isClient: true)
    let number = try #require(end.channels.open(DataChannelRequest(label: "chat", protocolName: "json")))
    end.channels.run(at: 0)
    #expect(end.sent.isEmpty && !end.channels.wantsRun)
    #expect(end.channels.send([1], isText: false, on: number) == .full)
    end.channels.take(.connected)
    #expect(end.log.opened == [.init(channel: number, label: "chat", protocolName: "json", isRemote: false)])
    let sent = try #require(end.sent.first)
    #expect((sent.stream, sent.ppid, sent.delivery) == (0, 50, SCTPAssociation.Delivery()))
    let message = try DataChannelMessage(parsing: sent.bytes.span)
    #expect(message == .open(DataChannelOpen(label: "chat", subprotocol: "json")))
  }

  @Test(
    "both sides open at once: the client on even streams, the server on odd ones, and each receives both")
  func bothSides() throws {
    let (client, server) = (connected(), connected(isClient: false))
    for name in ["a", "b"] {
      _ = client.channels.open(DataChannelRequest(label: "client \(name)"))
      _ = server.channels.open(DataChannelRequest(label: "server \(name)"))
    }
    client.channels.run(at: 0)
    server.channels.run(at: 0)
    #expect(client.sent.map(\.stream) == [0, 2] && server.sent.map(\.stream) == [1, 3])
    exchange(client, server)
    let labels = ["client a", "client b", "server a", "server b"]
    for end in [client, server] {
      #expect(end.log.opened.map(\.label).sorted() == labels && end.log.refusals.isEmpty)
    }
    #expect(client.log.opened.filter(\.isRemote).map(\.label) == ["server a", "server b"])
  }

  @Test(
    "how messages are delivered is asked for, and kept to by the other side",
    arguments: [
      SCTPAssociation.Delivery.Reliability.complete, .lifetime(milliseconds: 250), .retransmissions(0),
    ], [true, false])
  func delivery(reliability: SCTPAssociation.Delivery.Reliability, isOrdered: Bool) throws {
    let (client, server) = (connected(), connected(isClient: false))
    var request = DataChannelRequest(label: "")
    request.delivery.reliability = reliability
    request.delivery.isOrdered = isOrdered
    _ = client.channels.open(request)
    exchange(client, server)
    let number = try #require(server.log.opened.first).channel
    #expect(server.channels.send([1], isText: false, on: number) == .sent)
    #expect(server.sent.last?.delivery == request.delivery)
  }

  @Test("messages before the peer's acknowledgement are ordered, so that none overtakes the opening")
  func orderedFirst() throws {
    let end = connected()
    var request = DataChannelRequest(label: "")
    request.delivery.isOrdered = false
    let number = try #require(end.channels.open(request))
    end.channels.run(at: 0)
    _ = end.channels.send([1], isText: false, on: number)
    #expect(end.sent.last?.delivery.isOrdered == true)
    try end.take(.acknowledgement, on: 0)
    _ = end.channels.send([1], isText: false, on: number)
    #expect(end.sent.last?.delivery.isOrdered == false)
  }

  @Test("an opening and an acknowledgement that find no room are sent later")
  func noRoom() throws {
    let end = connected()
    end.result = .full
    _ = end.channels.open(DataChannelRequest(label: "a"))
    try end.take(.open(DataChannelOpen(label: "b")), on: 1)
    end.channels.run(at: 0)
    #expect(end.channels.wantsRun && end.sent.isEmpty && end.log.opened.map(\.label) == ["b"])
    end.result = .sent
    end.channels.run(at: 0)
    #expect(!end.channels.wantsRun && end.sent.map(\.stream) == [1, 0])
    #expect(end.log.opened.map(\.label) == ["b", "a"])
  }

  @Test("a channel that SCTP cannot open is closed")
  func cannotOpen() throws {
    let end = connected()
    end.result = .unsent
    let number = try #require(end.channels.open(DataChannelRequest(label: "a")))
    end.channels.run(at: 0)
    #expect(end.log.events == [.closed(channel: number)] && !end.channels.wantsRun)
    #expect(end.channels.send([1], isText: false, on: number) == .unsent)
  }

  @Test("there are 256 channels, of both sides together; what the peer opens beyond is refused and closed")
  func limit() throws {
    let end = connected()
    for index in 0..<255 { try end.take(.open(DataChannelOpen(label: "")), on: UInt16(2 * index + 1)) }
    #expect(end.channels.open(DataChannelRequest(label: "")) != nil)
    #expect(end.channels.open(DataChannelRequest(label: "")) == nil)
    try end.take(.open(DataChannelOpen(label: "")), on: 1_001)
    #expect(end.log.refusals == ["the peer opens more than 256 data channels"] && end.resets == [1_001])
  }

  @Test("a label or protocol that no message can carry is not opened")
  func longLabel() {
    let long = String(repeating: "a", count: 65_536)
    #expect(connected().channels.open(DataChannelRequest(label: long)) == nil)
    #expect(connected().channels.open(DataChannelRequest(label: "", protocolName: long)) == nil)
  }

  // MARK: Messages

  @Test("texts and bytes arrive as what they are, empty ones too", arguments: [true, false], [0, 1, 5])
  func messages(isText: Bool, count: Int) throws {
    let (client, server) = (connected(), connected(isClient: false))
    let number = try #require(client.channels.open(DataChannelRequest(label: "")))
    exchange(client, server)
    let bytes = [UInt8](repeating: 65, count: count)
    #expect(client.channels.send(bytes, isText: isText, on: number) == .sent)
    #expect(client.sent.last?.bytes.isEmpty == false)
    exchange(client, server)
    let other = try #require(server.log.opened.first).channel
    #expect(server.log.events.last == .message(channel: other, bytes: bytes, isText: isText))
  }

  @Test("a message that is larger than the peer takes is too large, and one that finds no room is full")
  func results() throws {
    let end = connected(largestRemote: 10)
    let number = try end.open()
    #expect(end.channels.send([UInt8](repeating: 0, count: 11), isText: false, on: number) == .tooLarge)
    #expect(end.channels.send([UInt8](repeating: 0, count: 10), isText: false, on: number) == .sent)
    end.result = .full
    #expect(end.channels.send([1], isText: false, on: number) == .full)
    #expect(end.channels.send([1], isText: false, on: number + 1) == .unsent)
    end.channels.take(.tooLarge(stream: 0, count: 2_000_000))
    #expect(end.log.events.last == .tooLarge(channel: number, count: 2_000_000))
  }

  @Test("parts of a message as old peers send them are put together, up to a megabyte")
  func parts() throws {
    let end = connected()
    let number = try end.open()
    for part in ["ab", "c"] { end.take(Array(part.utf8), 54, on: 0) }
    end.take(Array("d".utf8), 51, on: 0)
    #expect(end.log.events.last == .message(channel: number, bytes: Array("abcd".utf8), isText: true))
    for _ in 0..<5 { end.take([UInt8](repeating: 0, count: 300_000), 52, on: 0) }
    end.take([1], 53, on: 0)
    #expect(end.log.events.last == .tooLarge(channel: number, count: 1_500_001))
    end.take([2], 53, on: 0)
    #expect(end.log.events.last == .message(channel: number, bytes: [2], isText: false))
  }

  // MARK: Closing

  @Test(
    "either side closes, both are notified once, and the stream is used again when both halves were reset")
  func closes() throws {
    let (client, server) = (connected(), connected(isClient: false))
    for closer in [client, server] {
      let number = try #require(client.channels.open(DataChannelRequest(label: "")))
      exchange(client, server)
      let other = try #require(server.log.opened.last).channel
      closer.channels.close(closer === client ? number : other)
      exchange(client, server)
      #expect(client.log.events.filter { $0 == .closed(channel: number) }.count == 1)
      #expect(server.log.events.filter { $0 == .closed(channel: other) }.count == 1)
      #expect(client.channels.send([1], isText: false, on: number) == .unsent)
    }
    _ = client.channels.open(DataChannelRequest(label: ""))
    client.channels.run(at: 0)
    #expect(client.sent.last?.stream == 0 && server.log.refusals.isEmpty)
  }

  @Test("the beginning of a message goes with its channel, and is in none of the next on the stream")
  func unfinished() throws {
    let end = connected()
    let first = try end.open()
    end.take(Array("old".utf8), 54, on: 0)
    end.channels.close(first)
    end.channels.take(.closed(streams: [0]))
    let second = try end.open()
    end.take(Array("new".utf8), 51, on: 0)
    #expect(end.log.events.last == .message(channel: second, bytes: Array("new".utf8), isText: true))
  }

  @Test("until the peer has closed too, its stream is not used again, and its messages are no fault")
  func halfClosed() throws {
    let end = connected()
    let number = try end.open()
    end.channels.close(number)
    end.channels.close(number)
    end.take([1], 53, on: 0)
    _ = try end.open()
    #expect(end.sent.last?.stream == 2 && end.log.refusals.isEmpty && end.log.messages.isEmpty)
    end.channels.take(.closed(streams: [0]))
    _ = try end.open()
    #expect(end.sent.last?.stream == 0)
  }

  @Test("a channel that was never opened closes without a word to the peer")
  func closesUnopened() throws {
    let end = ChannelEnd(isClient: true)
    let number = try #require(end.channels.open(DataChannelRequest(label: "")))
    end.channels.close(number)
    end.channels.take(.connected)
    #expect(end.log.events == [.closed(channel: number)] && end.sent.isEmpty && end.resets.isEmpty)
  }

  @Test("a peer that never confirms a reset is given up after a while, and other channels can be opened")
  func neverReset() throws {
    let end = connected()
    end.canReset = false
    let number = try end.open()
    end.channels.close(number)
    // However often it is tried meanwhile.
    for run in 0..<10_000 { end.channels.run(at: Int64(run) * 1_000_000) }
    #expect(end.channels.wantsRun)
    end.channels.run(at: .milliseconds(30_000))
    #expect(!end.channels.wantsRun)
    _ = try end.open()
    #expect(end.sent.last?.stream == 2)
  }

  @Test("a reset of all streams closes all channels")
  func resetAll() throws {
    let end = connected()
    let numbers = [try end.open("a"), try end.open("b")]
    end.channels.take(.closed(streams: []))
    #expect(Set(end.resets) == [0, 2])
    #expect(
      end.log.events.suffix(2).sorted { "\($0)" < "\($1)" }
        == numbers.map { DataChannelEvent.closed(channel: $0) })
  }

  @Test("an association that ends takes all channels with it, and nothing can be opened or sent")
  func ends() throws {
    let end = connected()
    let number = try end.open()
    end.channels.take(.ended)
    end.channels.take(.ended)
    end.channels.take(.connected)
    #expect(end.log.events.filter { $0 == .ended }.count == 1 && !end.channels.wantsRun)
    #expect(end.channels.send([1], isText: false, on: number) == .unsent)
    #expect(end.channels.open(DataChannelRequest(label: "")) == nil)
  }

  @Test("an association that the peer has begun again has no channels, but those that were not opened yet")
  func restarts() throws {
    let end = connected()
    let number = try end.open("old")
    end.result = .full
    let waiting = try #require(end.channels.open(DataChannelRequest(label: "new")))
    end.channels.run(at: 0)
    end.result = .sent
    end.channels.take(.connected)
    #expect(end.log.events.contains(.closed(channel: number)))
    #expect(end.log.opened.last?.channel == waiting && end.resets.isEmpty)
  }

  // MARK: Peers that break rules

  @Test(
    "a faulty message of DCEP is refused, and its stream is closed",
    arguments: [
      ([], "0 bytes"), ([3], "1 bytes"), ([2, 2], "1 bytes behind its end"),
      ([3, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "type 9"),
      ([3, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0], "21 are needed"),
      ([3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 255], "not UTF-8"),
      ([3, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0], "65535 bytes"),
    ] as [([UInt8], String)])
  func faultyControl(bytes: [UInt8], text: String) {
    let end = connected()
    end.take(bytes, 50, on: 1)
    #expect(end.log.refusals.count == 1 && end.log.refusals.first?.contains(text) == true)
    #expect(end.resets == [1] && end.log.opened.isEmpty)
  }

  @Test("a message of DCEP that is not known is refused, and closes nothing")
  func unknownControl() throws {
    let end = connected()
    _ = try end.open()
    end.take([77], 50, on: 0)
    #expect(end.log.refusals.count == 1 && end.resets.isEmpty)
  }

  @Test("a channel on a stream of this side's kind, beyond the streams or in use is refused and closed")
  func wrongStreams() throws {
    let end = connected()
    for stream in [2, 1_025, 65_535] as [UInt16] {
      try end.take(.open(DataChannelOpen(label: "x")), on: stream)
    }
    #expect(end.log.refusals.count == 3 && end.resets == [2, 1_025, 65_535] && end.log.opened.isEmpty)
    try end.take(.open(DataChannelOpen(label: "y")), on: 5)
    try end.take(.open(DataChannelOpen(label: "z")), on: 5)
    let number = try #require(end.log.opened.first).channel
    #expect(end.log.opened.count == 1 && end.log.events.last == .closed(channel: number))
  }

  @Test("messages without a channel, of an unknown kind, and texts that are none are refused and dropped")
  func wrongMessages() throws {
    let end = connected()
    _ = try end.open()
    end.take([1], 53, on: 9)
    end.take([1], 99, on: 0)
    end.take([0xFF, 0xFE], 51, on: 0)
    try end.take(.acknowledgement, on: 9)
    end.channels.take(.tooLarge(stream: 9, count: 5))
    #expect(end.log.refusals.count == 5 && end.log.messages.isEmpty)
    #expect(end.log.refusals.first == "the peer sends a message on stream 9, which no channel has")
  }

  @Test("every rule that a peer breaks is reported, for others to count")
  func manyRefusals() {
    let end = connected()
    for _ in 0..<400 { end.take([1], 99, on: 1) }
    #expect(end.log.refusals.count == 400)
  }

  @Test("whatever a peer sends, nothing crashes, and there are no more channels than may be")
  func noise() throws {
    var generator = SystemRandomNumberGenerator()
    let end = connected()
    let kinds: [UInt32] = [50, 50, 50, 51, 52, 53, 54, 56, 57, 58, 0]
    for round in 0..<100_000 {
      let stream = UInt16.random(in: 0...40, using: &generator)
      switch round % 50 {
      case 0: end.channels.take(.closed(streams: [stream]))
      case 1: _ = end.channels.open(DataChannelRequest(label: "x"))
      case 2: try end.take(.open(DataChannelOpen(label: "y")), on: stream)
      case 3: end.channels.close(.random(in: 0...round, using: &generator))
      case 4: end.channels.run(at: 0)
      default:
        var bytes = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
          UInt8.random(in: 0...255, using: &generator)
        }
        if !bytes.isEmpty && round % 2 == 0 { bytes[0] = 3 }
        end.take(bytes, kinds.randomElement(using: &generator) ?? 50, on: stream)
      }
      end.sent = []
      end.resets = []
      end.canReset = round % 3 != 0
    }
    var opened = Set<Int>()
    // Events of channels that are not open.
    var faults = 0
    for event in end.log.events {
      switch event {
      case .opened(let channel, _, _, _): faults += opened.insert(channel).inserted ? 0 : 1
      case .closed(let channel): opened.remove(channel)
      case .message(let channel, _, _), .tooLarge(let channel, _): faults += opened.contains(channel) ? 0 : 1
      case .refused, .ended: break
      }
    }
    #expect(faults == 0)
    #expect(opened.count <= DataChannels.mostChannels)
  }
}
