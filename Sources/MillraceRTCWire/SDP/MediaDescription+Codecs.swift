extension MediaDescription {
  /// The codecs in the order of the m-line, retransmissions folded into the codec that they repeat. Payload types without `a=rtpmap` are
  /// those of RFC 3551, or are left out. Setting writes formats, rtpmap, fmtp and rtcp-fb.
  public var codecs: [RTPCodec] {
    get { readCodecs() }
    set { writeCodecs(newValue) }
  }

  private func readCodecs() -> [RTPCodec] {
    guard profile.isRTP else { return [] }
    var maps: [UInt8: RTPMap] = [:]
    for map in rtpMaps { maps[map.payloadType] = map }
    var reports: [UInt8: [RTCPFeedback.Kind]] = [:]
    for item in feedback {
      for payloadType in item.payloadType.map({ $0...$0 }) ?? 0...127 {
        reports[payloadType, default: []].append(item.kind)
      }
    }
    var list: [RTPCodec] = []
    var rtx: [UInt8: UInt8] = [:]
    var seen: Set<UInt8> = []
    for format in formats {
      guard let payloadType = format[...].payloadType, seen.insert(payloadType).inserted else { continue }
      let parameters = formatParameters[payloadType] ?? FormatParameters()
      if let map = maps[payloadType], map.name.isEqualIgnoringCase("rtx") {
        if let apt = parameters["apt"]?[...].payloadType { rtx[apt] = rtx[apt] ?? payloadType }
        continue
      }
      guard var codec = maps[payloadType].map({ RTPCodec($0) }) ?? RTPCodec(fixed: payloadType) else {
        continue
      }
      codec.parameters = parameters
      codec.feedback = reports[payloadType] ?? []
      list.append(codec)
    }
    return list.map { codec in
      var codec = codec
      codec.rtxPayloadType = rtx[codec.payloadType]
      return codec
    }
  }

  private mutating func writeCodecs(_ codecs: [RTPCodec]) {
    (formats, rtpMaps, formatParameters, feedback) = ([], [], [:], [])
    for codec in codecs {
      formats.append(String(codec.payloadType))
      rtpMaps.append(RTPMap(codec))
      if !codec.parameters.raw.isEmpty { formatParameters[codec.payloadType] = codec.parameters }
      feedback += codec.feedback.map { RTCPFeedback(payloadType: codec.payloadType, $0) }
      guard let rtx = codec.rtxPayloadType else { continue }
      formats.append(String(rtx))
      rtpMaps.append(RTPMap(RTPCodec("rtx", payloadType: rtx, clockRate: codec.clockRate)))
      formatParameters[rtx] = FormatParameters("apt=\(codec.payloadType)")
    }
  }
}

extension RTPCodec {
  init(_ map: RTPMap) {
    self.init(
      map.name, payloadType: map.payloadType, clockRate: map.clockRate, channels: map.channels)
  }

  /// The codec of a payload type that needs no rtpmap; nil: another. Source: RFC 3551 section 6, tables 4 and 5.
  init?(fixed payloadType: UInt8) {
    switch payloadType {
    case 0: self = .pcmu
    case 3: self.init("GSM", payloadType: 3, clockRate: 8000)
    case 8: self = .pcma
    case 9: self.init("G722", payloadType: 9, clockRate: 8000)
    case 10: self = .l16(rate: 44_100, channels: 2)
    case 11: self = .l16(rate: 44_100, channels: 1)
    case 13: self.init("CN", payloadType: 13, clockRate: 8000)
    default: return nil
    }
  }
}
