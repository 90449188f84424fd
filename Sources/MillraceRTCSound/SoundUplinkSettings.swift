package import MillraceCodecs

/// How the sound of a node is sent.
package struct SoundUplinkSettings: Sendable {
  /// Lengths of packets in milliseconds that every codec has.
  package static let packetTimes = [10, 20, 40, 60]

  /// Codecs that may be agreed on. There is one encoder at a time: the first codec's from the beginning, then that of the codec agreed on.
  package var codecs = [
    SoundCodec.opus, SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1),
    SoundCodec(kind: .pcma, clockRate: 8_000, channels: 1),
  ]
  /// Highest bitrate of Opus in bits a second.
  package var bitrate = 32_000
  /// Opus carries copies while packets are lost.
  package var fec = true
  /// Opus sends next to nothing while nobody speaks.
  package var dtx = false
  /// Opus sends both channels of the input.
  package var stereo = false
  /// Milliseconds of sound in a packet: one of `packetTimes`.
  package var ptime = 20
  /// What Opus is tuned for.
  package var application = LibopusEncoder.Application.voip
  /// Effort of the Opus encoder, 0 to 10: that of `opus.encode`.
  package var complexity = 5

  package init() {}
}
