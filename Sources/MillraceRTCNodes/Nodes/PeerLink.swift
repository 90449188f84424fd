internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceService
internal import Synchronization

/// What a node says to the other side, on its way to its output `events`. Any thread puts, the node's takes.
final class PeerOutbox: Sendable {
  /// Messages that wait at most: far more than a session has candidates. Beyond it they are dropped, as on a network.
  private static let most = 1_000
  /// Bytes of an event besides its payload.
  private static let head = 128

  private let records = Locked<[[UInt8]]>([])
  /// As many as there are in `records`: without any the node takes no lock.
  private let count = Atomic<Int>(0)
  /// Bytes of the largest event.
  private let limit: Int
  private let waker: Waker

  init(limit: Int, waker: Waker) {
    self.limit = limit
    self.waker = waker
  }

  func put(_ message: LinkMessage) {
    var event = message.event
    let bytes = message.payload.bytes.count + Self.head
    if bytes > limit {
      let text = "\"\(message.name)\" of this side has \(bytes) bytes as an event; raise \"eventBytes\""
      event = .error(RTCError.tooLarge.error(text))
    }
    let record = EventRecord.bytes(event, limit: limit)
    records.withLock { all in
      guard all.count < Self.most else { return }
      all.append(record)
      count.store(all.count, ordering: .releasing)
    }
    waker.wake()
  }

  /// Posts what waits. On the node's thread.
  func post(_ ports: inout Ports) {
    guard count.load(ordering: .acquiring) > 0 else { return }
    var taken: [[UInt8]] = []
    records.withLock { all in
      swap(&all, &taken)
      count.store(0, ordering: .releasing)
    }
    for record in taken { EventRecord.post(record.span, &ports) }
  }
}

/// The signalling of a node over its own ports: what the other side says comes at `control`, with the commands; what this side says goes
/// out at `events`.
///
/// The events of the other side may be linked to `control` as a whole: those that are no signalling change nothing here. Its request for a
/// key frame is for its own encoder, and comes over the network, too; only that of a decoder is passed on. On the node's thread; takes a
/// lock only where there is something to say.
struct PeerLink {
  private static let tooLong = Array(
    "a description may have \(RTCExchange.commandBytes) bytes at most as an event; it is discarded".utf8)

  private let exchange: RTCExchange
  /// `control`, if it is linked.
  private let input: Int?
  private let outbox: PeerOutbox
  private var commands: CommandPorts

  init(_ exchange: RTCExchange, _ outbox: PeerOutbox, input: Int?) {
    self.exchange = exchange
    self.input = input
    self.outbox = outbox
    commands = CommandPorts(exchange, input: nil)
  }

  /// Posts what this side says.
  func post(_ ports: inout Ports) { outbox.post(&ports) }

  /// Takes a packet of the input. True when there was one.
  mutating func feed(_ ports: inout Ports) -> Bool {
    guard let input, ports.hasPacket(input),
      exchange.commands.hasRoomOrRequestsWake(RTCExchange.commandBytes), let packet = ports.next(input)
    else { return false }
    switch PeerText.content(packet.samples(of: UInt8.self)) {
    case .signal(let place): pass(packet.samples(of: UInt8.self), place, &ports)
    case .command: commands.receive(packet, &ports)
    case .nothing: break
    }
    return true
  }

  /// Hands an event over as the command of the same name and payload.
  private func pass(_ bytes: Span<UInt8>, _ place: Int, _ ports: inout Ports) {
    let (old, new) = (PeerText.event, PeerText.command)
    let (start, more) = (place + old.utf8CodeUnitCount, new.utf8CodeUnitCount)
    let count = bytes.count - old.utf8CodeUnitCount + more
    guard count <= RTCExchange.commandBytes, exchange.commands.hasRoom(count) else { return refuse(&ports) }
    unsafe exchange.commands.put(MediaRecord.command, count: count) { target in
      for index in 0..<place { unsafe target[index] = bytes[index] }
      for index in 0..<more { unsafe target[place + index] = new.utf8Start[index] }
      for index in start..<bytes.count { unsafe target[place + more + index - start] = bytes[index] }
    }
    exchange.wakeSessions()
  }

  private func refuse(_ ports: inout Ports) {
    ports.post(MessagePorts.errorEvent) { event in
      event.field("vendor", "rtc")
      event.field("name", "command")
      event.field("category", "request")
      event.field("reaction", "continue")
      event.field("scope", "command")
      event.field("text", utf8: Self.tooLong.span)
    }
  }
}

/// What is at the input `control`, found without reading JSON and without a heap request.
enum PeerText {
  enum Content: Equatable {
    /// An event `extra` of signalling, with `PeerText.event` at this place.
    case signal(Int)
    /// A command; or an event that `CommandPorts` looks at.
    case command
    /// Another event `extra`.
    case nothing
  }

  static let event: StaticString = #""event":"#
  static let command: StaticString = #""command":"#
  private static let name: StaticString = #""name""#

  static func content(_ bytes: Span<UInt8>) -> Content {
    guard let start = place(of: event, in: bytes), !CommandPorts.contains(bytes, command) else {
      return .command
    }
    guard isValue(#""extra""#, in: bytes, at: start + event.utf8CodeUnitCount) else { return .command }
    guard let key = place(of: name, in: bytes), let colon = skip(bytes, key + name.utf8CodeUnitCount),
      bytes[colon] == UInt8(ascii: ":")
    else { return .nothing }
    let isSignal =
      isValue(#""sdp""#, in: bytes, at: colon + 1) || isValue(#""candidate""#, in: bytes, at: colon + 1)
      || isValue(#""hangUp""#, in: bytes, at: colon + 1)
    return isSignal ? .signal(start) : .nothing
  }

  /// White space of JSON.
  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  /// The first place that is no white space; nil: there is none.
  private static func skip(_ bytes: Span<UInt8>, _ start: Int) -> Int? {
    var place = start
    while place < bytes.count, isSpace(bytes[place]) { place += 1 }
    return place < bytes.count ? place : nil
  }

  private static func isValue(_ text: StaticString, in bytes: Span<UInt8>, at start: Int) -> Bool {
    guard let place = skip(bytes, start) else { return false }
    return isText(text, in: bytes, at: place)
  }

  private static func place(of text: StaticString, in bytes: Span<UInt8>) -> Int? {
    var place = 0
    while place < bytes.count {
      if isText(text, in: bytes, at: place) { return place }
      place += 1
    }
    return nil
  }

  private static func isText(_ text: StaticString, in bytes: Span<UInt8>, at place: Int) -> Bool {
    let count = text.utf8CodeUnitCount
    guard place + count <= bytes.count else { return false }
    var matched = 0
    while matched < count, unsafe bytes[place + matched] == text.utf8Start[matched] { matched += 1 }
    return matched == count
  }
}
