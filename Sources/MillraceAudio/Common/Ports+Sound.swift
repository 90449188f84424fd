internal import MillraceCore
internal import MillraceDSP

extension Ports {
  /// Hands a packet on as it came; one with floats that are no sound (see `SampleMath.limitToSound`) is mended first, in a copy
  /// where somebody else holds it.
  mutating func emitSound(_ packet: consuming Packet, _ sample: SampleType) throws(NodeFault) {
    guard sample == .f32, isLinked(output: 0), !SampleMath.isSound(packet.samples(of: Float.self)) else {
      return emit(packet)
    }
    var own = try makeWritable(packet)
    var samples = own.mutableSamples(of: Float.self)
    SampleMath.limitToSound(&samples)
    emit(own)
  }

  /// Hands on the end alone of the utterance that a packet ends, at the place and time at which the packet does.
  mutating func emitEnd(of packet: borrowing Packet, rate: Int) throws(NodeFault) {
    let length = Int64(packet.duration)
    var mark = try makePacket(bytes: 0, of: HeldReply(of: packet))
    mark.describeEnd(
      like: packet, position: packet.position &+ length,
      timestamp: packet.timestamp &+ .samples(length, rate: rate))
    emit(mark)
  }
}
