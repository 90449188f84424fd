/// The type of an H.264 NAL unit, or of an RTP payload that contains several of them or a part of one.
///
/// Types 1 to 23: table 7-1 of ITU-T H.264. Types 24 to 29: RFC 6184 section 5.2.
public struct H264NALUnitType: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  /// The number, 0 to 31.
  public let rawValue: UInt8

  /// Creates a type of a number; only the lower five bits count.
  public init(rawValue: UInt8) { self.rawValue = rawValue & 0x1F }

  /// The type in the first byte of a NAL unit.
  public init(header: UInt8) { self.init(rawValue: header) }

  /// A slice of a picture that is no IDR picture.
  public static let slice = H264NALUnitType(rawValue: 1)
  /// Data partition A of a slice.
  public static let partitionA = H264NALUnitType(rawValue: 2)
  /// A slice of an IDR picture: decoding can start here.
  public static let idrSlice = H264NALUnitType(rawValue: 5)
  /// Supplemental enhancement information.
  public static let sei = H264NALUnitType(rawValue: 6)
  /// Sequence parameter set.
  public static let sps = H264NALUnitType(rawValue: 7)
  /// Picture parameter set.
  public static let pps = H264NALUnitType(rawValue: 8)
  /// Access unit delimiter.
  public static let delimiter = H264NALUnitType(rawValue: 9)
  /// Extension of a sequence parameter set.
  public static let spsExtension = H264NALUnitType(rawValue: 13)
  /// Subset sequence parameter set.
  public static let subsetSPS = H264NALUnitType(rawValue: 15)
  /// Several NAL units of one access unit.
  public static let stapA = H264NALUnitType(rawValue: 24)
  /// A fragment of a NAL unit.
  public static let fuA = H264NALUnitType(rawValue: 28)

  /// True for a NAL unit as an encoder makes it: 1 to 23.
  public var isNALUnit: Bool { (1...23).contains(rawValue) }
  /// True for payloads of packetization mode 2 alone: STAP-B, MTAP16, MTAP24 and FU-B.
  public var isInterleaved: Bool { (25...27).contains(rawValue) || rawValue == 29 }
  /// True for a NAL unit that a decoder needs before the pictures: parameter sets.
  var isParameterSet: Bool {
    switch self {
    case .sps, .pps, .spsExtension, .subsetSPS: true
    default: false
    }
  }
  /// True for NAL units that stand in front of the slices of an access unit (ITU-T H.264 section 7.4.1.2.3), and are small.
  var precedesSlices: Bool { isParameterSet || self == .sei || self == .delimiter }

  /// The name of the standard, or the number.
  public var description: String {
    switch rawValue {
    case 1: "slice"
    case 5: "IDR slice"
    case 6: "SEI"
    case 7: "SPS"
    case 8: "PPS"
    case 9: "AUD"
    case 24: "STAP-A"
    case 25: "STAP-B"
    case 26: "MTAP16"
    case 27: "MTAP24"
    case 28: "FU-A"
    case 29: "FU-B"
    default: "\(rawValue)"
    }
  }
}

/// The bits of H.264 payload headers (RFC 6184 sections 5.3 and 5.8).
enum H264Header {
  /// The bit of a NAL unit that must not be set, and its importance: F and NRI.
  static let importanceMask: UInt8 = 0xE0
  /// F alone.
  static let forbiddenBit: UInt8 = 0x80
  /// NRI alone.
  static let referenceMask: UInt8 = 0x60
  /// The bit S of a FU header: the first fragment.
  static let fragmentStart: UInt8 = 0x80
  /// The bit E of a FU header: the last fragment.
  static let fragmentEnd: UInt8 = 0x40
  /// FU indicator and FU header.
  static let fragmentBytes = 2
  /// The size in front of each NAL unit of a STAP-A.
  static let sizeBytes = 2
}
