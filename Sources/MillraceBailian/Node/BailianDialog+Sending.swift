internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// Sending: from the graph to the service.
extension BailianDialog {
  /// Takes a packet from each input for which there is room. True when a packet was taken.
  mutating func feed(_ ports: inout Ports) -> Bool {
    var took = continueMessage()
    if message == nil && ports.hasPacket(Self.controlInput), let packet = ports.next(Self.controlInput) {
      begin(packet, BailianExchange.Out.control, ports.generation)
      took = true
    }
    if message == nil && ports.hasPacket(Self.textInput), let packet = ports.next(Self.textInput) {
      begin(packet, BailianExchange.Out.text)
      took = true
    }
    if ports.hasPacket(Self.audioInput) && exchange.outgoing.hasRoom(largestBytes),
      let packet = ports.next(Self.audioInput)
    {
      if isOpus { putOpus(packet) } else { putPCM(packet) }
      took = true
    }
    if message == nil && ports.hasPacket(Self.imageInput), let packet = ports.next(Self.imageInput) {
      begin(packet, BailianExchange.Out.image)
      took = true
    }
    if took { exchange.wakeSignal.signal() }
    return took
  }

  // MARK: Messages

  /// Starts to hand a message over. It goes in pieces as the queue has room; until it is complete, only audio goes in between.
  mutating func begin(_ packet: consuming Packet, _ kind: UInt8, _ number: UInt32 = 0) {
    message = consume packet
    messageKind = kind
    messageNumber = number
    messageDone = kind == BailianExchange.Out.control ? -4 : 0
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
    let count = min(BailianExchange.pieceBytes, bytes.count - start)
    guard exchange.outgoing.hasRoom(count) else { return nil }
    let isLast = start + count == bytes.count
    unsafe exchange.outgoing.put(isLast ? messageKind : BailianExchange.Out.part, count: count) { target in
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

  private func putNumbered(_ bytes: Span<UInt8>, _ kind: UInt8, _ number: Int) {
    unsafe exchange.outgoing.put(kind, count: bytes.count + 4) { target in
      for index in 0..<4 { unsafe target[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
      for index in bytes.indices { unsafe target[4 + index] = bytes[index] }
    }
  }

  private func putOpus(_ packet: consuming Packet) {
    // Without a sample count: 20 ms, the frame of most encoders.
    let time = packet.duration > 0 ? packet.duration * 1_000_000 / inputRate : 20_000
    putNumbered(packet.samples(of: UInt8.self), BailianExchange.Out.audio, time)
  }

  /// Cuts PCM into frames of one length. A packet may fill several.
  private mutating func putPCM(_ packet: consuming Packet) {
    let bytes = packet.samples(of: UInt8.self)
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
    guard exchange.outgoing.hasRoom(count + 4) else { return }
    putNumbered(
      frame.span.extracting(0..<count), BailianExchange.Out.audio,
      count / 2 * 1_000_000 / inputRate)
  }

  /// The microphone has ended; the connection sends silence instead.
  mutating func endAudio() {
    isAudioOver = true
    if !isOpus && exchange.outgoing.hasRoom(largestBytes) { putFrame() }
    exchange.isAudioOver.store(true, ordering: .releasing)
    exchange.wakeSignal.signal()
  }

  /// Reports that a program's message found no room.
  mutating func refuse(_ ports: inout Ports) {
    badFrames += 1
    ports.post(DialogEventIndex.error) {
      $0.field("vendor", "bailian")
      $0.field("category", "request")
      $0.field("reaction", "continue")
      $0.field("text", "message discarded: the previous one is still being sent")
    }
  }
}

/// Indices of events in `DialogEvent.contracts`.
enum DialogEventIndex {
  static let error = DialogEvent.contracts.firstIndex { $0.name == "error" } ?? 0
}
