/// A medium over RTP without ICE and DTLS: an address, a port, and perhaps a key. Source: RFC 3551, RFC 4568 for keys.
public struct PlainRTPStream: Sendable, Hashable {
  /// Sound or pictures.
  public var kind: MediaKind
  /// Where packets are received: an IPv4 or IPv6 address, or a name.
  public var address: String
  /// The port of RTP.
  public var port: UInt16
  /// `RTP/AVP`, `RTP/AVPF`, `RTP/SAVP` or `RTP/SAVPF`.
  public var profile = TransportProfile.rtpAVP
  /// In the order of preference.
  public var codecs: [RTPCodec]
  /// Seen from the writer of the description; nil: not said, which means both ways.
  public var direction: MediaDirection?
  /// RTCP shares the port of RTP.
  public var hasRTCPMux = false
  /// `a=rtcp`; nil: the port after that of RTP.
  public var rtcpPort: UInt16?
  /// The address of RTCP; nil: that of RTP.
  public var rtcpAddress: String?
  /// Keys, with `RTP/SAVP` and `RTP/SAVPF`.
  public var cryptos: [SDPCrypto] = []
  /// `a=ptime`.
  public var packetMilliseconds: Int?

  /// Creates a stream.
  public init(_ kind: MediaKind, address: String, port: UInt16, codecs: [RTPCodec]) {
    self.kind = kind
    self.address = address
    self.port = port
    self.codecs = codecs
  }

  /// The port of RTCP. Source: RFC 3550 section 11.
  public var effectiveRTCPPort: UInt16 {
    hasRTCPMux ? port : rtcpPort ?? (port < .max ? port + 1 : port)
  }

  /// The first key with a known suite.
  public var crypto: SDPCrypto? { cryptos.first { $0.key != nil } }
}

extension SessionDescription {
  /// A description of streams over RTP, as FFmpeg opens it from a file.
  public init(plainRTP streams: [PlainRTPStream], origin: SDPOrigin, name: String = "-") {
    self.init(origin: origin)
    self.name = name
    guard let first = streams.first else { return }
    connection = SDPConnection(first.address)
    self.origin.connection = SDPConnection(first.address)
    for stream in streams {
      var medium = MediaDescription(stream.kind, port: stream.port, stream.profile)
      if stream.address != first.address { medium.connection = SDPConnection(stream.address) }
      medium.codecs = stream.codecs
      medium.direction = stream.direction
      medium.hasRTCPMux = stream.hasRTCPMux
      medium.rtcpPort = stream.rtcpPort
      if stream.rtcpPort != nil { medium.rtcpConnection = stream.rtcpAddress.map { SDPConnection($0) } }
      medium.cryptos = stream.cryptos
      medium.packetMilliseconds = stream.packetMilliseconds
      media.append(medium)
    }
  }

  /// The streams of a description over RTP; refused media and those without RTP are left out.
  /// - Throws: `unsupportedProfile` for DTLS, `noAddress`, `noCommonCodec` without a known payload type, `noUsableKey`, `noMedia`.
  public func plainRTPStreams() throws(NegotiationProblem) -> [PlainRTPStream] {
    var streams: [PlainRTPStream] = []
    for (index, medium) in media.enumerated() where medium.profile.isRTP && !medium.isRejected {
      let plain: [TransportProfile] = [.rtpAVP, .rtpAVPF, .rtpSAVP, .rtpSAVPF]
      guard plain.contains(medium.profile) else {
        throw .unsupportedProfile(medium: name(index), profile: medium.profile.text)
      }
      guard let connection = connection(of: medium) else { throw .noAddress(medium: name(index)) }
      var stream = PlainRTPStream(
        medium.kind, address: connection.address, port: medium.port, codecs: medium.codecs)
      guard stream.codecs.contains(where: { !$0.isAuxiliary }) else {
        throw .noCommonCodec(medium: name(index))
      }
      stream.profile = medium.profile
      stream.direction = medium.direction ?? direction
      stream.hasRTCPMux = medium.hasRTCPMux
      stream.rtcpPort = medium.rtcpPort
      stream.rtcpAddress = medium.rtcpConnection?.address
      stream.cryptos = medium.cryptos
      stream.packetMilliseconds = medium.packetMilliseconds
      guard !medium.profile.isSRTP || stream.crypto != nil else { throw .noUsableKey(medium: name(index)) }
      streams.append(stream)
    }
    guard !streams.isEmpty else { throw .noMedia }
    return streams
  }
}
