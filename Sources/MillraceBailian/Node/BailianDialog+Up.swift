internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// From the graph to the service.
extension BailianDialog {
  /// Takes one packet of each input that has one and whose message finds room. True when something was taken.
  mutating func feed(_ ports: inout Ports) -> Bool {
    var took = false
    if ports.hasPacket(Self.controlInput) && exchange.outgoing.hasRoom(controlBytes + 4),
      let packet = ports.next(Self.controlInput)
    {
      putControl(packet, ports.generation)
      took = true
    }
    if ports.hasPacket(Self.textInput) && exchange.outgoing.hasRoom(controlBytes),
      let packet = ports.next(Self.textInput)
    {
      put(packet, BailianExchange.Out.text)
      took = true
    }
    if ports.hasPacket(Self.audioInput) && exchange.outgoing.hasRoom(largestBytes),
      let packet = ports.next(Self.audioInput)
    {
      if isOpus { putOpus(packet) } else { putPCM(packet) }
      took = true
    }
    if ports.hasPacket(Self.imageInput) && exchange.outgoing.hasRoom(imageBytes),
      let packet = ports.next(Self.imageInput)
    {
      put(packet, BailianExchange.Out.image)
      took = true
    }
    if took { exchange.ring() }
    return took
  }

  func putControl(_ packet: consuming Packet, _ generation: UInt32) {
    putNumbered(packet.samples(of: UInt8.self), BailianExchange.Out.control, Int(generation))
  }

  private func put(_ packet: consuming Packet, _ kind: UInt8) {
    let bytes = packet.samples(of: UInt8.self)
    unsafe exchange.outgoing.put(kind, count: bytes.count) { target in
      for index in bytes.indices { unsafe target[index] = bytes[index] }
    }
  }

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
    exchange.ring()
  }

  /// Something from outside of the graph finds no room.
  mutating func refuse(_ ports: inout Ports) {
    badFrames += 1
    ports.post(DialogEventIndex.error) {
      $0.field("vendor", "bailian")
      $0.field("category", "request")
      $0.field("reaction", "goOn")
      $0.field("text", "a message from outside is too long, or one too many")
    }
  }
}

/// Places of events in `DialogEvent.contracts`.
enum DialogEventIndex {
  static let error = DialogEvent.contracts.firstIndex { $0.name == "error" } ?? 0
}
