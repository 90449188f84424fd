package import MillraceRTCWire

/// How one medium goes over RTP without ICE and DTLS: addresses, codec and, for SRTP, keys.
package struct PlainSettings: Sendable {
  /// An IP address of this machine; "0.0.0.0": all of IPv4; "::": all.
  package var address: String
  /// The port of RTP; 0: any. RTCP has the port after it, unless it shares the port.
  package var port: UInt16
  /// Where packets go; nil: nowhere before the first comes.
  package var remote: DatagramAddress?
  /// Packets go to where valid ones come from.
  package var isSymmetric = false
  /// RTCP shares the port of RTP, here and at the peer (RFC 5761). RTCP on the port of RTP is taken either way.
  package var hasRTCPMux = false
  /// Codecs and direction, seen from this side.
  package var media: AgreedMedia
  /// This side's source of packets, also of reports.
  package var source: LocalSource
  /// Nil: packets are not protected.
  package var keys: SRTPKeys?
  /// Bits a second that an encoder of pictures makes at most.
  package var largestBitrate = 2_500_000

  /// Creates settings with a random source.
  /// - Parameters:
  ///   - codec: of both directions. Its feedback is what both sides report.
  ///   - tones: telephone events of both directions; nil: none.
  package init(
    address: String, port: UInt16, _ direction: MediaDirection, codec: RTPCodec, tones: RTPCodec? = nil
  ) {
    self.address = address
    self.port = port
    media = AgreedMedia(
      direction, sendCodec: codec, receiveCodecs: [codec] + (tones.map { [$0] } ?? []), sendTones: tones)
    // A random name tells nothing about the machine (RFC 7022).
    source = LocalSource(
      ssrc: .random(in: 1...(.max)), cname: String(UInt64.random(in: 0...(.max)), radix: 36))
  }

  /// The codec is one of pictures.
  package var isVideo: Bool { media.sendCodec.flatMap { VideoKind($0) } != nil }
}

extension PlainSettings {
  /// What another program needs to know, as FFmpeg and GStreamer open it from a file: where it receives what this side sends and with which
  /// key, or, where this side only receives, where to send to. With SRTP it contains a key.
  /// - Parameters:
  ///   - local: what the socket of RTP is bound to.
  ///   - milliseconds: of sound in a packet; nil: not said.
  ///   - direction: seen from this side; nil: that of the medium.
  package func description(
    local: DatagramAddress, milliseconds: Int? = nil, direction: MediaDirection? = nil
  ) -> SessionDescription {
    let receiver = remote ?? local
    let codecs = [media.sendCodec, media.sendTones].compactMap { $0 }
    var stream = PlainRTPStream(
      isVideo ? .video : .audio, address: receiver.host, port: receiver.port, codecs: codecs)
    let isFeedback = codecs.contains { !$0.feedback.isEmpty }
    if let keys {
      stream.profile = isFeedback ? .rtpSAVPF : .rtpSAVP
      let key = remote == nil ? keys.inbound : keys.outbound
      if let suite = SDPCrypto.Suite(keys.profile), let crypto = SDPCrypto(suite, key: key) {
        stream.cryptos = [crypto]
      }
    } else {
      stream.profile = isFeedback ? .rtpAVPF : .rtpAVP
    }
    stream.direction = remote == nil ? .receiveOnly : direction ?? media.direction
    stream.hasRTCPMux = hasRTCPMux
    stream.packetMilliseconds = milliseconds
    return SessionDescription(
      plainRTP: [stream], origin: SDPOrigin(sessionID: UInt64(source.ssrc)), name: "Millrace")
  }
}

extension SDPCrypto.Suite {
  /// The suite of a profile of SRTP; nil: one that descriptions with keys do not use here.
  package init?(_ profile: SRTPProfile) {
    switch profile {
    case .aes128CMSHA1: self = .aesCM128SHA180
    case .aes128GCM: self = .aesGCM128
    case .aes256GCM: self = .aesGCM256
    }
  }

  /// The profile of SRTP; nil: one that this library does not have.
  package var profile: SRTPProfile? {
    switch self {
    case .aesCM128SHA180: .aes128CMSHA1
    case .aesGCM128: .aes128GCM
    case .aesGCM256: .aes256GCM
    case .aesCM128SHA132, .aesCM256SHA180, .aesCM256SHA132: nil
    }
  }
}
