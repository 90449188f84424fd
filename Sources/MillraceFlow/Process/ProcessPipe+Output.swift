internal import MillraceCore

/// From the program to the graph.
extension ProcessPipe {
  /// Emits the oldest chunk, if any, or the part of it that belongs together. True when there was one.
  mutating func deliver(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard isOutputLinked, let count = exchange.output.count else { return false }
    if rate > 0 {
      try deliverSound(of: count, &ports)
    } else if !discardsOutput {
      ports.emit(try copyOutput(0, count, of: reply, &ports))
      emittedBytes = count
    } else {
      emittedBytes = count
    }
    if emittedBytes >= count { discardOutput() }
    return true
  }

  private mutating func deliverSound(of byteCount: Int, _ ports: inout Ports) throws(NodeFault) {
    timeline.begin(at: ports.now)
    let piece = timeline.answer(limit: (byteCount - emittedBytes) / frameBytesOut)
    let start = emittedBytes
    emittedBytes += piece.count * frameBytesOut
    if piece.isBroken { hasDiscarded = true }
    guard !discardsOutput && !piece.reply.isStale(at: ports.generation) else {
      hasDiscarded = true
      return
    }
    var packet = try copyOutput(
      start, piece.count * frameBytesOut, of: matchesSamples ? piece.reply : reply, &ports)
    packet.timestamp = piece.timestamp
    packet.position = piece.position
    packet.duration = piece.count
    if hasDiscarded { packet.flags.insert(.discontinuity) }
    hasDiscarded = false
    ports.emit(packet)
  }

  /// True when the sample count tells which input an output answers.
  var matchesSamples: Bool { isSoundIn && rate > 0 }

  /// A packet with bytes of the oldest chunk, marked with a reply.
  private borrowing func copyOutput(
    _ start: Int, _ count: Int, of whose: HeldReply, _ ports: inout Ports
  ) throws(NodeFault) -> Packet {
    var packet = try ports.makePacket(bytes: count, of: whose)
    var target = packet.mutableSamples(of: UInt8.self)
    let source = unsafe exchange.output.bytes + start
    for index in 0..<count { target[index] = unsafe source[index] }
    return packet
  }

  mutating func discardOutput() {
    emittedBytes = 0
    exchange.output.drop()
    exchange.noteOutputTaken()
  }
}
