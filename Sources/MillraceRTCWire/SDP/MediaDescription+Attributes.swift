extension MediaDescription {
  /// Reads what follows `m=`.
  /// - Returns: nil with the reason where it is not valid.
  static func read(_ value: Substring) -> (MediaDescription?, String) {
    var words = SDPWords(value)
    guard let kind = words.next() else { return (nil, "the m-line is empty") }
    let (portWord, countWord) = (words.next() ?? "").halves(at: "/")
    guard let port = portWord.port else { return (nil, "the port is not a number from 0 to 65535") }
    guard let profile = words.next() else { return (nil, "the m-line names no protocol") }
    var medium = MediaDescription(MediaKind(kind), port: port, TransportProfile(String(profile)))
    if let countWord {
      guard let count = countWord.decimal(65_535), count > 0 else {
        return (nil, "the number of ports is not a number from 1 to 65535")
      }
      medium.portCount = Int(count)
    }
    medium.formats = words.all()
    guard medium.formats.count <= mostFormats else {
      return (nil, "the m-line has \(medium.formats.count) formats; at most \(mostFormats) are read")
    }
    return (medium, "")
  }

  /// Twice the payload types that RTP has.
  private static let mostFormats = 256
  /// Browsers offer 5 reports for each of about 20 codecs.
  private static let mostFeedback = 512

  /// Takes an attribute where it has a member.
  mutating func take(_ name: Substring, _ value: Substring) -> SDPOutcome {
    let outcome = transport.take(name, value)
    guard case .unknown = outcome else { return outcome }
    if let flag = takeFlag(name) { return flag }
    switch name {
    case "mid": return takeMid(value)
    case "rtcp": return takeRTCP(value)
    case "rtpmap", "fmtp", "rtcp-fb", "extmap": return takeCodec(name, value)
    case "ssrc", "ssrc-group", "msid": return takeSource(name, value)
    case "sctp-port", "sctpmap", "max-message-size": return takeData(name, value)
    case "ptime", "maxptime":
      // The grammar of RFC 8866 has fractions of milliseconds, which nobody uses.
      guard let time = value.halves(at: ".").0.decimal(60_000) else {
        return .malformed("\(name) is skipped: it is not a number of milliseconds")
      }
      if name == "ptime" { packetMilliseconds = Int(time) } else { maxPacketMilliseconds = Int(time) }
      return .taken
    case "crypto":
      guard let crypto = SDPCrypto(parsing: value) else {
        return .malformed("the crypto attribute is skipped: it is not a tag, a suite and a key")
      }
      cryptos.append(crypto)
      return .taken
    default: return .unknown
    }
  }

  /// Takes an attribute without a value.
  private mutating func takeFlag(_ name: Substring) -> SDPOutcome? {
    switch name {
    case "rtcp-mux": hasRTCPMux = true
    case "rtcp-mux-only": isRTCPMuxOnly = true
    case "rtcp-rsize": hasReducedSizeRTCP = true
    case "bundle-only": isBundleOnly = true
    case "end-of-candidates": hasEndOfCandidates = true
    default:
      guard let direction = MediaDirection(rawValue: String(name)) else { return nil }
      self.direction = direction
    }
    return .taken
  }

  private mutating func takeMid(_ value: Substring) -> SDPOutcome {
    var words = SDPWords(value)
    guard let word = words.next(), words.next() == nil else {
      return .refused("the mid is not one word")
    }
    guard mid == nil else { return .refused("the medium has two mids") }
    mid = String(word)
    return .taken
  }

  private mutating func takeRTCP(_ value: Substring) -> SDPOutcome {
    var words = SDPWords(value)
    guard let port = words.next()?.port else {
      return .malformed("the RTCP port is skipped: it is not a number from 0 to 65535")
    }
    rtcpPort = port
    rtcpConnection = SDPConnection(parsing: words.remainder)
    return .taken
  }

  private mutating func takeCodec(_ name: Substring, _ value: Substring) -> SDPOutcome {
    switch name {
    case "rtpmap":
      guard let map = RTPMap(parsing: value) else {
        return .malformed("the rtpmap is skipped: it is not a payload type, a name and a clock rate")
      }
      guard !rtpMaps.contains(where: { $0.payloadType == map.payloadType }) else {
        return .malformed("the rtpmap is skipped: payload type \(map.payloadType) has one already")
      }
      rtpMaps.append(map)
    case "fmtp":
      var words = SDPWords(value)
      guard let payloadType = words.next()?.payloadType else { return .unknown }
      guard formatParameters[payloadType] == nil else {
        return .malformed("the fmtp is skipped: payload type \(payloadType) has one already")
      }
      formatParameters[payloadType] = FormatParameters(String(words.remainder))
    case "rtcp-fb":
      guard let item = RTCPFeedback(parsing: value) else {
        return .malformed("the rtcp-fb is skipped: it is not a payload type and a kind")
      }
      guard feedback.count < Self.mostFeedback else {
        return .malformed("the rtcp-fb is skipped: the medium has \(Self.mostFeedback) already")
      }
      feedback.append(item)
    default:
      guard let item = RTPHeaderExtension(parsing: value) else {
        return .malformed("the extmap is skipped: it is not a number and a URI")
      }
      headerExtensions.append(item)
    }
    return .taken
  }

  private mutating func takeSource(_ name: Substring, _ value: Substring) -> SDPOutcome {
    if name == "msid" {
      streamIDs.append(String(value))
      return .taken
    }
    if name == "ssrc-group" {
      guard let group = RTPSourceGroup(parsing: value) else {
        return .malformed("the ssrc-group is skipped: it is not a name and numbers of 32 bits")
      }
      sourceGroups.append(group)
      return .taken
    }
    var words = SDPWords(value)
    guard let ssrc = words.number(UInt64(UInt32.max)).map({ UInt32($0) }) else {
      return .malformed("the source is skipped: it is not a number of 32 bits")
    }
    if let place = sources.lastIndex(where: { $0.ssrc == ssrc }) {
      sources[place].take(words.remainder)
      return .taken
    }
    guard sources.count < SDPLimits.sources else {
      return .malformed("the source is skipped: the medium has \(SDPLimits.sources) already")
    }
    var source = RTPSource(ssrc: ssrc)
    source.take(words.remainder)
    sources.append(source)
    return .taken
  }

  private mutating func takeData(_ name: Substring, _ value: Substring) -> SDPOutcome {
    if name == "max-message-size" {
      guard let size = value.trimmed.decimal() else {
        return .malformed("the maximum message size is skipped: it is not a number")
      }
      maxMessageSize = size
      return .taken
    }
    // `sctpmap:5000 webrtc-datachannel 1024` is the form of the drafts before RFC 8841.
    var words = SDPWords(value)
    guard let port = words.next()?.port, port > 0 else {
      return .refused("the SCTP port is not a number from 1 to 65535")
    }
    sctpPort = port
    return name == "sctpmap" ? .unknown : .taken
  }
}
