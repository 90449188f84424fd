@testable import MillraceRTCWire

/// Descriptions as real peers write them.
enum SDPSamples {
  static let digest =
    "0A:1B:2C:3D:4E:5F:60:71:82:93:A4:B5:C6:D7:E8:F9:0A:1B:2C:3D:4E:5F:60:71:82:93:A4:B5:C6:D7:E8:F9"

  /// With line ends of the wire.
  static func wire(_ text: String) -> String { text.split(separator: "\n").map { "\($0)\r\n" }.joined() }

  static func parsed(_ text: String) throws(SDPProblem) -> SessionDescription {
    try SessionDescription(parsing: wire(text))
  }

  /// An offer in the style of Chromium: sound, a picture, data.
  static let chromium = """
    v=0
    o=- 4611731400430051336 2 IN IP4 127.0.0.1
    s=-
    t=0 0
    a=group:BUNDLE 0 1 2
    a=extmap-allow-mixed
    a=msid-semantic: WMS 61317484-2ed4-49d7-9eb7-1414322a7aae
    m=audio 54609 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126
    c=IN IP4 203.0.113.4
    a=rtcp:9 IN IP4 0.0.0.0
    a=candidate:1467250027 1 udp 2122260223 192.0.2.4 46243 typ host generation 0 network-id 1 network-cost 10
    a=candidate:435653019 1 tcp 1518280447 192.0.2.4 9 typ host tcptype active generation 0 network-id 1 network-cost 10
    a=candidate:842163049 1 udp 1686052607 203.0.113.4 54609 typ srflx raddr 192.0.2.4 rport 46243 generation 0 network-id 1
    a=candidate:1853887674 1 udp 2122194687 0b4a3c8e-9d2f-4d5e-8a77-2f1d0a6c9b10.local 61665 typ host generation 0 network-id 2
    a=candidate:3498147984 1 udp 2122131711 2001:db8::17 50412 typ host generation 0 network-id 3
    a=ice-ufrag:EsAw
    a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1
    a=ice-options:trickle
    a=fingerprint:sha-256 \(digest)
    a=setup:actpass
    a=mid:0
    a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level vad=on
    a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
    a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
    a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
    a=sendrecv
    a=msid:61317484-2ed4-49d7-9eb7-1414322a7aae b5ba5ce3-0d1f-4a3c-a6f1-8f1cb2a1c3f0
    a=rtcp-mux
    a=rtcp-rsize
    a=rtpmap:111 opus/48000/2
    a=rtcp-fb:111 transport-cc
    a=fmtp:111 minptime=10;useinbandfec=1
    a=rtpmap:63 red/48000/2
    a=fmtp:63 111/111
    a=rtpmap:9 G722/8000
    a=rtpmap:0 PCMU/8000
    a=rtpmap:8 PCMA/8000
    a=rtpmap:13 CN/8000
    a=rtpmap:110 telephone-event/48000
    a=rtpmap:126 telephone-event/8000
    a=ssrc:2655508255 cname:xDrOBVVPnW8Qp9Gn
    a=ssrc:2655508255 msid:61317484-2ed4-49d7-9eb7-1414322a7aae b5ba5ce3-0d1f-4a3c-a6f1-8f1cb2a1c3f0
    m=video 9 UDP/TLS/RTP/SAVPF 96 97 102 103 104 107 106 109 127 125 35 36 98 99 116 117 118
    c=IN IP4 0.0.0.0
    a=rtcp:9 IN IP4 0.0.0.0
    a=ice-ufrag:EsAw
    a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1
    a=ice-options:trickle
    a=fingerprint:sha-256 \(digest)
    a=setup:actpass
    a=mid:1
    a=extmap:14 urn:ietf:params:rtp-hdrext:toffset
    a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
    a=extmap:13 urn:3gpp:video-orientation
    a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
    a=extmap:5 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay
    a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
    a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
    a=sendrecv
    a=msid:61317484-2ed4-49d7-9eb7-1414322a7aae 0a8e5cc9-6a1b-4d12-8f4a-9a0b9c1f6a11
    a=rtcp-mux
    a=rtcp-rsize
    a=rtpmap:96 VP8/90000
    a=rtcp-fb:96 goog-remb
    a=rtcp-fb:96 transport-cc
    a=rtcp-fb:96 ccm fir
    a=rtcp-fb:96 nack
    a=rtcp-fb:96 nack pli
    a=rtpmap:97 rtx/90000
    a=fmtp:97 apt=96
    a=rtpmap:102 H264/90000
    a=rtcp-fb:102 goog-remb
    a=rtcp-fb:102 transport-cc
    a=rtcp-fb:102 ccm fir
    a=rtcp-fb:102 nack
    a=rtcp-fb:102 nack pli
    a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f
    a=rtpmap:103 rtx/90000
    a=fmtp:103 apt=102
    a=rtpmap:104 H264/90000
    a=fmtp:104 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42001f
    a=rtpmap:107 rtx/90000
    a=fmtp:107 apt=104
    a=rtpmap:106 H264/90000
    a=rtcp-fb:106 goog-remb
    a=rtcp-fb:106 transport-cc
    a=rtcp-fb:106 ccm fir
    a=rtcp-fb:106 nack
    a=rtcp-fb:106 nack pli
    a=fmtp:106 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
    a=rtpmap:109 rtx/90000
    a=fmtp:109 apt=106
    a=rtpmap:127 H264/90000
    a=fmtp:127 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f
    a=rtpmap:125 rtx/90000
    a=fmtp:125 apt=127
    a=rtpmap:35 AV1/90000
    a=rtpmap:36 rtx/90000
    a=fmtp:36 apt=35
    a=rtpmap:98 VP9/90000
    a=fmtp:98 profile-id=0
    a=rtpmap:99 rtx/90000
    a=fmtp:99 apt=98
    a=rtpmap:116 red/90000
    a=rtpmap:117 rtx/90000
    a=fmtp:117 apt=116
    a=rtpmap:118 ulpfec/90000
    a=ssrc-group:FID 4196226540 1177265563
    a=ssrc:4196226540 cname:xDrOBVVPnW8Qp9Gn
    a=ssrc:4196226540 msid:61317484-2ed4-49d7-9eb7-1414322a7aae 0a8e5cc9-6a1b-4d12-8f4a-9a0b9c1f6a11
    a=ssrc:1177265563 cname:xDrOBVVPnW8Qp9Gn
    a=ssrc:1177265563 msid:61317484-2ed4-49d7-9eb7-1414322a7aae 0a8e5cc9-6a1b-4d12-8f4a-9a0b9c1f6a11
    m=application 9 UDP/DTLS/SCTP webrtc-datachannel
    c=IN IP4 0.0.0.0
    a=ice-ufrag:EsAw
    a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1
    a=ice-options:trickle
    a=fingerprint:sha-256 \(digest)
    a=setup:actpass
    a=mid:2
    a=sctp-port:5000
    a=max-message-size:262144
    """

