internal import MillraceCore

/// From the program to the graph.
extension ProcessPipe {
  /// Emits the oldest chunk, if there is one, or the part of it that belongs together. True when there was one.
  mutating func deliver(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard isHeard, let count = exchange.output.count else { return false }
    if rate > 0 {
      try deliverSound(of: count, &ports)
    } else if !dropsAnswers {
      ports.emit(try copyAnswer(0, count, of: reply, &ports))
      emittedBytes = count
    } else {
      emittedBytes = count
    }
    if emittedBytes >= count { dropAnswer() }
    return true
  }

  private mutating func deliverSound(of byteCount: Int, _ ports: inout Ports) throws(NodeFault) {
    timeline.begin(at: ports.now)
    let piece = timeline.answer(limit: (byteCount - emittedBytes) / frameBytesOut)
    let start = emittedBytes
    emittedBytes += piece.count * frameBytesOut
    if piece.isBroken { hasDropped = true }
    guard !dropsAnswers && !piece.reply.isVoid(at: ports.generation) else {
      hasDropped = true
      return
    }
    var packet = try copyAnswer(
      start, piece.count * frameBytesOut, of: answersSamples ? piece.reply : reply, &ports)
    packet.timestamp = piece.timestamp
    packet.position = piece.position
    packet.duration = piece.count
    if hasDropped { packet.flags.insert(.discontinuity) }
    hasDropped = false
    ports.emit(packet)
  }

  /// True when the count of samples tells which input an output answers.
  var answersSamples: Bool { isSoundIn && rate > 0 }

  /// A packet with bytes of the oldest chunk, of a reply.
  private borrowing func copyAnswer(
    _ start: Int, _ count: Int, of whose: HeldReply, _ ports: inout Ports
  ) throws(NodeFault) -> Packet {
    var packet = try ports.makePacket(bytes: count, of: whose)
    var target = packet.mutableSamples(of: UInt8.self)
    let source = unsafe exchange.output.bytes + start
    for index in 0..<count { target[index] = unsafe source[index] }
    return packet
  }

  mutating func dropAnswer() {
    emittedBytes = 0
    exchange.output.drop()
    exchange.noteOutputTaken()
  }
}
