internal import MillraceRTCSound

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
