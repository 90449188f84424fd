import MillraceRTCWire

@testable import MillraceRTC

/// What both sides have agreed on, by the bits of a number.
struct Agreement {
  static let soundSource: UInt32 = 1_001
  static let videoSource: UInt32 = 1_002
  static let repeatSource: UInt32 = 1_003
  static let ownSound = LocalSource(ssrc: soundSource, cname: "fuzzer")
  static let ownVideo = LocalSource(ssrc: videoSource, rtxSSRC: repeatSource, cname: "fuzzer")
  /// Payload types of the peer: pictures and their retransmissions, sound, keys, and one of nobody.
  static let payloadTypes: [UInt8] = [102, 96, 103, 97, 111, 110, 0, 50]

  let identifiers: RTPExtensionIdentifiers
  let sound: AgreedMedia
  let video: AgreedMedia

  init(_ bits: UInt16) {
    func has(_ bit: Int) -> Bool { bits >> UInt16(bit) & 1 == 1 }
    var identifiers = RTPExtensionIdentifiers(
      audioLevel: 1, mid: 2, absoluteSendTime: 3, transportSequence: 4)
    // Without it the receiver estimates.
    if has(0) { identifiers.transportSequence = nil }
    if has(1) { identifiers.absoluteSendTime = nil }
    self.identifiers = identifiers
    var codecs: [RTPCodec] = [.h264, .vp8]
    if has(2) { for index in codecs.indices { codecs[index].feedback = [.fullIntra] } }
    if has(3) { codecs[0].rtxPayloadType = nil }
    var video = AgreedMedia(
      has(4) ? .receiveOnly : .sendReceive, sendCodec: codecs[has(5) ? 1 : 0], receiveCodecs: codecs)
    video.receiveRTX = [103: 102, 97: 96]
    // The second source repeats the first; otherwise any repeats the only one.
    if has(6) { video.rtxSources = [MediaPeer.source(1): MediaPeer.source(0)] }
    video.identifiers = identifiers
    video.mid = RTPMediaID("1")
    video.hasReducedSizeRTCP = has(7)
    if has(8) { video.parameterSets = [[0x67, 0x42, 0xE0, 0x1F, 0x80], [0x68, 0xCE, 0x3C, 0x80]] }
    self.video = video
    let keys = RTPCodec.telephoneEvent(rate: 48_000)
    var sound = AgreedMedia(
      has(9) ? .receiveOnly : .sendReceive, sendCodec: RTPCodec.opus, receiveCodecs: [.opus, .pcmu, keys],
      sendTones: keys)
    sound.identifiers = identifiers
    sound.mid = RTPMediaID("0")
    sound.hasReducedSizeRTCP = has(7)
    self.sound = sound
  }
}
