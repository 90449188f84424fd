extension RTCPWriter {
  /// Writes a request for packets whose sequence numbers are in order (RFC 4585, section 6.2.1); without any writes nothing.
  public mutating func nack(
    sender: UInt32, media: UInt32, sequences: Span<UInt16>
  ) throws(RTCPProblem) {
    guard !sequences.isEmpty else { return }
    var (entries, index) = (0, 0)
    while index < sequences.count {
      index = Self.nackEntry(sequences, from: index).next
      entries += 1
    }
    let size = RTCPFeedbackHead.size + 4 * entries
    guard size <= 4 * (Int(UInt16.max) + 1) else { throw .noRoom(needed: size, room: room) }
    var position = try feedback(.transportFeedback, RTCPFeedbackFormat.nack, sender, media, size: size)
    index = 0
    while index < sequences.count {
      let entry = Self.nackEntry(sequences, from: index)
      bytes.put(sequences[index], at: position)
      bytes.put(entry.following, at: position + 2)
      (position, index) = (position + 4, entry.next)
    }
  }

  /// The bits of the 16 packets after the one at an index, and the index of the first that is none of them.
  private static func nackEntry(
    _ sequences: Span<UInt16>, from index: Int
  ) -> (following: UInt16, next: Int) {
    var (following, next): (UInt16, Int) = (0, index + 1)
    while next < sequences.count {
      let distance = sequences[next] &- sequences[index]
      guard distance <= 16 else { break }
      if distance > 0 { following |= 1 << (distance - 1) }
      next += 1
    }
    return (following, next)
  }

  /// Writes a request for a key frame (RFC 4585, section 6.3.1).
  public mutating func pictureLoss(sender: UInt32, media: UInt32) throws(RTCPProblem) {
    _ = try feedback(
      .payloadFeedback, RTCPFeedbackFormat.pictureLoss, sender, media, size: RTCPFeedbackHead.size)
  }

  /// Writes a request for a key frame. A new request has the next number, a repetition has the same (RFC 5104, section 4.3.1).
  public mutating func fullIntraRequest(
    sender: UInt32, media: UInt32, number: UInt8
  ) throws(RTCPProblem) {
    let size = RTCPFeedbackHead.size + RTCPFullIntraRequest.entrySize
    let position = try feedback(
      .payloadFeedback, RTCPFeedbackFormat.fullIntraRequest, sender, 0, size: size)
    bytes.put(media, at: position)
    bytes[position + 4] = number
  }

  /// Writes an estimate of the bitrate in bits per second for all of the sources together, rounded down to 18 significant bits
  /// (draft-alvestrand-rmcat-remb-03, section 2.2). At most 255 sources; the rest is left out.
  public mutating func bitrateEstimate(
    sender: UInt32, bitrate: UInt64, sources: Span<UInt32>
  ) throws(RTCPProblem) {
    let count = min(sources.count, 255)
    let position = try feedback(
      .payloadFeedback, RTCPFeedbackFormat.application, sender, 0,
      size: RTCPBitrateEstimate.size + 4 * count)
    let bits = UInt64.bitWidth - bitrate.leadingZeroBitCount
    let exponent = max(0, bits - RTCPBitrateEstimate.mantissaBits)
    bytes.put(RTCPBitrateEstimate.identifier, at: position)
    bytes[position + 4] = UInt8(count)
    bytes.put24(UInt32(exponent) << 18 | UInt32(bitrate >> UInt64(exponent)), at: position + 5)
    for index in 0..<count { bytes.put(sources[index], at: position + 8 + 4 * index) }
  }

  /// Writes the head of a feedback packet and gives where its content begins.
  mutating func feedback(
    _ type: RTCPType, _ format: UInt8, _ sender: UInt32, _ media: UInt32, size: Int
  ) throws(RTCPProblem) -> Int {
    let start = try begin(type, format, size: size)
    bytes.put(sender, at: start + 4)
    bytes.put(media, at: start + 8)
    return start + RTCPFeedbackHead.size
  }
}