  /// An offer in the style of Firefox: fingerprint and options of the session, sendrecv there too, lower-case names of codecs.
  static let firefox = """
    v=0
    o=mozilla...THIS_IS_SDPARTA-128.0 7052118291346234761 0 IN IP4 0.0.0.0
    s=-
    t=0 0
    a=sendrecv
    a=fingerprint:sha-256 \(digest)
    a=group:BUNDLE 0 1
    a=ice-options:trickle
    a=msid-semantic:WMS *
    m=audio 9 UDP/TLS/RTP/SAVPF 109 9 0 8 101
    c=IN IP4 0.0.0.0
    a=sendrecv
    a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
    a=extmap:2/recvonly urn:ietf:params:rtp-hdrext:csrc-audio-level
    a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid
    a=fmtp:109 maxplaybackrate=48000;stereo=1;useinbandfec=1
    a=fmtp:101 0-15
    a=ice-pwd:3cdf5cf5fbf7c9eac1e4d4e1a3d1c8ab
    a=ice-ufrag:8e3c1d2a
    a=mid:0
    a=msid:- {5f4f2d35-7b8f-4b6a-9a60-9a1f30d6cf51}
    a=rtcp-mux
    a=rtpmap:109 opus/48000/2
    a=rtpmap:9 G722/8000/1
    a=rtpmap:0 PCMU/8000
    a=rtpmap:8 PCMA/8000
    a=rtpmap:101 telephone-event/8000
    a=setup:actpass
    a=ssrc:2087348120 cname:{a2b1f0c7-1c43-4f6a-a5a1-3f2b1d9d2e11}
    m=video 0 UDP/TLS/RTP/SAVPF 120 124 126 127 97
    c=IN IP4 0.0.0.0
    a=bundle-only
    a=recvonly
    a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid
    a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
    a=extmap:7 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
    a=fmtp:126 profile-level-id=42e01f;level-asymmetry-allowed=1;packetization-mode=1
    a=fmtp:97 profile-level-id=42e01f;level-asymmetry-allowed=1
    a=fmtp:120 max-fs=12288;max-fr=60
    a=fmtp:124 apt=120
    a=fmtp:127 apt=126
    a=ice-pwd:3cdf5cf5fbf7c9eac1e4d4e1a3d1c8ab
    a=ice-ufrag:8e3c1d2a
    a=mid:1
    a=rtcp-fb:* nack
    a=rtcp-fb:120 nack pli
    a=rtcp-fb:126 nack pli
    a=rtcp-fb:126 transport-cc
    a=rtcp-mux
    a=rtcp-rsize
    a=rtpmap:120 VP8/90000
    a=rtpmap:124 rtx/90000
    a=rtpmap:126 H264/90000
    a=rtpmap:127 rtx/90000
    a=rtpmap:97 H264/90000
    a=setup:actpass
    """

