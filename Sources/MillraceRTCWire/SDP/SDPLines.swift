/// Who made a description, and which version of it this is: `o=`. Source: RFC 8866 section 5.2.
public struct SDPOrigin: Sendable, Hashable {
  /// The name of the user; `-`: not said.
  public var user = "-"
  /// Digits that are unique for this host.
  public var sessionID: String
  /// Rises with every change of the description.
  public var version: UInt64
  /// The host. Its value has no effect; 127.0.0.1 shows nothing of the network (RFC 8829 section 5.2.1).
  public var connection = SDPConnection("127.0.0.1")

  /// Creates an origin.
  public init(sessionID: UInt64, version: UInt64 = 1) {
    self.sessionID = String(sessionID)
    self.version = version
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let user = words.next(), let id = words.next(), let version = words.number(),
      let connection = SDPConnection(parsing: words.remainder)
    else { return nil }
    (self.user, sessionID, self.version, self.connection) = (String(user), String(id), version, connection)
  }

  var text: String { "\(user) \(sessionID) \(version) \(connection.text)" }
}

/// Where media are sent: `c=`. Source: RFC 8866 section 5.7.
public struct SDPConnection: Sendable, Hashable {
  /// An address or a name.
  public var address: String
  /// `IP6` rather than `IP4`.
  public var isIPv6: Bool
  /// What follows the address of a group of hosts: time to live, number of addresses.
  public var suffix: String?

  /// Creates a connection.
  public init(_ address: String) {
    self.address = address
    isIPv6 = address.utf8.contains(UInt8(ascii: ":"))
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let network = words.next(), network.isEqualIgnoringCase("IN"), let type = words.next(),
      type.isEqualIgnoringCase("IP4") || type.isEqualIgnoringCase("IP6"), let word = words.next(),
      words.next() == nil
    else { return nil }
    let (address, suffix) = word.halves(at: "/")
    guard !address.isEmpty else { return nil }
    self.address = String(address)
    self.suffix = suffix.map { String($0) }
    isIPv6 = type.isEqualIgnoringCase("IP6")
  }

  var text: String { "IN \(isIPv6 ? "IP6" : "IP4") \(address)\(suffix.map { "/\($0)" } ?? "")" }

  /// True for `0.0.0.0` and `::`: nothing is sent there, the candidates say where.
  public var isUnspecified: Bool { address == "0.0.0.0" || address == "::" }
}

/// When a session takes place: `t=`, in seconds since 1900; 0 and 0: always. Source: RFC 8866 section 5.9.
public struct SDPTiming: Sendable, Hashable {
  /// Seconds since 1900; 0: at once.
  public var start: UInt64 = 0
  /// Seconds since 1900; 0: open.
  public var stop: UInt64 = 0

  /// Creates the timing of a session without an end.
  public init() {}

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let start = words.number(), let stop = words.number() else { return nil }
    (self.start, self.stop) = (start, stop)
  }
}

/// A limit of the bit rate: `b=`. Source: RFC 8866 section 5.8, RFC 3890 for `TIAS`.
public struct SDPBandwidth: Sendable, Hashable {
  /// `AS` in kbit/s with the IP and UDP headers, `TIAS` in bit/s without them, or another.
  public var kind: String
  /// The value, in the unit of the kind.
  public var value: UInt64

  /// Creates a limit.
  public init(_ kind: String, _ value: UInt64) {
    self.kind = kind
    self.value = value
  }

  init?(parsing value: Substring) {
    let (kind, number) = value.halves(at: ":")
    guard !kind.isEmpty, let number = number?.trimmed.decimal() else { return nil }
    self.init(String(kind), number)
  }

  /// Bits per second; nil: of a kind that is not known, or beyond 64 bits.
  public var bitsPerSecond: UInt64? {
    switch kind {
    case "TIAS": value
    case "AS": value <= UInt64.max / 1000 ? value * 1000 : nil
    default: nil
    }
  }
}

/// An attribute as it stands in the text: `a=name` or `a=name:value`.
public struct SDPAttribute: Sendable, Hashable {
  /// The name.
  public var name: String
  /// The value; nil: a property without one.
  public var value: String?

  /// Creates an attribute.
  public init(_ name: String, _ value: String? = nil) {
    self.name = name
    self.value = value
  }

  var text: String { value.map { "\(name):\($0)" } ?? name }
}

/// A line that has no member of its own: `u=`, `e=`, `p=`, `r=`, `z=`, `k=`.
public struct SDPLine: Sendable, Hashable {
  /// The letter before the equals sign.
  public var type: Unicode.Scalar
  /// What follows it.
  public var value: String
}

/// Media that belong together: `a=group`. Source: RFC 5888 section 5, RFC 9143 for `BUNDLE`.
public struct SDPGroup: Sendable, Hashable {
  /// `BUNDLE`, `LS`, or another.
  public var semantics: String
  /// The ids of the media, `a=mid`.
  public var mids: [String]

  /// Creates a group.
  public init(_ semantics: String, _ mids: [String]) {
    self.semantics = semantics
    self.mids = mids
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let semantics = words.next() else { return nil }
    self.init(String(semantics), words.all())
  }

  var text: String { ([semantics] + mids).joined(separator: " ") }
}
