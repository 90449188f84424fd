package import MillraceRTCWire

/// A codec of sound as it goes between a node and the thread of its sessions.
package struct SoundCodec: Hashable, Sendable {
  package enum Kind: UInt8, Sendable { case opus = 1, pcmu, pcma, l16, telephone }

  package var kind: Kind
  /// Timestamps a second.
  package var clockRate: Int
  package var channels: Int

  /// Bytes of the largest payload that fits into a packet of the network with all header extensions: 1,200 less 48 (see `SoundSender`).
  package static let largestPayload = 1_152

  package static let opus = SoundCodec(kind: .opus, clockRate: 48_000, channels: 2)

  /// In 8 bytes, as an atomic and in records.
  package var packed: UInt64 {
    UInt64(kind.rawValue) | UInt64(channels & 0xFF) << 8 | UInt64(clockRate) << 16
  }

  package init(kind: Kind, clockRate: Int, channels: Int) {
    self.kind = kind
    self.clockRate = clockRate
    self.channels = channels
  }

  /// Nil for 0: not known yet.
  package init?(packed: UInt64) {
    guard let kind = Kind(rawValue: UInt8(truncatingIfNeeded: packed)) else { return nil }
    self.init(
      kind: kind, clockRate: Int(packed >> 16 & 0xFFFF_FFFF), channels: Int(packed >> 8 & 0xFF))
  }
}

extension SoundCodec {
  /// Nil for a codec that a node does not know.
  package init?(_ codec: RTPCodec) {
    let kind: Kind
    switch codec.name.lowercased() {
    case "opus": kind = .opus
    case "pcmu": kind = .pcmu
    case "pcma": kind = .pcma
    case "l16": kind = .l16
    case "telephone-event": kind = .telephone
    default: return nil
    }
    self.init(kind: kind, clockRate: codec.clockRate, channels: codec.channels)
  }
}

extension SoundCodec: CustomStringConvertible {
  /// As SDP writes it: `opus/48000/2`, `PCMU/8000`.
  package var description: String {
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
