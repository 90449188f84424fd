/// One packet of an RTCP datagram. The views borrow the datagram's bytes.
public enum RTCPPacket: ~Escapable {
  /// SR: a sender's counts and clock, with report blocks.
  case senderReport(RTCPSenderReport)
  /// RR: report blocks.
  case receiverReport(RTCPReceiverReport)
  /// SDES: names of sources.
  case sourceDescription(RTCPSourceDescription)
  /// BYE: sources that leave.
  case goodbye(RTCPGoodbye)
  /// RTPFB 1: packets that are requested once more.
  case nack(RTCPNack)
  /// RTPFB 15: arrival times of all packets of the transport.
  case transportFeedback(RTCPTransportFeedback)
  /// PSFB 1: a key frame is requested.
  case pictureLoss(RTCPPictureLoss)
  /// PSFB 4: key frames are requested.
  case fullIntraRequest(RTCPFullIntraRequest)
  /// PSFB 15, REMB: the bitrate that the receiver estimates.
  case bitrateEstimate(RTCPBitrateEstimate)
  /// Another packet, for example APP or TMMBR.
  case other(RTCPOtherPacket)
}

/// The type of an RTCP packet, its second byte.
public struct RTCPType: RawRepresentable, Sendable, Hashable {
  /// The number on the wire.
  public var rawValue: UInt8

  /// Creates a type from its number.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// SR (RFC 3550, section 6.4.1).
  public static let senderReport = RTCPType(rawValue: 200)
  /// RR (RFC 3550, section 6.4.2).
  public static let receiverReport = RTCPType(rawValue: 201)
  /// SDES (RFC 3550, section 6.5).
  public static let sourceDescription = RTCPType(rawValue: 202)
  /// BYE (RFC 3550, section 6.6).
  public static let goodbye = RTCPType(rawValue: 203)
  /// APP (RFC 3550, section 6.7).
  public static let application = RTCPType(rawValue: 204)
  /// RTPFB (RFC 4585, section 6.2).
  public static let transportFeedback = RTCPType(rawValue: 205)
  /// PSFB (RFC 4585, section 6.3).
  public static let payloadFeedback = RTCPType(rawValue: 206)
}

/// The formats of feedback packets, in the place of a count.
enum RTCPFeedbackFormat {
  /// RTPFB: generic NACK (RFC 4585, section 6.2.1).
  static let nack: UInt8 = 1
  /// RTPFB: transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1).
  static let transportWide: UInt8 = 15
  /// PSFB: picture loss indication (RFC 4585, section 6.3.1).
  static let pictureLoss: UInt8 = 1
  /// PSFB: full intra request (RFC 5104, section 4.3.1).
  static let fullIntraRequest: UInt8 = 4
  /// PSFB: application layer feedback (RFC 4585, section 6.4).
  static let application: UInt8 = 15
}

/// A packet that is not read further: its type, and where it lies.
public struct RTCPOtherPacket: Sendable, Equatable {
  /// The type.
  public var type: RTCPType
  /// The count or format, the low five bits of the first byte.
  public var format: UInt8
  /// Where the packet lies in the datagram, with its header and without padding.
  public var range: Range<Int>
}

/// PLI: the receiver lost a picture and requests a key frame (RFC 4585, section 6.3.1).
public struct RTCPPictureLoss: Sendable, Equatable {
  /// The source of the feedback.
  public var sender: UInt32
  /// The source that is to send a key frame.
  public var media: UInt32
}
