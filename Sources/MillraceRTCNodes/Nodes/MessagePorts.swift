internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet

/// The messages and commands of a node, between its ports and two queues: those of a call, or of one data channel. On the node's thread;
/// does not allocate.
///
/// - A message for the network waits in its link while the queue has no room. One that is too large is refused.
/// - A received message that is not text, or larger than the output's packets, is dropped. An empty one is an empty packet.
/// - What is refused or dropped is reported by an `error` of its kind at most once a second, and at the end; its `count` says of how many.
struct MessagePorts {
  private let up: ByteQueue
  private let down: ByteQueue
  private let input: Int?
  /// Inputs of events for the other side, and the one whose turn it is.
  private let events: [Int]
  private var nextEvents = 0
  private let output: Int?
  /// Bytes of the largest message to send, and of the largest to emit.
  private let largestUp: Int
  private let largestDown: Int
  /// A message with more bytes is sent, and reported; 0: none is.
  private let warnAbove: Int
  private var refused = Losses()
  private var binary = Losses()
  private var large = Losses()
  private var warnings = EventThrottle()

  /// Messages of one kind that were lost, and not reported yet.
  private struct Losses {
    var count = 0
    /// Of the last one.
    var bytes = 0
    var throttle = EventThrottle()

    mutating func add(_ size: Int) {
      count += 1
      bytes = size
    }

    /// How many are to be reported now.
    mutating func take(at now: Nanoseconds, isLast: Bool) -> Int {
      guard count > 0, throttle.allows(at: now, isLast: isLast) else { return 0 }
      defer { count = 0 }
      return count
    }
  }

  /// - Parameters:
  ///   - up: takes messages to send, as `MediaRecord.text`.
  ///   - down: received messages.
  ///   - input: the node's input for messages, if it is linked.
  ///   - events: linked inputs of events, which go into `up` as `MediaRecord.toldEvent`.
  ///   - output: the output, if it is linked.
  ///   - largestUp: bytes of the largest message to send.
  ///   - largestDown: bytes of the output's packets.
  ///   - warnAbove: bytes from which a message to send is reported as large; 0: never.
  init(
    up: ByteQueue, down: ByteQueue, input: Int?, events: [Int] = [], output: Int?, largestUp: Int,
    largestDown: Int, warnAbove: Int = 0
  ) {
    self.up = up
    self.down = down
    self.input = input
    self.events = events
    self.output = output
    self.largestUp = largestUp
    self.largestDown = largestDown
    self.warnAbove = warnAbove
  }

  /// What a step has done.
  struct Work {
    /// A message was put into `up`: the other thread is to be woken.
    var sent = false
    /// That was a message of the input, and no event of another node.
    var isMessage = false
    /// A message was taken from `down` that the other thread may have waited for.
    var wantsMore = false
    /// Anything was done.
    var isAny = false
  }

  /// Hands over the oldest message in each direction.
  /// - Parameter sends: false: nothing is to be sent now, and what comes waits in its link.
  mutating func work(_ ports: inout Ports, sends: Bool = true) throws(NodeFault) -> Work {
    var work = Work()
    reportLosses(&ports)
    if let input, sends, ports.hasPacket(input), up.hasRoomOrRequestsWake(largestUp),
      let packet = ports.next(input)
    {
      work.sent = send(packet.samples(of: UInt8.self), MediaRecord.text, &ports)
      work.isMessage = work.sent
      work.isAny = true
    }
    if sends, sendEvent(&ports) { (work.sent, work.isAny) = (true, true) }
    if try deliver(&ports) {
      work.wantsMore = down.takeRequest()
      work.isAny = true
    }
    return work
  }

  /// Reports what was dropped since the last report, at the end of the session.
  mutating func conclude(_ ports: inout Ports) { reportLosses(&ports, isLast: true) }

  // MARK: To the network

