/// Reads a description line by line.
struct SDPReader {
  /// What is read.
  enum Form {
    /// A description: `v=` first, then `o=`.
    case description
    /// A fragment of trickle ICE: attributes and m-lines. Source: RFC 8840 section 9.
    case fragment
  }

  private let form: Form
  private var line = 0
  private var hasVersion = false
  private var hasOrigin = false
  private var description = SessionDescription(origin: SDPOrigin(sessionID: 0, version: 0))
  private var candidateCount = 0

  init(_ form: Form) { self.form = form }

  mutating func read(_ bytes: [UInt8]) throws(SDPProblem) -> SessionDescription {
    guard bytes.count <= SDPLimits.bytes else { throw SessionDescription.tooLarge(bytes.count) }
    var start = 0
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      line += 1
      try readLine(bytes[start..<end])
      start = end + 1
    }
    guard form == .fragment || hasVersion else { throw SDPProblem(line: 0, "it is empty") }
    guard form == .fragment || hasOrigin else {
      throw SDPProblem(line: 0, "it has no o= line, so its version is unknown; add one")
    }
    return description
  }

  private mutating func readLine(_ bytes: ArraySlice<UInt8>) throws(SDPProblem) {
    let bytes = bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes
    guard !bytes.isEmpty else { return }
    guard bytes.count <= SDPLimits.lineBytes else {
      throw problem("the line has \(bytes.count) bytes; at most \(SDPLimits.lineBytes) are read")
    }
    guard !bytes.contains(0), !bytes.contains(UInt8(ascii: "\r")) else {
      throw problem("the line has a NUL or a CR in it; lines end in CRLF or LF")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    let (type, value) = text[...].halves(at: "=")
    let isVersion = type == "v" && value?.trimmed == "0"
    guard form == .fragment || hasVersion || isVersion else {
      throw problem("it does not begin with v=0, so this is no SDP; check what the other side has sent")
    }
    guard let type = type.unicodeScalars.first, text.utf8.dropFirst().first == UInt8(ascii: "="), let value
    else { throw problem("it is not a letter, an equals sign and a value") }
    try take(type, value)
  }

  private func problem(_ text: String) -> SDPProblem { SDPProblem(line: line, text) }

  private mutating func note(_ text: String) {
    guard description.notes.count < SDPLimits.notes else { return }
    description.notes.append(SDPNote(line: line, text: text))
  }

  // MARK: Lines

  private mutating func take(_ type: Unicode.Scalar, _ value: Substring) throws(SDPProblem) {
    switch type {
    case "v":
      guard !hasVersion, value.trimmed == "0" else { throw problem("v= is there twice, or is not 0") }
      hasVersion = true
    case "o":
      guard !hasOrigin, let origin = SDPOrigin(parsing: value) else {
        throw problem("o= is there twice, or is not a name, an id, a version and an address")
      }
      (description.origin, hasOrigin) = (origin, true)
    case "s": description.name = String(value)
    case "t":
      // Only the first counts; devices may write several.
      guard let timing = SDPTiming(parsing: value) else { throw problem("t= is not two numbers") }
      description.timing = timing
    case "m": try takeMedium(value)
    case "c", "b", "i": try takeShared(type, value)
    case "a": try takeAttribute(value)
    default: keep(SDPLine(type: type, value: String(value)))
    }
  }

  private mutating func keep(_ line: SDPLine) {
    if description.media.isEmpty {
      description.lines.append(line)
    } else {
      description.media[description.media.count - 1].lines.append(line)
    }
  }

  private mutating func takeMedium(_ value: Substring) throws(SDPProblem) {
    guard description.media.count < SDPLimits.media else {
      throw problem("there are more than \(SDPLimits.media) m-lines")
    }
    let (medium, reason) = MediaDescription.read(value)
    guard let medium else { throw problem(reason) }
    description.media.append(medium)
  }

  /// Takes a line that stands in the session or in a medium.
  private mutating func takeShared(_ type: Unicode.Scalar, _ value: Substring) throws(SDPProblem) {
    let last = description.media.count - 1
    switch type {
    case "c":
      guard let connection = SDPConnection(parsing: value) else {
        throw problem("c= is not IN, IP4 or IP6, and an address")
      }
      if last < 0 {
        description.connection = connection
      } else {
        description.media[last].connection = connection
      }
    case "b":
      guard let bandwidth = SDPBandwidth(parsing: value) else {
        return note("the bandwidth is skipped: it is not a kind and a number")
      }
      if last < 0 {
        description.bandwidths.append(bandwidth)
      } else {
        description.media[last].bandwidths.append(bandwidth)
      }
    default:
      if last < 0 {
        description.information = String(value)
      } else {
        description.media[last].information = String(value)
      }
    }
  }

  // MARK: Attributes

  private mutating func takeAttribute(_ text: Substring) throws(SDPProblem) {
    let (name, value) = text.trimmed.halves(at: ":")
    guard !name.isEmpty else { throw problem("the attribute has no name") }
    if name == "candidate" { return takeCandidate(value ?? "") }
    let last = description.media.count - 1
    let outcome =
      last < 0
      ? description.take(name, (value ?? "").trimmed)
      : description.media[last].take(name, (value ?? "").trimmed)
    switch outcome {
    case .taken: return
    case .refused(let reason): throw problem(reason)
    case .malformed(let reason): note(reason)
    case .unknown: break
    }
    let attribute = SDPAttribute(String(name), value.map { String($0) })
    if last < 0 {
      description.attributes.append(attribute)
    } else {
      description.media[last].attributes.append(attribute)
    }
  }

  private mutating func takeCandidate(_ value: Substring) {
    guard candidateCount < SDPLimits.candidates else {
      description.droppedCandidates += 1
      return
    }
    guard !description.media.isEmpty else {
      return note("the candidate is skipped: it belongs to no m-line")
    }
    do throws(SDPProblem) {
      let candidate = try ICECandidate(value: value)
      description.media[description.media.count - 1].candidates.append(candidate)
      candidateCount += 1
    } catch { note("the candidate is skipped: \(error.text)") }
  }
}

extension SessionDescription {
  /// Takes an attribute of the session where it has a member.
  fileprivate mutating func take(_ name: Substring, _ value: Substring) -> SDPOutcome {
    switch name {
    case "ice-lite": isICELite = true
    case "group":
      guard let group = SDPGroup(parsing: value) else {
        return .malformed("the group is skipped: it has no name")
      }
      groups.append(group)
    case "extmap":
      guard let item = RTPHeaderExtension(parsing: value) else {
        return .malformed("the extmap is skipped: it is not a number and a URI")
      }
      headerExtensions.append(item)
    default:
      if let direction = MediaDirection(rawValue: String(name)) {
        self.direction = direction
        return .taken
      }
      return transport.take(name, value)
    }
    return .taken
  }
}
