internal import MillraceCore
internal import MillraceRTCWire

/// Writes what a session tells the peer about all media together: transport-wide feedback, and estimates (REMB). One datagram each.
@safe
final class SessionFeedback {
  /// The datagram that was written last, with room for protection behind it.
  let packet = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SoundSender.packetBytes + SRTPContext.trailer, alignment: 8)
  private let source: LocalSource
  private let hasReducedSizeRTCP: Bool

  /// Creates a writer.
  /// - Parameters:
  ///   - source: the source of feedback.
  ///   - hasReducedSizeRTCP: the peer takes feedback without a report in front of it (RFC 5506).
  init(_ source: LocalSource, hasReducedSizeRTCP: Bool) {
    self.source = source
    self.hasReducedSizeRTCP = hasReducedSizeRTCP
  }

  deinit { unsafe packet.deallocate() }

  /// Writes transport-wide feedback, and gives its bytes, and whether there is more for another datagram; nil: there is no room.
  func transport(_ congestion: CongestionControl, at now: Nanoseconds) -> (count: Int, hasMore: Bool)? {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) {
      try begin(&writer)
      let hasMore = try congestion.writeFeedback(into: &writer, at: now)
      return (writer.count, hasMore)
    } catch { return nil }
  }

  /// Writes an estimate in bits a second for sources of the peer, and gives its bytes; nil: there is no room.
  func estimate(_ rate: Int64, of sources: [UInt32]) -> Int? {
    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: packet[..<SoundSender.packetBytes])
    var writer = RTCPWriter(unsafe room.bindMemory(to: UInt8.self).mutableSpan)
    do throws(RTCPProblem) {
      try begin(&writer)
      try writer.bitrateEstimate(sender: source.ssrc, bitrate: UInt64(max(0, rate)), sources: sources.span)
    } catch { return nil }
    return writer.count
  }

  /// What has to stand in front of feedback (RFC 4585 section 3.1), unless the peer takes it alone.
  private func begin(_ writer: inout RTCPWriter) throws(RTCPProblem) {
    guard !hasReducedSizeRTCP else { return }
    try writer.receiverReport(ssrc: source.ssrc)
    try writer.sourceDescription(ssrc: source.ssrc, canonicalName: source.cname)
  }
}
