internal import MillraceCodecs

/// How the sound of a node is sent.
struct SoundUplinkSettings: Sendable {
  /// Lengths of packets in milliseconds that every codec has.
  static let packetTimes = [10, 20, 40, 60]

  /// Codecs that may be agreed on. There is one encoder at a time: the first codec's from the beginning, then that of the codec agreed on.
  var codecs = [
    SoundCodec.opus, SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1),
    SoundCodec(kind: .pcma, clockRate: 8_000, channels: 1),
  ]
  /// Highest bitrate of Opus in bits a second.
  var bitrate = 32_000
  /// Opus carries copies while packets are lost.
  var fec = true
  /// Opus sends next to nothing while nobody speaks.
  var dtx = false
  /// Opus sends both channels of the input.
  var stereo = false
  /// Milliseconds of sound in a packet: one of `packetTimes`.
  var ptime = 20
  /// What Opus is tuned for.
  var application = LibopusEncoder.Application.voip
  /// Effort of the Opus encoder, 0 to 10: that of `opus.encode`.
  var complexity = 5
}

/// What became of the sound at a node's input.
struct SoundUplinkCounts: Sendable, Equatable {
  /// Packets handed to the sessions.
  var packets = 0
  /// Packets that found no room towards the sessions.
  var dropped = 0
  /// Packets of the input while nobody took any.
  var unheard = 0
  /// Packets of the input that cannot be sent in the codec that was agreed on, or that are broken.
  var refused = 0
  /// Packets not sent because there was only silence in them.
  var silent = 0
}

/// Why sound at the input cannot be sent.
enum SoundRefusal: Sendable, Hashable, CustomStringConvertible {
  /// The peers take a codec that this node has no encoder for.
  case noEncoder(SoundCodec)
  /// The input carries Opus, and the peers take something else.
  case opusNotAgreed(SoundCodec)
  /// A packet of Opus breaks the rules of RFC 6716.
  case malformed
  /// A packet is longer than a packet of the network.
  case tooLarge

  var description: String {
    switch self {
    case .noEncoder(let codec):
      "the peers agreed on \(codec), which this node does not send; list it in \"codecs\""
    case .opusNotAgreed(let codec):
      "the input \"audio\" carries Opus, and the peers agreed on \(codec); add opus.decode before it"
    case .malformed: "a packet at \"audio\" is no Opus packet; it is dropped"
    case .tooLarge:
      "an Opus packet at \"audio\" does not fit into a packet of the network; lower its bitrate"
    }
  }
}

extension SoundCodec: CustomStringConvertible {
  /// As SDP writes it: `opus/48000/2`, `PCMU/8000`.
  var description: String {
    let name =
      switch kind {
      case .opus: "opus"
      case .pcmu: "PCMU"
      case .pcma: "PCMA"
      case .l16: "L16"
      case .telephone: "telephone-event"
      }
    return channels > 1 ? "\(name)/\(clockRate)/\(channels)" : "\(name)/\(clockRate)"
  }
}