  /// An offer in the style of aiortc: candidates at each medium, three fingerprints, numbers of seconds as id.
  static let aiortc = """
    v=0
    o=- 3923457012 3923457012 IN IP4 0.0.0.0
    s=-
    t=0 0
    a=group:BUNDLE 0 1
    a=msid-semantic:WMS *
    m=audio 52117 UDP/TLS/RTP/SAVPF 96 0 8
    c=IN IP4 198.51.100.7
    a=sendrecv
    a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid
    a=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level
    a=mid:0
    a=msid:2c7f65f6-7b69-4e0e-9f3b-21d7dcf8b8f3 6f3f25a6-e0c3-4be1-8e4b-a58f2d6a7c50
    a=rtcp:9 IN IP4 0.0.0.0
    a=rtcp-mux
    a=ssrc:1479322121 cname:a4c5b7e2-9f43-4d0e-8b8a-92e4f2f0d5b6
    a=rtpmap:96 opus/48000/2
    a=rtpmap:0 PCMU/8000
    a=rtpmap:8 PCMA/8000
    a=candidate:7d6b0a3c5e 1 udp 2130706431 198.51.100.7 52117 typ host
    a=candidate:c2f1b0d94a 1 udp 1694498815 203.0.113.9 52117 typ srflx raddr 198.51.100.7 rport 52117
    a=end-of-candidates
    a=ice-ufrag:Mw9j
    a=ice-pwd:oDHzVq1uPKy6KCQ8uPzV5d
    a=fingerprint:sha-256 \(digest)
    a=fingerprint:sha-384 \(digest):\(digest.prefix(47))
    a=fingerprint:sha-512 \(digest):\(digest)
    a=setup:actpass
    m=application 52117 DTLS/SCTP 5000
    c=IN IP4 198.51.100.7
    a=mid:1
    a=sctpmap:5000 webrtc-datachannel 65535
    a=max-message-size:65536
    a=candidate:7d6b0a3c5e 1 udp 2130706431 198.51.100.7 52117 typ host
    a=end-of-candidates
    a=ice-ufrag:Mw9j
    a=ice-pwd:oDHzVq1uPKy6KCQ8uPzV5d
    a=fingerprint:sha-256 \(digest)
    a=setup:actpass
    """

  /// An answer in the style of Janus as ICE-lite, to an offer of sound with Opus 111 and mid 0.
  static let janus = """
    v=0
    o=- 1716542839671222 1 IN IP4 198.51.100.20
    s=EchoTest 3216
    t=0 0
    a=group:BUNDLE 0
    a=ice-options:trickle
    a=fingerprint:sha-256 \(digest)
    a=ice-lite
    a=msid-semantic: WMS *
    m=audio 9 UDP/TLS/RTP/SAVPF 111
    c=IN IP4 198.51.100.20
    a=sendrecv
    a=mid:0
    a=rtcp-mux
    a=ice-ufrag:Xh4k
    a=ice-pwd:WGrlpsj7cFLMGtLFqCW4y3
    a=ice-options:trickle
    a=setup:active
    a=rtpmap:111 opus/48000/2
    a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
    a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
    a=msid:janus janus0
    a=ssrc:3735928559 cname:janus
    a=candidate:1 1 udp 2015363327 198.51.100.20 20412 typ host
    a=candidate:2 1 udp 2015363583 fe80::216:3eff:fe2a:17 22310 typ host
    a=end-of-candidates
    """

  /// A file that FFmpeg writes for two streams over RTP.
  static let ffmpeg = """
    v=0
    o=- 0 0 IN IP4 127.0.0.1
    s=No Name
    c=IN IP4 127.0.0.1
    t=0 0
    a=tool:libavformat 61.7.100
    m=video 5006 RTP/AVP 96
    b=AS:500
    a=rtpmap:96 H264/90000
    a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0LAHtoCgL/lwEQAAAMABAAAAwDwPFi6gA==,aM48gA==; profile-level-id=42C01E
    m=audio 5004 RTP/AVP 97
    b=AS:64
    a=rtpmap:97 opus/48000/2
    a=fmtp:97 sprop-stereo=1
    """
}
