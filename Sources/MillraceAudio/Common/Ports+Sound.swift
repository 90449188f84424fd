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
}