  /// Hands over the oldest event of the next input that has one.
  private mutating func sendEvent(_ ports: inout Ports) -> Bool {
    for offset in 0..<events.count {
      let index = (nextEvents + offset) % events.count
      guard ports.hasPacket(events[index]) else { continue }
      guard up.hasRoomOrRequestsWake(largestUp), let packet = ports.next(events[index]) else { return false }
      nextEvents = index + 1
      return send(packet.samples(of: UInt8.self), MediaRecord.toldEvent, &ports)
    }
    return false
  }

  private mutating func send(
    _ bytes: Span<UInt8>, _ kind: UInt8, _ ports: inout Ports
  ) -> Bool {
    let count = bytes.count
    guard count <= largestUp else {
      refused.add(count)
      reportLosses(&ports)
      return false
    }
    if warnAbove > 0, count > warnAbove, warnings.allows(at: ports.now) {
      ports.post(Self.extraEvent) { event in
        event.field("name", "largeMessage")
        event.field("bytes", count)
      }
    }
    unsafe up.put(kind, count: count) { target in
      for index in 0..<count { unsafe target[index] = bytes[index] }
    }
    return true
  }

  // MARK: From the network

  private mutating func deliver(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = down.peek() else { return false }
    let bytes = unsafe record.bytes
    let count = bytes.count
    if let output {
      if count > largestDown {
        large.add(count)
        reportLosses(&ports)
      } else if !Self.isText(unsafe bytes.span) {
        binary.add(count)
        reportLosses(&ports)
      } else {
        guard ports.hasRoomOrRequestsWake(output) else { return false }
        var packet = try ports.makePacket(output, bytes: count, of: .none)
        var target = packet.mutableSamples(of: UInt8.self)
        for index in 0..<count { target[index] = unsafe bytes[index] }
        ports.emit(packet, to: output)
      }
    }
    down.drop(record)
    return true
  }

  // MARK: Losses

  /// The names are those of `RTCError`.
  private mutating func reportLosses(_ ports: inout Ports, isLast: Bool = false) {
    let now = ports.now
    let refusals = refused.take(at: now, isLast: isLast)
    if refusals > 0 {
      let bytes = refused.bytes
      ports.post(Self.errorEvent) { event in
        event.field("vendor", "rtc")
        event.field("name", "tooLarge")
        event.field("category", "request")
        event.field("reaction", "continue")
        event.field("scope", "command")
        event.field("bytes", bytes)
        event.field("count", refusals)
        event.field(
          "text",
          "a message at \"data\" is larger than \"largest\" and was dropped; send smaller ones, or raise it")
      }
    }
    let largeOnes = large.take(at: now, isLast: isLast)
    if largeOnes > 0 {
      Self.post(
        "tooLarge", category: "request",
        "received messages are larger than \"largest\" and were dropped; raise it",
        count: largeOnes, &ports)
    }
    let binaries = binary.take(at: now, isLast: isLast)
    if binaries > 0 {
      Self.post(
        "sctpFailed", category: "network", "received messages are not text; they are dropped",
        count: binaries, &ports)
    }
  }

  private static func post(
    _ name: StaticString, category: StaticString, _ text: StaticString, count: Int, _ ports: inout Ports
  ) {
    ports.post(errorEvent) { event in
      event.field("vendor", "rtc")
      event.field("name", name)
      event.field("category", category)
      event.field("reaction", "continue")
      event.field("scope", "connection")
      event.field("count", count)
      event.field("text", text)
    }
  }

  /// A link of text carries UTF-8 only.
  private static func isText(_ bytes: Span<UInt8>) -> Bool {
    do {
      _ = try UTF8Span(validating: bytes)
      return true
    } catch {
      return false
    }
  }

  /// The index of `error` in the events of every node of the family.
  static let errorEvent = DialogEvent.contracts.firstIndex { $0.name == "error" } ?? 0
  /// The index of `extra`.
  static let extraEvent = DialogEvent.contracts.firstIndex { $0.name == "extra" } ?? 0
}
