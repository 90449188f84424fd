/// The two bytes in front of a fragment of a NAL unit (RFC 6184 section 5.8).
struct H264FragmentHead: Sendable, Hashable {
  /// The type of the NAL unit.
  let type: H264NALUnitType
  let isFirst: Bool
  let isLast: Bool
  /// The header of the NAL unit, which is not sent as such.
  let nalUnitHeader: UInt8

  init(parsing payload: Span<UInt8>) throws(PayloadProblem) {
    guard payload.count >= H264Header.fragmentBytes else {
      throw .truncated(.h264, bytes: payload.count, needed: H264Header.fragmentBytes)
    }
    let head = payload[1]
    type = H264NALUnitType(header: head)
    isFirst = head & H264Header.fragmentStart != 0
    isLast = head & H264Header.fragmentEnd != 0
    nalUnitHeader = payload[0] & H264Header.importanceMask | type.rawValue
    guard type.isNALUnit else { throw .unsupportedType(type) }
    guard !(isFirst && isLast) else {
      throw .malformed(.h264, "a fragment is the first and the last")
    }
  }
}

/// Finds the NAL units of a STAP-A that was checked.
struct H264AggregateReader: ~Escapable {
  private let payload: Span<UInt8>
  private var position = 1

  @_lifetime(copy payload)
  init(_ payload: Span<UInt8>) { self.payload = payload }

  mutating func next() -> Range<Int>? {
    guard position < payload.count else { return nil }
    let start = position + H264Header.sizeBytes
    position = start + Int(payload.uint16(at: position))
    return start..<position
  }
}

/// Rules for whole payloads.
enum H264Payload {
  /// Refuses a STAP-A whose sizes are wrong, or that contains other things than NAL units.
  static func checkAggregate(_ payload: Span<UInt8>) throws(PayloadProblem) {
    var position = 1
    repeat {
      let start = position + H264Header.sizeBytes
      guard start < payload.count else {
        throw .truncated(.h264, bytes: payload.count, needed: start + 1)
      }
      let size = Int(payload.uint16(at: position))
      guard size > 0 else { throw .malformed(.h264, "a NAL unit of a STAP-A is empty") }
      position = start + size
      guard position <= payload.count else {
        throw .truncated(.h264, bytes: payload.count, needed: position)
      }
      let type = H264NALUnitType(header: payload[start])
      guard type.isNALUnit else { throw .unsupportedType(type) }
    } while position < payload.count
  }

  /// True when nothing that a decoder needs can precede this payload in its access unit: it begins with what stands in front of slices, or
  /// with the slice of the first macroblock. In front of an IDR slice there must also be parameter sets.
  static func canBeginAccessUnit(_ payload: Span<UInt8>, hasParameterSets: Bool) -> Bool {
    guard payload.count > 0 else { return false }
    switch H264NALUnitType(header: payload[0]) {
    case .stapA:
      guard payload.count > 3 else { return false }
      return canBegin(H264NALUnitType(header: payload[3]), payload.extracting(4...), hasParameterSets)
    case .fuA:
      guard payload.count > 2, payload[1] & H264Header.fragmentStart != 0 else { return false }
      return canBegin(H264NALUnitType(header: payload[1]), payload.extracting(2...), hasParameterSets)
    case let type:
      return canBegin(type, payload.extracting(1...), hasParameterSets)
    }
  }

  private static func canBegin(
    _ type: H264NALUnitType, _ content: Span<UInt8>, _ hasParameterSets: Bool
  ) -> Bool {
    switch type {
    case .slice, .partitionA, .idrSlice:
      // A slice begins with first_mb_in_slice as an Exp-Golomb code, in which 0 is a single 1 bit (ITU-T H.264 section 7.3.3).
      content.count > 0 && content[0] & 0x80 != 0 && (type != .idrSlice || hasParameterSets)
    default:
      type.precedesSlices
    }
  }
}
