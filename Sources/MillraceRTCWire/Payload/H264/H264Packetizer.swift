/// Cuts an H.264 access unit into RTP payloads (RFC 6184, packetization-mode 1).
///
/// In: an access unit, in Annex B form or with the positions of its NAL units. Out: payloads of at most `maximumBytes`, in order:
/// * parameter sets, SEI and delimiters that stand together and fit share a STAP-A;
/// * another NAL unit that fits is a payload of its own;
/// * a larger one becomes FU-A fragments of equal size.
///
/// The last payload has the marker. Start codes are not sent. The access unit is read in place: nothing is allocated, and every payload is
/// written once, to where the caller wants it.
public struct H264Packetizer: ~Copyable, ~Escapable {
  private let bytes: Span<UInt8>
  private let maximumBytes: Int
  private var units: H264NALUnits
  /// The NAL unit to be sent, and the one behind it.
  private var current: Range<Int>?
  private var following: Range<Int>?
  /// The fragments of `current` that are still to be sent, from `position`.
  private var cut: EvenCut?
  private var position = 0

  /// Prepares an access unit in Annex B form.
  /// - Parameters:
  ///   - accessUnit: with start codes of three or four bytes.
  ///   - maximumBytes: of a payload, within `PayloadSize.range`.
  /// - Throws: when it does not begin with a start code, or has no NAL unit.
  @_lifetime(copy accessUnit)
  public init(
    annexB accessUnit: Span<UInt8>, maximumBytes: Int = PayloadSize.standard
  ) throws(PayloadProblem) {
    precondition(PayloadSize.range.contains(maximumBytes), "the limit of a payload is out of range")
    bytes = accessUnit
    self.maximumBytes = maximumBytes
    units = H264NALUnits(annexB: accessUnit)
    current = units.next()
    following = units.next()
    guard current != nil else {
      throw .malformed(.h264, "there is no NAL unit behind a start code at the beginning")
    }
  }

  /// Prepares an access unit whose NAL units lie at known positions, without start codes.
  /// - Parameters:
  ///   - accessUnit: contains the NAL units.
  ///   - nalUnits: their positions, in the order of sending; empty ones are left out.
  ///   - maximumBytes: of a payload, within `PayloadSize.range`.
  /// - Throws: when a position lies outside, or there is no NAL unit.
  @_lifetime(copy accessUnit, copy nalUnits)
  public init(
    _ accessUnit: Span<UInt8>, nalUnits: Span<Range<Int>>, maximumBytes: Int = PayloadSize.standard
  ) throws(PayloadProblem) {
    precondition(PayloadSize.range.contains(maximumBytes), "the limit of a payload is out of range")
    bytes = accessUnit
    self.maximumBytes = maximumBytes
    units = H264NALUnits(nalUnits)
    current = units.next()
    following = units.next()
    for index in nalUnits.indices {
      let unit = nalUnits[index]
      guard unit.lowerBound >= 0, unit.upperBound <= accessUnit.count else {
        throw .malformed(.h264, "NAL unit \(unit) lies outside of \(accessUnit.count) bytes")
      }
    }
    guard current != nil else { throw .malformed(.h264, "there is no NAL unit") }
  }

  /// Writes the next payload.
  /// - Parameters:
  ///   - target: has room for `maximumBytes` from `offset` on.
  ///   - offset: where the payload begins.
  /// - Returns: what was written; nil after the last payload.
  /// - Throws: when there is no room, or a NAL unit has a type that cannot be sent; then the access unit cannot be sent as a whole.
  public mutating func next(
    into target: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(PayloadProblem) -> PacketizedPayload? {
    guard let unit = current else { return nil }
    guard offset >= 0, target.count - offset >= maximumBytes else {
      throw .noRoom(bytes: max(0, target.count - offset), needed: maximumBytes)
    }
    let type = H264NALUnitType(header: bytes[unit.lowerBound])
    guard type.isNALUnit else { throw .unsupportedType(type) }
    if cut != nil || unit.count > maximumBytes { return fragment(of: unit, into: &target, at: offset) }
    if canShare(with: unit) { return aggregate(into: &target, at: offset) }
    target.put(bytes.extracting(unit), at: offset)
    advance()
    return PacketizedPayload(byteCount: unit.count, marker: current == nil)
  }

  private mutating func advance() {
    current = following
    following = units.next()
  }

  // MARK: FU-A

  private mutating func fragment(
    of unit: Range<Int>, into target: inout MutableSpan<UInt8>, at offset: Int
  ) -> PacketizedPayload {
    let isFirst = cut == nil
    var cut = cut ?? EvenCut(unit.count - 1, maximum: maximumBytes - H264Header.fragmentBytes)
    // The header of the NAL unit is in the heads of the fragments.
    if isFirst { position = unit.lowerBound + 1 }
    let count = cut.next()
    let header = bytes[unit.lowerBound]
    target[offset] = header & H264Header.importanceMask | H264NALUnitType.fuA.rawValue
    target[offset + 1] =
      H264NALUnitType(header: header).rawValue
      | (isFirst ? H264Header.fragmentStart : 0) | (cut.isDone ? H264Header.fragmentEnd : 0)
    target.put(bytes.extracting(position..<position + count), at: offset + H264Header.fragmentBytes)
    position += count
    self.cut = cut.isDone ? nil : cut
    if cut.isDone { advance() }
    return PacketizedPayload(byteCount: H264Header.fragmentBytes + count, marker: current == nil)
  }

  // MARK: STAP-A

  /// True when the NAL unit and the following one go into one STAP-A.
  private func canShare(with unit: Range<Int>) -> Bool {
    guard H264NALUnitType(header: bytes[unit.lowerBound]).precedesSlices else { return false }
    return fits(1 + H264Header.sizeBytes + unit.count)
  }

  /// True when the following NAL unit goes into a STAP-A that has so many bytes.
  private func fits(_ count: Int) -> Bool {
    guard let following, H264NALUnitType(header: bytes[following.lowerBound]).precedesSlices else {
      return false
    }
    return count + H264Header.sizeBytes + following.count <= maximumBytes
  }

  private mutating func aggregate(
    into target: inout MutableSpan<UInt8>, at offset: Int
  ) -> PacketizedPayload {
    var (count, importance, forbidden) = (1, UInt8(0), UInt8(0))
    var isFull = false
    while let unit = current, !isFull {
      target.put(UInt16(truncatingIfNeeded: unit.count), at: offset + count)
      target.put(bytes.extracting(unit), at: offset + count + H264Header.sizeBytes)
      count += H264Header.sizeBytes + unit.count
      // As important as the most important unit in it, and damaged if one of them is (RFC 6184 section 5.7).
      importance = max(importance, bytes[unit.lowerBound] & H264Header.referenceMask)
      forbidden |= bytes[unit.lowerBound] & H264Header.forbiddenBit
      isFull = !fits(count)
      advance()
    }
    target[offset] = forbidden | importance | H264NALUnitType.stapA.rawValue
    return PacketizedPayload(byteCount: count, marker: current == nil)
  }
}
