internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// From the graph to the service.
extension BailianDialog {
  /// Takes one packet of each input that has one and whose message finds room. True when something was taken.
  mutating func feed(_ ports: inout Ports) -> Bool {
    var took = handOver()
    if message == nil && ports.hasPacket(Self.controlInput), let packet = ports.next(Self.controlInput) {
      hand(packet, BailianExchange.Out.control, ports.generation)
      took = true
    }
    if message == nil && ports.hasPacket(Self.textInput), let packet = ports.next(Self.textInput) {
      hand(packet, BailianExchange.Out.text)
      took = true
    }
    if ports.hasPacket(Self.audioInput) && exchange.outgoing.hasRoom(largestBytes),
      let packet = ports.next(Self.audioInput)
    {
      if isOpus { putOpus(packet) } else { putPCM(packet) }
      took = true
    }
    if message == nil && ports.hasPacket(Self.imageInput), let packet = ports.next(Self.imageInput) {
      hand(packet, BailianExchange.Out.image)
      took = true
    }
    if took { exchange.ringer.ring() }
    return took
  }

  // MARK: Messages

  /// Begins to hand a message over. However long it is, it goes in pieces, as the queue has room; nothing else but sound goes before
  /// all of it has.
  mutating func hand(_ packet: consuming Packet, _ kind: UInt8, _ number: UInt32 = 0) {
    message = consume packet
    messageKind = kind
    messageNumber = number
    messageDone = kind == BailianExchange.Out.control ? -4 : 0
    _ = handOver()
    exchange.ringer.ring()
  }

  /// Goes on with a message. True when a piece of it went.
  private mutating func handOver() -> Bool {
    var went = false
    while let packet = message.take() {
      guard putPiece(of: packet) else { break }
      went = true
    }
    return went
  }

  /// Puts the next piece of a message into the queue, and keeps the message while there is more of it. False when there was no room.
  private mutating func putPiece(of packet: consuming Packet) -> Bool {
    let isLast = putPiece(packet.samples(of: UInt8.self))
    if isLast != true { message = consume packet }
    return isLast != nil
  }

  /// Puts the next piece into the queue: nil when there is no room; otherwise whether it was the last.
  private mutating func putPiece(_ bytes: Span<UInt8>) -> Bool? {
    let (start, number) = (messageDone, messageNumber)
    let count = min(BailianExchange.pieceBytes, bytes.count - start)
    guard exchange.outgoing.hasRoom(count) else { return nil }
    let isLast = start + count == bytes.count
    unsafe exchange.outgoing.put(isLast ? messageKind : BailianExchange.Out.part, count: count) { target in
      for index in 0..<count {
        let place = start + index
        // A command's first four bytes are the number of the reply that is valid.
        unsafe target[index] =
          place < 0 ? UInt8(truncatingIfNeeded: number >> (8 * UInt32(4 + place))) : bytes[place]
      }
    }
    messageDone += count
    return isLast
  }

  // MARK: Sound

  private func putNumbered(_ bytes: Span<UInt8>, _ kind: UInt8, _ number: Int) {
    unsafe exchange.outgoing.put(kind, count: bytes.count + 4) { target in
      for index in 0..<4 { unsafe target[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
      for index in bytes.indices { unsafe target[4 + index] = bytes[index] }
    }
  }

  private func putOpus(_ packet: consuming Packet) {
    // Without a count of samples: 20 ms, the frame of most encoders.
    let time = packet.duration > 0 ? packet.duration * 1_000_000 / inputRate : 20_000
    putNumbered(packet.samples(of: UInt8.self), BailianExchange.Out.sound, time)
  }

  /// Sound of a microphone is cut into frames of one length. A packet may bring several.
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
      frame.span.extracting(0..<count), BailianExchange.Out.sound,
      count / 2 * 1_000_000 / inputRate)
  }

  /// The microphone has ended; silence follows from elsewhere.
  mutating func endAudio() {
    isAudioOver = true
    if !isOpus && exchange.outgoing.hasRoom(largestBytes) { putFrame() }
    exchange.isSoundOver.store(true, ordering: .releasing)
    exchange.ringer.ring()
  }

  /// A program's message finds no room.
  mutating func refuse(_ ports: inout Ports) {
    badFrames += 1
    ports.post(DialogEventIndex.error) {
      $0.field("vendor", "bailian")
      $0.field("category", "request")
      $0.field("reaction", "goOn")
      $0.field("text", "a message was not taken: the one before it is still on its way to the network")
    }
  }
}

/// Places of events in `DialogEvent.contracts`.
enum DialogEventIndex {
  static let error = DialogEvent.contracts.firstIndex { $0.name == "error" } ?? 0
}
