/// An extension of RTP heads: `a=extmap`. Source: RFC 8285 section 5.
public struct RTPHeaderExtension: Sendable, Hashable {
  /// The number in packets: 1 to 14 with heads of one byte, to 255 with those of two; 4096 and more in offers of alternatives.
  public var id: UInt16
  /// Who uses it; nil: both.
  public var direction: MediaDirection?
  /// What it is.
  public var uri: String
  /// What follows the URI.
  public var attributes: String?

  /// The id of the medium. RFC 9143 section 16.2.
  public static let mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
  /// The level of sound. RFC 6464.
  public static let audioLevel = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
  /// When a packet left, in 1/2¹⁸ s. The page "abs-send-time" of the WebRTC project.
  public static let absoluteSendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
  /// The number of a packet among all media. draft-holmer-rmcat-transport-wide-cc-extensions-01.
  public static let transportCC =
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

  /// The largest number with heads of one byte; 15 is reserved. RFC 8285 section 4.2.
  static let mostShortID: UInt16 = 14

  /// Creates an extension.
  public init(id: UInt16, uri: String) {
    self.id = id
    self.uri = uri
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let first = words.next(), let uri = words.next() else { return nil }
    let (number, direction) = first.halves(at: "/")
    guard let id = number.decimal(UInt64(UInt16.max)), id > 0 else { return nil }
    self.init(id: UInt16(id), uri: String(uri))
    if let direction {
      guard let known = MediaDirection(rawValue: String(direction)) else { return nil }
      self.direction = known
    }
    let rest = words.remainder
    if !rest.isEmpty { attributes = String(rest) }
  }

  var text: String {
    "\(id)\(direction.map { "/\($0.rawValue)" } ?? "") \(uri)\(attributes.map { " \($0)" } ?? "")"
  }
}

/// A synchronization source: the lines `a=ssrc` of one number. Source: RFC 5576 section 4.1.
public struct RTPSource: Sendable, Hashable {
  /// The number in packets.
  public var ssrc: UInt32
  /// Sources of one name share a clock.
  public var cname: String?
  /// The ids of stream and track.
  public var msid: String?
  /// Other attributes.
  public var attributes: [SDPAttribute] = []

  /// Creates a source.
  public init(ssrc: UInt32, cname: String? = nil, msid: String? = nil) {
    self.ssrc = ssrc
    self.cname = cname
    self.msid = msid
  }

  /// The most other attributes of a source that are kept.
  private static let mostAttributes = 16

  mutating func take(_ text: Substring) {
    let (name, value) = text.halves(at: ":")
    switch name {
    case "cname": cname = value.map { String($0) }
    case "msid": msid = value.map { String($0) }
    default:
      guard !name.isEmpty, attributes.count < Self.mostAttributes else { return }
      attributes.append(SDPAttribute(String(name), value.map { String($0) }))
    }
  }

  /// The values of its lines.
  var lines: [String] {
    var list: [String] = []
    if let cname { list.append("\(ssrc) cname:\(cname)") }
    if let msid { list.append("\(ssrc) msid:\(msid)") }
    list += attributes.map { "\(ssrc) \($0.text)" }
    return list.isEmpty ? ["\(ssrc)"] : list
  }
}

/// Sources that belong together: `a=ssrc-group`. Source: RFC 5576 section 4.2.
public struct RTPSourceGroup: Sendable, Hashable {
  /// `FID`: a source and its retransmissions; `SIM`: the sizes of a picture; or another.
  public var semantics: String
  /// The sources, in their order.
  public var ssrcs: [UInt32]

  /// Creates a group.
  public init(_ semantics: String, _ ssrcs: [UInt32]) {
    self.semantics = semantics
    self.ssrcs = ssrcs
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let semantics = words.next() else { return nil }
    var list: [UInt32] = []
    while let word = words.next() {
      guard let ssrc = word.decimal(UInt64(UInt32.max)) else { return nil }
      list.append(UInt32(ssrc))
    }
    guard !list.isEmpty else { return nil }
    self.init(String(semantics), list)
  }

  var text: String { ([semantics] + ssrcs.map { String($0) }).joined(separator: " ") }
}
