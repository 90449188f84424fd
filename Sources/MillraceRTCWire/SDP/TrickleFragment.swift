/// Candidates that follow a description, or the credentials of an ICE restart: `application/trickle-ice-sdpfrag`. Source: RFC 8840
/// section 9; RFC 9725 section 4.3 for its use in WHIP.
public struct TrickleFragment: Sendable, Hashable {
  /// The type of the content in HTTP.
  public static let mediaType = "application/trickle-ice-sdpfrag"

  /// A medium's candidates.
  public struct Section: Sendable, Hashable {
    /// The medium's id; nil: not said, as in fragments for a single medium.
    public var mid: String?
    /// What it is.
    public var kind = MediaKind.audio
    /// The protocols. RFC 8840 has `RTP/AVP` for all media.
    public var profile = TransportProfile.dtlsSAVPF
    /// The formats of the m-line.
    public var formats = ["0"]
    /// Credentials to which the candidates belong; nil: those of the fragment.
    public var credentials: ICECredentials?
    /// The candidates.
    public var candidates: [ICECandidate] = []
    /// No others will follow.
    public var hasEndOfCandidates = false

    /// Creates a section.
    public init(mid: String?, candidates: [ICECandidate] = [], hasEndOfCandidates: Bool = false) {
      self.mid = mid
      self.candidates = candidates
      self.hasEndOfCandidates = hasEndOfCandidates
    }
  }

  /// Credentials for sections without their own; new ones restart ICE.
  public var credentials: ICECredentials?
  /// `a=ice-options`.
  public var iceOptions: [String] = []
  /// `a=ice-lite`.
  public var isICELite = false
  /// The mids of the bundle.
  public var bundle: [String] = []
  /// The media.
  public var sections: [Section] = []
  /// No other candidates will follow for any medium.
  public var hasEndOfCandidates = false
  /// What was skipped in reading. Not written.
  public internal(set) var notes: [SDPNote] = []

  /// Creates a fragment.
  public init(credentials: ICECredentials?, sections: [Section] = []) {
    self.credentials = credentials
    self.sections = sections
  }

  /// A fragment for the bundle of a local description: with its credentials, its first medium, and these candidates.
  public init(
    of local: SessionDescription, candidates: [ICECandidate], hasEndOfCandidates: Bool = false
  ) {
    bundle = local.bundle?.mids ?? []
    guard let medium = bundle.first.flatMap({ local.medium($0) }) ?? local.media.first else { return }
    var section = Section(mid: medium.mid, candidates: candidates, hasEndOfCandidates: hasEndOfCandidates)
    (section.kind, section.profile, section.formats) = (medium.kind, medium.profile, medium.formats)
    section.credentials = local.transport(of: medium).credentials
    sections = [section]
  }

  /// Reads a fragment.
  /// - Throws: the first line that is not valid. Bad candidates are skipped, with a note.
  public init(parsing text: String) throws(SDPProblem) {
    guard text.utf8.count <= SDPLimits.bytes else { throw SessionDescription.tooLarge(text.utf8.count) }
    try self.init(parsing: Array(text.utf8))
  }

  /// Reads a fragment.
  /// - Throws: the first line that is not valid. Bad candidates are skipped, with a note.
  public init(parsing bytes: [UInt8]) throws(SDPProblem) {
    var reader = SDPReader(.fragment)
    let read = try reader.read(bytes)
    credentials = read.transport.credentials
    iceOptions = read.transport.iceOptions
    isICELite = read.isICELite
    bundle = read.bundle?.mids ?? []
    hasEndOfCandidates = read.attributes.contains { $0.name == "end-of-candidates" }
    notes = read.notes
    for medium in read.media {
      var section = Section(
        mid: medium.mid, candidates: medium.candidates, hasEndOfCandidates: medium.hasEndOfCandidates)
      (section.kind, section.profile, section.formats) = (medium.kind, medium.profile, medium.formats)
      section.credentials = medium.transport.credentials
      sections.append(section)
    }
  }

  /// The fragment, lines ending in CRLF.
  public var text: String {
    var description = SessionDescription(origin: SDPOrigin(sessionID: 0))
    description.transport.credentials = credentials
    description.transport.iceOptions = iceOptions
    description.isICELite = isICELite
    if !bundle.isEmpty { description.groups = [SDPGroup("BUNDLE", bundle)] }
    if hasEndOfCandidates { description.attributes = [SDPAttribute("end-of-candidates")] }
    var writer = SDPWriter()
    for attribute in description.sessionAttributes { writer.line("a", attribute.text) }
    for section in sections {
      var medium = MediaDescription(
        section.kind, port: MediaDescription.discardPort, section.profile, formats: section.formats)
      medium.mid = section.mid
      medium.transport.credentials = section.credentials
      medium.candidates = section.candidates
      medium.hasEndOfCandidates = section.hasEndOfCandidates
      medium.write(to: &writer)
    }
    return writer.text
  }

  /// The credentials that apply to a section.
  public func credentials(of section: Section) -> ICECredentials? { section.credentials ?? credentials }
}
