extension SessionDescription {
  /// The description in SDP, lines ending in CRLF. CR, LF and NUL within values are left out, so no value can add a line. Contains the ICE
  /// passwords, and the keys of `a=crypto`.
  public var text: String {
    var writer = SDPWriter()
    writer.line("v", "0")
    writer.line("o", origin.text)
    writer.line("s", name)
    writer.line("i", information)
    writer.lines(lines, "uep")
    writer.line("c", connection?.text)
    for bandwidth in bandwidths { writer.line("b", "\(bandwidth.kind):\(bandwidth.value)") }
    writer.line("t", "\(timing.start) \(timing.stop)")
    writer.lines(lines, except: "uep")
    for attribute in sessionAttributes { writer.line("a", attribute.text) }
    for medium in media { medium.write(to: &writer) }
    return writer.text
  }

  /// The attributes of the session in the order in which they are written.
  var sessionAttributes: [SDPAttribute] {
    var list = groups.map { SDPAttribute("group", $0.text) }
    if isICELite { list.append(SDPAttribute("ice-lite")) }
    list += transport.attributes
    if let direction { list.append(SDPAttribute(direction.rawValue)) }
    list += headerExtensions.map { SDPAttribute("extmap", $0.text) }
    return list + attributes
  }
}

/// Collects lines.
struct SDPWriter {
  private(set) var text = ""

  /// Adds a line; nil: none.
  mutating func line(_ type: Unicode.Scalar, _ value: String?) {
    guard let value else { return }
    text.unicodeScalars.append(type)
    text += "="
    // CR, LF and NUL would end the line.
    if value.utf8.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }) {
      text.unicodeScalars.append(
        contentsOf: value.unicodeScalars.filter { $0 != "\0" && $0 != "\n" && $0 != "\r" })
    } else {
      text += value
    }
    text += "\r\n"
  }

  /// Adds the lines of these types.
  mutating func lines(_ lines: [SDPLine], _ types: String) {
    for item in lines where types.unicodeScalars.contains(item.type) { line(item.type, item.value) }
  }

  /// Adds the lines of other types.
  mutating func lines(_ lines: [SDPLine], except types: String) {
    for item in lines where !types.unicodeScalars.contains(item.type) { line(item.type, item.value) }
  }
}

extension MediaDescription {
  /// Adds the m-line and its attributes.
  func write(to writer: inout SDPWriter) {
    writer.line("m", header)
    writer.line("i", information)
    writer.line("c", connection?.text)
    for bandwidth in bandwidths { writer.line("b", "\(bandwidth.kind):\(bandwidth.value)") }
    writer.lines(lines, except: "")
    for attribute in writtenAttributes { writer.line("a", attribute.text) }
  }

  /// What follows `m=`.
  var header: String {
    let ports = portCount > 1 ? "\(port)/\(portCount)" : "\(port)"
    return ([kind.text, ports, profile.text] + formats).joined(separator: " ")
  }

  private var writtenAttributes: [SDPAttribute] {
    transportAttributes + codecAttributes + sourceAttributes + attributes + candidateAttributes
  }

  private var transportAttributes: [SDPAttribute] {
    var list: [SDPAttribute] = []
    if let rtcpPort {
      let connection = rtcpConnection.map { " \($0.text)" } ?? ""
      list.append(SDPAttribute("rtcp", "\(rtcpPort)\(connection)"))
    }
    list += transport.attributes
    if let mid { list.append(SDPAttribute("mid", mid)) }
    list += headerExtensions.map { SDPAttribute("extmap", $0.text) }
    if let direction { list.append(SDPAttribute(direction.rawValue)) }
    list += streamIDs.map { SDPAttribute("msid", $0) }
    let flags = [
      (hasRTCPMux, "rtcp-mux"), (isRTCPMuxOnly, "rtcp-mux-only"), (hasReducedSizeRTCP, "rtcp-rsize"),
      (isBundleOnly, "bundle-only"),
    ]
    list += flags.filter { $0.0 }.map { SDPAttribute($0.1) }
    return list + cryptos.map { SDPAttribute("crypto", $0.text) }
  }

  private var codecAttributes: [SDPAttribute] {
    var list = feedback.filter { $0.payloadType == nil }.map { SDPAttribute("rtcp-fb", $0.text) }
    for map in rtpMaps {
      list.append(SDPAttribute("rtpmap", map.text))
      list += feedback.filter { $0.payloadType == map.payloadType }.map { SDPAttribute("rtcp-fb", $0.text) }
      if let parameters = formatParameters[map.payloadType] {
        list.append(SDPAttribute("fmtp", "\(map.payloadType) \(parameters.raw)"))
      }
    }
    let mapped = Set(rtpMaps.map { $0.payloadType })
    for (payloadType, parameters) in formatParameters.sorted(by: { $0.key < $1.key })
    where !mapped.contains(payloadType) {
      list.append(SDPAttribute("fmtp", "\(payloadType) \(parameters.raw)"))
    }
    list += feedback.filter { item in item.payloadType.map { !mapped.contains($0) } ?? false }
      .map { SDPAttribute("rtcp-fb", $0.text) }
    if let packetMilliseconds { list.append(SDPAttribute("ptime", String(packetMilliseconds))) }
    if let maxPacketMilliseconds { list.append(SDPAttribute("maxptime", String(maxPacketMilliseconds))) }
    return list
  }

  private var sourceAttributes: [SDPAttribute] {
    var list = sourceGroups.map { SDPAttribute("ssrc-group", $0.text) }
    for source in sources { list += source.lines.map { SDPAttribute("ssrc", $0) } }
    let hasMap = attributes.contains {
      $0.name == "sctpmap" && $0.value?.hasPrefix("\(sctpPort ?? 0) ") == true
    }
    if let sctpPort, !hasMap { list.append(SDPAttribute("sctp-port", String(sctpPort))) }
    if let maxMessageSize { list.append(SDPAttribute("max-message-size", String(maxMessageSize))) }
    return list
  }

  var candidateAttributes: [SDPAttribute] {
    var list = candidates.map { SDPAttribute("candidate", $0.value) }
    if hasEndOfCandidates { list.append(SDPAttribute("end-of-candidates")) }
    return list
  }
}
