extension ICECandidate {
  /// The longest candidate that is read, in bytes. Those of browsers have about 200.
  static let mostBytes = 1024
  /// The most pairs behind the known fields that are read.
  private static let mostExtensions = 16

  /// Reads `candidate:…`, with `a=` before it or without, or only what follows the colon.
  /// - Throws: where a field is missing or is out of its range.
  public init(parsing text: String) throws(SDPProblem) {
    var rest = text[...]
    while let last = rest.utf8.last, last == 13 || last == 10 { rest = Substring(rest.utf8.dropLast()) }
    // By bytes: to a String a combining mark behind the colon is one character with it.
    for prefix in ["a=", "candidate:"] where rest.utf8.starts(with: prefix.utf8) {
      rest = Substring(rest.utf8.dropFirst(prefix.utf8.count))
    }
    try self.init(value: rest)
  }

  /// Reads what follows `candidate:`.
  init(value: Substring) throws(SDPProblem) {
    guard value.utf8.count <= Self.mostBytes else {
      throw Self.problem("it has more than \(Self.mostBytes) bytes")
    }
    guard value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else {
      throw Self.problem("it has control characters")
    }
    var words = SDPWords(value)
    guard let foundation = words.next(), foundation.utf8.count <= 32 else {
      throw Self.problem("its foundation is not a word of 1 to 32 characters")
    }
    guard let component = words.number(256), component > 0 else {
      throw Self.problem("its component is not a number from 1 to 256")
    }
    guard let transport = words.next() else { throw Self.problem("it has no transport") }
    // Priorities fit in 31 bits; some peers use the 32nd.
    guard let priority = words.number(UInt64(UInt32.max)) else {
      throw Self.problem("its priority is not a number of 32 bits")
    }
    guard let address = words.next() else { throw Self.problem("it has no address") }
    guard let port = words.next()?.port else {
      throw Self.problem("its port is not a number from 0 to 65535")
    }
    guard words.next() == "typ", let word = words.next(), let kind = Kind(rawValue: String(word)) else {
      throw Self.problem("its type is none of host, srflx, prflx and relay")
    }
    self.init(
      foundation: String(foundation), component: UInt16(component), priority: UInt32(priority),
      address: String(address), port: port, kind: kind)
    try takePairs(&words, transport)
  }

  /// Takes the pairs behind the type.
  private mutating func takePairs(_ words: inout SDPWords, _ transport: Substring) throws(SDPProblem) {
    var tcpKind: TCPKind?
    while let name = words.next() {
      // A name without a value ends it; Firefox has written one.
      guard let value = words.next() else { break }
      switch name {
      case "raddr": relatedAddress = String(value)
      case "rport":
        guard let port = value.port else {
          throw Self.problem("its related port is not a number from 0 to 65535")
        }
        relatedPort = port
      case "tcptype": tcpKind = TCPKind(rawValue: value.lowercased())
      default:
        guard extensions.count < Self.mostExtensions else { continue }
        extensions.append(Extension(name: String(name), value: String(value)))
      }
    }
    switch transport.lowercased() {
    case "udp": self.transport = .udp
    case "tcp": self.transport = .tcp(tcpKind)
    case let other: self.transport = .other(other)
    }
  }

  private static func problem(_ text: String) -> SDPProblem {
    SDPProblem(line: 0, "the candidate is not valid: \(text)")
  }

  /// For example `candidate:1 1 udp 2130706431 192.0.2.1 54321 typ host`, as it stands in JSON of signalling; a description has `a=`
  /// before it.
  public var text: String { "candidate:\(value)" }

  /// What follows `candidate:`.
  var value: String {
    var text =
      "\(foundation) \(component) \(transportName) \(priority) \(address) \(port) typ \(kind.rawValue)"
    if let relatedAddress { text += " raddr \(relatedAddress)" }
    if let relatedPort { text += " rport \(relatedPort)" }
    if case .tcp(let kind?) = transport { text += " tcptype \(kind.rawValue)" }
    for pair in extensions { text += " \(pair.name) \(pair.value)" }
    return text
  }

  private var transportName: String {
    switch transport {
    case .udp: "udp"
    case .tcp: "tcp"
    case .other(let name): name
    }
  }
}
