internal import MillraceCore
internal import MillraceNet
internal import Synchronization

/// From the graph to the connection: the node's inputs, on the node's thread. Cuts PCM into frames, passes Opus packets on, and hands over
/// messages of any length in pieces. Does not allocate.
struct VoiceInlet: ~Copyable {
  private let exchange: ServiceExchange
  private let inputs: ServicePorts.Inputs
  private let isOpus: Bool
  private let rate: Int
  /// The user's audio is a bot's reply: each utterance of it is one stream.
  private let isReply: Bool
  /// Bytes of a complete PCM frame.
  private let frameBytes: Int
  /// Room needed for a packet, which may fill several frames.
  private let largestBytes: Int

  private var frame: [UInt8]
  private var frameCount = 0
  /// A message being handed over, how much of it was, and the number of the current reply for `control`.
  private var message: Packet?
  private var messageKind: UInt8 = 0
  private var messageDone = 0
  private var messageNumber: UInt32 = 0
  private var isAudioOver = false

  init(
    _ exchange: ServiceExchange, _ inputs: ServicePorts.Inputs, _ format: VoiceFormat, largestBytes: Int
  ) {
    self.exchange = exchange
    self.inputs = inputs
    isOpus = format.isOpus
    rate = format.rate
    isReply = format.isReply
    frameBytes = format.frameBytes
    self.largestBytes = largestBytes
    frame = [UInt8](repeating: 0, count: format.frameBytes)
    message = nil
  }

  /// Room for the frames of a packet: one that was begun and one that is left over, each with four bytes of duration and the head and the
  /// padding of its record.
  static func largestBytes(frameBytes: Int, packetBytes: Int) -> Int {
    2 * frameBytes + packetBytes + 16 * (packetBytes / frameBytes + 2)
  }

  /// A message is still being handed over.
  var hasMessage: Bool { message != nil }

  /// Takes a packet from each input for which there is room. True when a packet was taken.
  mutating func feed(_ ports: inout Ports) -> Bool {
    var took = continueMessage()
    if let input = inputs.control, message == nil && ports.hasPacket(input), let packet = ports.next(input) {
      begin(packet, ServiceExchange.Out.control, ports.generation)
      took = true
    }
    if let input = inputs.text, message == nil && ports.hasPacket(input), let packet = ports.next(input) {
      begin(packet, ServiceExchange.Out.text)
      took = true
    }
    if let input = inputs.file, message == nil && ports.hasPacket(input), let packet = ports.next(input) {
      begin(packet, ServiceExchange.Out.file)
      took = true
    }
    if let input = inputs.audio, ports.hasPacket(input) && exchange.voice.hasRoom(largestBytes),
      let packet = ports.next(input)
    {
      take(packet)
      took = true
    }
    if let input = inputs.image, message == nil && ports.hasPacket(input), let packet = ports.next(input) {
      begin(packet, ServiceExchange.Out.image)
      took = true
    }
    if took { exchange.wakeSignal.signal() }
    return took
  }

  // MARK: Messages

  /// Starts to hand a message over. It goes in pieces as the queue has room; until it is complete, only audio goes beside it.
  mutating func begin(_ packet: consuming Packet, _ kind: UInt8, _ number: UInt32 = 0) {
    message = consume packet
    messageKind = kind
    messageNumber = number
    messageDone = kind == ServiceExchange.Out.control ? -4 : 0
    _ = continueMessage()
    exchange.wakeSignal.signal()
  }

  /// Continues the message. True when a piece of it was handed over.
  private mutating func continueMessage() -> Bool {
    var went = false
    while let packet = message.take() {
      guard putPiece(of: packet) else { break }
      went = true
    }
    return went
  }

  /// Puts the next piece into the queue, and keeps the packet while there is more. False when there was no room.
  private mutating func putPiece(of packet: consuming Packet) -> Bool {
    let isLast = putPiece(packet.samples(of: UInt8.self))
    if isLast != true { message = consume packet }
    return isLast != nil
  }

  /// Puts the next piece into the queue. Returns nil without room; otherwise whether it was the last.
  private mutating func putPiece(_ bytes: Span<UInt8>) -> Bool? {
    let (start, number) = (messageDone, messageNumber)
    let count = min(ServiceExchange.pieceBytes, bytes.count - start)
    guard exchange.messages.hasRoom(count) else { return nil }
    let isLast = start + count == bytes.count
    unsafe exchange.messages.put(isLast ? messageKind : ServiceExchange.Out.part, count: count) { target in
      for index in 0..<count {
        let offset = start + index
        // A command begins with four bytes that hold the number of the current reply.
        unsafe target[index] =
          offset < 0 ? UInt8(truncatingIfNeeded: number >> (8 * UInt32(4 + offset))) : bytes[offset]
      }
    }
    messageDone += count
    return isLast
  }

  // MARK: Audio

  private mutating func take(_ packet: consuming Packet) {
    let isLast = isReply && packet.flags.contains(.endOfUtterance)
    if isOpus {
      // Without a sample count: 20 ms, the frame of most encoders.
      let time = packet.duration > 0 ? packet.duration * 1_000_000 / rate : 20_000
      let bytes = packet.samples(of: UInt8.self)
      if bytes.count > 0 { put(bytes, microseconds: time) }
    } else {
      cut(packet.samples(of: UInt8.self))
    }
    guard isLast else { return }
    putFrame()
    unsafe exchange.voice.put(ServiceExchange.Out.endOfUtterance, count: 0) { _ in }
  }

  /// Cuts PCM into frames of one length. A packet may fill several.
  private mutating func cut(_ bytes: Span<UInt8>) {
    for index in bytes.indices {
      frame[frameCount] = bytes[index]
      frameCount += 1
      if frameCount == frameBytes { putFrame() }
    }
  }

  private mutating func putFrame() {
    guard frameCount > 0 else { return }
    let count = frameCount
    frameCount = 0
    guard exchange.voice.hasRoom(count + 4) else { return }
    put(frame.span.extracting(0..<count), microseconds: count / 2 * 1_000_000 / rate)
  }

  private func put(_ bytes: Span<UInt8>, microseconds time: Int) {
    unsafe exchange.voice.put(ServiceExchange.Out.frame, count: bytes.count + 4) { target in
      for index in 0..<4 { unsafe target[index] = UInt8(truncatingIfNeeded: time >> (8 * index)) }
      for index in bytes.indices { unsafe target[4 + index] = bytes[index] }
    }
  }

  /// Where the user's audio is a bot's reply that was cancelled: nothing more of it is sent.
  mutating func cancelReply() {
    guard isReply else { return }
    frameCount = 0
    exchange.voiceCancelledBefore.store(exchange.voice.end, ordering: .releasing)
  }

  /// True when neither audio, images, texts nor files can come any more.
  func haveSourcesEnded(_ ports: borrowing Ports) -> Bool {
    for case let input? in [inputs.audio, inputs.image, inputs.text, inputs.file]
    where ports.isLinked(input: input) && !ports.isOver(input) {
      return false
    }
    return true
  }

  /// Reports the end of the user's audio once; the connection may send silence instead.
  mutating func reportEnd(_ ports: borrowing Ports) {
    guard let input = inputs.audio, !isAudioOver, ports.isLinked(input: input) && ports.isOver(input) else {
      return
    }
    isAudioOver = true
    if !isOpus && exchange.voice.hasRoom(largestBytes) { putFrame() }
    exchange.isAudioOver.store(true, ordering: .releasing)
    exchange.wakeSignal.signal()
  }
}
