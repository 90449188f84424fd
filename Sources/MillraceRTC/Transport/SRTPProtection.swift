internal import MillraceRTCWire

/// SRTP in both directions, and a limit of the peer's sources. The keys come from DTLS, or from a description (RFC 4568). One thread.
@safe
final class SRTPProtection {
  private let outbound: SRTPContext
  private let inbound: SRTPContext
  private var sources = PeerSources()

  /// - Throws: when a key has another length than its profile takes, or libsrtp refuses it.
  init(_ keys: SRTPKeys) throws(RTCProblem) {
    outbound = try SRTPContext(keys.profile, key: keys.outbound, isOutbound: true)
    inbound = try SRTPContext(keys.profile, key: keys.inbound, isOutbound: false)
  }

  /// Protects a packet of `count` bytes in place, and gives its new length; nil: it cannot be sent.
  func protect(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) -> Int? {
    guard case .done(let length) = unsafe outbound.protect(packet, count: count, isRTCP: isRTCP) else {
      return nil
    }
    return length
  }

  /// Checks and decrypts a packet in place, and gives its new length; nil: it is counted among the refusals.
  func unprotect(
    _ packet: UnsafeMutableRawBufferPointer, isRTCP: Bool, _ refusals: inout PeerRefusals
  ) -> Int? {
    guard let source = unsafe Self.source(of: packet, isRTCP: isRTCP) else {
      refusals.malformed += 1
      return nil
    }
    let isKnown = sources.contains(source)
    guard isKnown || sources.canTakeAnother else {
      refusals.sources += 1
      return nil
    }
    switch unsafe inbound.unprotect(packet, isRTCP: isRTCP) {
    case .done(let count):
      if !isKnown { insert(source) }
      return count
    case .replayed: refusals.replayed += 1
    case .forged: refusals.forged += 1
    case .malformed: refusals.malformed += 1
    }
    return nil
  }

  /// Notes that a source has ended: where there is no room for another, it makes room. Not before: with the source SRTP forgets which of
  /// its packets came, and they could be repeated.
  func noteEnd(of source: UInt32) { sources.end(source) }

  /// Only now, since anybody can send a packet that is not authentic.
  private func insert(_ source: UInt32) {
    if sources.isFull, let ended = sources.removeEnded() { inbound.forget(ended) }
    sources.insert(source)
  }

  /// The source of a packet, which is not encrypted (RFC 3550 sections 5.1 and 6.1).
  private static func source(of packet: UnsafeMutableRawBufferPointer, isRTCP: Bool) -> UInt32? {
    let offset = isRTCP ? 4 : 8
    guard packet.count >= offset + 4 else { return nil }
    return unsafe packet.bindMemory(to: UInt8.self).span.uint32(at: offset)
  }
}
