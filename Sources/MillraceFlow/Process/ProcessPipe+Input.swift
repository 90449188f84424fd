internal import MillraceCore
internal import Synchronization

/// From the graph to the program.
extension ProcessPipe {
  /// Gives the program the oldest packet, or part of the silence before it, if there is one and it has room.
  mutating func feed(_ ports: inout Ports) -> Bool {
    guard isInputLinked else { return false }
    if held == nil && silence == 0 {
      if ports.isOver() {
        exchange.endInput()
        return false
      }
      guard ports.hasPacket() else { return false }
    }
    let isRefused = exchange.isInputRefused.load(ordering: .acquiring)
    guard isRefused || exchange.hasInputRoom() else { return false }
    if held == nil && silence == 0 {
      guard let packet = ports.next() else { return false }
      if owesSince == nil { owesSince = ports.now }
      admit(packet)
    }
    // A program that closed its input gets no more, but may still write output.
    if isRefused {
      held = nil
      silence = 0
    } else if silence > 0 {
      give(silenceChunk())
    } else if let packet = held.take() {
      give(copy(packet))
    }
    return true
  }

  /// Records which reply a packet belongs to and what is missing before it.
  private mutating func admit(_ packet: consuming Packet) {
    if HeldReply(of: packet) != reply { firstCancellable = given }
    reply.follow(packet)
    discardsOutput = false
    guard isSoundIn else {
      timeline.begin(at: packet.timestamp)
      held = consume packet
      return
    }
    let isLost = packet.flags.contains(.lost)
    let count = isLost ? packet.duration : Int(packet.byteCount) / frameBytesIn
    silence = timeline.admit(packet, count: count, isLost: isLost)
    if !isLost { held = consume packet }
  }

  /// Publishes the filled chunk.
  private mutating func give(_ count: Int) {
    guard count > 0 else { return }
    exchange.input.publish(count)
    given &+= 1
    exchange.writerWake.signal()
  }

  /// Fills the queue's free chunk with pending silence and returns its length.
  private mutating func silenceChunk() -> Int {
    let frames = min(silence, (exchange.input.chunkBytes - 1) / frameBytesIn)
    silence -= frames
    let count = frames * frameBytesIn
    unsafe exchange.input.space.update(repeating: 0, count: count)
    return count
  }

  /// Copies a packet's content into the queue's free chunk and returns its length.
  private func copy(_ packet: borrowing Packet) -> Int {
    let source = packet.samples(of: UInt8.self)
    let target = unsafe exchange.input.space
    guard isSoundIn else {
      var count = source.count
      while count > 0 && (source[count - 1] == 10 || source[count - 1] == 13) { count -= 1 }
      for index in 0..<count {
        let byte = source[index]
        unsafe target[index] = byte == 10 || byte == 13 ? 32 : byte
      }
      unsafe target[count] = 10
      return count + 1
    }
    for index in source.indices { unsafe target[index] = source[index] }
    return source.count
  }
}
