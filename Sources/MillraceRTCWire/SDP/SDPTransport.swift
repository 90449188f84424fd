/// Who begins the DTLS handshake: `a=setup`. Source: RFC 4145 section 4, RFC 8842 section 5.
public enum DTLSSetup: String, Sendable, Hashable, CaseIterable {
  /// This side is the client.
  case active
  /// This side is the server.
  case passive
  /// The other side chooses; for offers only.
  case actpass
  /// No connection for now. Not allowed with DTLS (RFC 8842 section 5.3).
  case holdconn
}

/// The name and password of one side's ICE checks. Source: RFC 8839 section 5.4.
public struct ICECredentials: Sendable, Hashable {
  /// `a=ice-ufrag`: 4 to 256 characters.
  public var fragment: String
  /// `a=ice-pwd`: 22 to 256 characters.
  public var password: String

  /// Creates credentials.
  public init(fragment: String, password: String) {
    self.fragment = fragment
    self.password = password
  }
}

/// How a transport is secured and checked: attributes that may stand once for the session, or at each medium.
public struct SDPTransport: Sendable, Hashable {
  /// `a=ice-ufrag`.
  public var iceFragment: String?
  /// `a=ice-pwd`.
  public var icePassword: String?
  /// `a=ice-options`: `trickle`, `ice2`, `renomination` and others.
  public var iceOptions: [String] = []
  /// `a=fingerprint`, of known algorithms.
  public var fingerprints: [CertificateFingerprint] = []
  /// `a=setup`.
  public var setup: DTLSSetup?
  /// `a=tls-id`: changes with every DTLS association.
  public var tlsID: String?

  /// Creates a transport without attributes.
  public init() {}

  /// Both of `a=ice-ufrag` and `a=ice-pwd`; nil: one is missing.
  public var credentials: ICECredentials? {
    get {
      guard let iceFragment, let icePassword else { return nil }
      return ICECredentials(fragment: iceFragment, password: icePassword)
    }
    set { (iceFragment, icePassword) = (newValue?.fragment, newValue?.password) }
  }

  /// What applies to a medium: its own attributes, and those of the session where it has none.
  func inheriting(_ session: SDPTransport) -> SDPTransport {
    var all = self
    if iceFragment == nil && icePassword == nil { all.credentials = session.credentials }
    if iceOptions.isEmpty { all.iceOptions = session.iceOptions }
    if fingerprints.isEmpty { all.fingerprints = session.fingerprints }
    all.setup = setup ?? session.setup
    all.tlsID = tlsID ?? session.tlsID
    return all
  }

  /// Takes an attribute where it is one of these.
  mutating func take(_ name: Substring, _ value: Substring) -> SDPOutcome {
    switch name {
    case "ice-ufrag":
      // Source of the lengths: RFC 8839 section 5.4.
      guard let word = Self.word(value, 4...256) else {
        return .refused("the ICE user fragment is not a word of 4 to 256 characters")
      }
      iceFragment = word
    case "ice-pwd":
      guard let word = Self.word(value, 22...256) else {
        return .refused("the ICE password is not a word of 22 to 256 characters")
      }
      icePassword = word
    case "ice-options":
      var words = SDPWords(value)
      iceOptions = words.all()
    case "fingerprint": return takeFingerprint(value)
    case "setup":
      guard let setup = DTLSSetup.allCases.first(where: { value.isEqualIgnoringCase($0.rawValue) }) else {
        return .refused("the setup is none of active, passive, actpass and holdconn")
      }
      self.setup = setup
    case "tls-id": tlsID = String(value)
    default: return .unknown
    }
    return .taken
  }

  private static func word(_ value: Substring, _ length: ClosedRange<Int>) -> String? {
    guard length.contains(value.utf8.count), !value.utf8.contains(UInt8(ascii: " ")) else { return nil }
    return String(value)
  }

  private mutating func takeFingerprint(_ value: Substring) -> SDPOutcome {
    var words = SDPWords(value)
    guard let algorithm = words.next(), CertificateFingerprint.algorithm(algorithm) != nil else {
      return .malformed("the fingerprint is skipped: its hash function is not known")
    }
    guard let fingerprint = CertificateFingerprint(parsing: String(value)) else {
      return .refused("the fingerprint is not a digest of its hash function, in pairs of digits with colons")
    }
    // As many as there are algorithms would do; a few more are accepted for several certificates.
    guard fingerprints.count < Self.mostFingerprints else {
      return .malformed("the fingerprint is skipped: there are \(Self.mostFingerprints) already")
    }
    fingerprints.append(fingerprint)
    return .taken
  }

  private static let mostFingerprints = 16

  var attributes: [SDPAttribute] {
    var list: [SDPAttribute] = []
    if let iceFragment { list.append(SDPAttribute("ice-ufrag", iceFragment)) }
    if let icePassword { list.append(SDPAttribute("ice-pwd", icePassword)) }
    if !iceOptions.isEmpty { list.append(SDPAttribute("ice-options", iceOptions.joined(separator: " "))) }
    list += fingerprints.map { SDPAttribute("fingerprint", $0.text) }
    if let setup { list.append(SDPAttribute("setup", setup.rawValue)) }
    if let tlsID { list.append(SDPAttribute("tls-id", tlsID)) }
    return list
  }
}

/// What became of an attribute.
enum SDPOutcome {
  /// It is in a typed member.
  case taken
  /// It has no member.
  case unknown
  /// It is kept as text, with a note.
  case malformed(String)
  /// The description is useless.
  case refused(String)
}
