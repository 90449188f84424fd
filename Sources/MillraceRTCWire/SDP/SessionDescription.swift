/// A description of a session in SDP: who, where, and which media. Source: RFC 8866, and the RFCs named at its parts.
///
/// Every attribute that has no member is kept as text, so what is written again says the same as what was read; the order of lines may
/// differ. Values of the session that apply to media without their own are resolved by `transport(of:)`, `direction(of:)`,
/// `connection(of:)` and `headerExtensions(of:)`. Not for the packet path: it requests memory. Bounds: `SDPLimits`.
public struct SessionDescription: Sendable, Hashable {
  /// `o=`.
  public var origin: SDPOrigin
  /// `s=`; `-`: none.
  public var name = "-"
  /// `i=`.
  public var information: String?
  /// `t=`.
  public var timing = SDPTiming()
  /// `c=`, for media without their own.
  public var connection: SDPConnection?
  /// `b=`.
  public var bandwidths: [SDPBandwidth] = []
  /// `a=group`.
  public var groups: [SDPGroup] = []
  /// `a=ice-lite`: the writer answers checks and sends none. Source: RFC 8839 section 5.3.
  public var isICELite = false
  /// For media without their own.
  public var transport = SDPTransport()
  /// For media without their own.
  public var direction: MediaDirection?
  /// `a=extmap`, for all media.
  public var headerExtensions: [RTPHeaderExtension] = []
  /// Attributes of the session without a member, `msid-semantic` among them.
  public var attributes: [SDPAttribute] = []
  /// Lines of the session without a member.
  public var lines: [SDPLine] = []
  /// The m-lines, in their order.
  public var media: [MediaDescription] = []
  /// Candidates beyond `SDPLimits.candidates`, which were not kept.
  public internal(set) var droppedCandidates = 0
  /// What was skipped in reading; at most 64. Not written.
  public internal(set) var notes: [SDPNote] = []

  /// Creates a description without media.
  public init(origin: SDPOrigin) { self.origin = origin }

  /// Reads a description. Lines end in CRLF or LF.
  /// - Throws: the first line that is not valid, or what the whole lacks.
  public init(parsing text: String) throws(SDPProblem) {
    guard text.utf8.count <= SDPLimits.bytes else { throw Self.tooLarge(text.utf8.count) }
    try self.init(parsing: Array(text.utf8))
  }

  /// Reads a description. Lines end in CRLF or LF; what is no UTF-8 is replaced by U+FFFD.
  /// - Throws: the first line that is not valid, or what the whole lacks.
  public init(parsing bytes: [UInt8]) throws(SDPProblem) {
    var reader = SDPReader(.description)
    self = try reader.read(bytes)
  }

  static func tooLarge(_ count: Int) -> SDPProblem {
    SDPProblem(line: 0, "it has \(count) bytes; at most \(SDPLimits.bytes) are read")
  }

  // MARK: Values of the session for media

  /// The attributes of ICE and DTLS that apply to a medium. Source: RFC 8839 section 5.4, RFC 8122 section 5, RFC 4145 section 4.
  public func transport(of medium: MediaDescription) -> SDPTransport {
    medium.transport.inheriting(transport)
  }

  /// The direction of a medium; `sendrecv` where nothing is said. Source: RFC 8866 section 6.7.
  public func direction(of medium: MediaDescription) -> MediaDirection {
    medium.direction ?? direction ?? .sendReceive
  }

  /// Where a medium is sent; nil: not said. Source: RFC 8866 section 5.7.
  public func connection(of medium: MediaDescription) -> SDPConnection? {
    medium.connection ?? connection
  }

  /// The extensions of a medium, and those of the session. Source: RFC 8285 section 6.
  public func headerExtensions(of medium: MediaDescription) -> [RTPHeaderExtension] {
    medium.headerExtensions.isEmpty ? headerExtensions : medium.headerExtensions + headerExtensions
  }

  /// The first group of media on one transport; nil: there is none. Source: RFC 9143.
  public var bundle: SDPGroup? { groups.first { $0.semantics == "BUNDLE" && !$0.mids.isEmpty } }

  /// The medium with an id.
  public func medium(_ mid: String) -> MediaDescription? { media.first { $0.mid == mid } }
}
