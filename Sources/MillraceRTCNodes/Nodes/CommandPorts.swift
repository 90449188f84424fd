internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet

/// Commands of a node, from its input `control` and from the program, to the thread of its call. On the node's thread; does not allocate.
///
/// Events of other nodes may be linked to `control` as a whole. Of those only a wish for a key frame counts: that of a decoder, or of
/// another node of the family whose viewers ask for one.
struct CommandPorts {
  private let exchange: RTCExchange
  /// The input, if it is linked.
  private let input: Int?

  init(_ exchange: RTCExchange, input: Int?) {
    self.exchange = exchange
    self.input = input
  }

  /// Takes a packet of the input. True when there was one.
  mutating func feed(_ ports: inout Ports) -> Bool {
    guard let input, ports.hasPacket(input),
      exchange.commands.hasRoomOrRequestsWake(RTCExchange.commandBytes), let packet = ports.next(input)
    else { return false }
    take(packet.samples(of: UInt8.self), &ports)
    return true
  }

  /// Takes a command of the program.
  mutating func receive(_ packet: borrowing Packet, _ ports: inout Ports) {
    take(packet.samples(of: UInt8.self), &ports)
  }

  /// The end of the call was reported, which therefore reads no command any more: answers those that came too late.
  mutating func conclude(_ ports: inout Ports) {
    while let record = exchange.commands.peek() {
      let bytes = unsafe record.bytes
      _ = CommandAnswer.post(
        to: unsafe bytes.span, "the call has ended", vendor: "rtc", event: Self.answerEvent, &ports)
      exchange.commands.drop(record)
    }
  }

  private func take(_ bytes: Span<UInt8>, _ ports: inout Ports) {
    let isEvent = Self.contains(bytes, "\"event\":")
    let isCommand = Self.contains(bytes, "\"command\":")
    if isEvent, !isCommand {
      if Self.contains(bytes, "\"keyframeRequested\"") { putKeyFrameRequest() }
      return
    }
    guard bytes.count <= RTCExchange.commandBytes else {
      return refuse(bytes, "a command may have 65536 bytes at most; it is discarded", &ports)
    }
    guard exchange.commands.hasRoom(bytes.count) else {
      return refuse(bytes, "command discarded: those before it are still being carried out", &ports)
    }
    let count = bytes.count
    unsafe exchange.commands.put(MediaRecord.command, count: count) { target in
      for index in 0..<count { unsafe target[index] = bytes[index] }
    }
    exchange.wakeSessions()
  }

  /// The command that a decoder's event stands for.
  private static let keyFrameRequest: StaticString =
    #"{"command":"extra","name":"requestKeyFrame","payload":{}}"#

  private func putKeyFrameRequest() {
    let text = Self.keyFrameRequest
    let count = text.utf8CodeUnitCount
    // Without room the decoder asks again.
    guard exchange.commands.hasRoom(count) else { return }
    unsafe exchange.commands.put(MediaRecord.command, count: count) { target in
      for index in 0..<count { unsafe target[index] = text.utf8Start[index] }
    }
    exchange.wakeSessions()
  }

  /// Passes on that a live parameter has another value: a bitrate, in bits a second.
  mutating func update(_ name: Bitrate, to value: Int) {
    let head: StaticString =
      name == .sound
      ? #"{"command":"update","values":{"bitrate":"# : #"{"command":"update","values":{"videoBitrate":"#
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var count = 0
    var rest = max(0, value)
    repeat {
      digits[count] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
      count += 1
    } while rest > 0
    let start = head.utf8CodeUnitCount
    let length = start + count + 2
    // Without room the change is dropped.
    guard exchange.commands.hasRoom(length) else { return }
    unsafe exchange.commands.put(MediaRecord.command, count: length) { target in
      for index in 0..<start { unsafe target[index] = head.utf8Start[index] }
      for index in 0..<count { unsafe target[start + index] = digits[count - 1 - index] }
      for index in start + count..<length { unsafe target[index] = UInt8(ascii: "}") }
    }
    exchange.wakeSessions()
  }

  /// The live parameters of a call.
  enum Bitrate { case sound, video }

  private func refuse(_ bytes: Span<UInt8>, _ text: StaticString, _ ports: inout Ports) {
    let isAnswered = CommandAnswer.post(
      to: bytes, text, vendor: "rtc", event: Self.answerEvent, &ports)
    guard !isAnswered else { return }
    ports.post(MessagePorts.errorEvent) { event in
      event.field("vendor", "rtc")
      event.field("name", "command")
      event.field("category", "request")
      event.field("reaction", "continue")
      event.field("scope", "command")
      event.field("text", text)
    }
  }

  static func contains(_ bytes: Span<UInt8>, _ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard bytes.count >= count else { return false }
    for start in 0...(bytes.count - count) {
      var matched = 0
      while matched < count, unsafe bytes[start + matched] == text.utf8Start[matched] { matched += 1 }
      if matched == count { return true }
    }
    return false
  }

  /// The index of `answer`.
  private static let answerEvent = DialogEvent.contracts.firstIndex { $0.name == "answer" } ?? 0
}
