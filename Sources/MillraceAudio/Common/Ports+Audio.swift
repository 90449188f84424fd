internal import MillraceCore
internal import MillraceDSP

extension Ports {
  /// Passes a packet on. One with invalid floats (see `SampleMath.sanitize`) is sanitised first, in a copy if it is shared.
  mutating func emitSanitized(_ packet: consuming Packet, _ sample: SampleType) throws(NodeFault) {
    guard sample == .f32, isLinked(output: 0), !SampleMath.isSane(packet.samples(of: Float.self)) else {
      return emit(packet)
    }
    var own = try makeWritable(packet)
    var samples = own.mutableSamples(of: Float.self)
    SampleMath.sanitize(&samples)
    emit(own)
  }

  /// Emits only the end-of-utterance mark of a packet, with the packet's end position and time.
  mutating func emitEnd(of packet: borrowing Packet, rate: Int) throws(NodeFault) {
    let length = Int64(packet.duration)
    var mark = try makePacket(bytes: 0, of: HeldReply(of: packet))
    mark.setEndMarker(
      like: packet, position: packet.position &+ length,
      timestamp: packet.timestamp &+ .samples(length, rate: rate))
    emit(mark)
  }
}
