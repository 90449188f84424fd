internal import MillraceService

/// Judges the audio of replies: whether a stream has the format of the output, and whether it is what it says. Cuts packets of Opus into
/// their frames.
///
/// Shared by the endpoint and its wire, which are on one event loop.
final class TuyaReplyCheck: @unchecked Sendable {
  /// The longest frame of MPEG audio, layer III: 160 kbit/s at 8 kHz. In more bytes there is a header.
  private static let longestFrame = 1_440

  private let codec: TuyaAudioParameters.Codec
  private let rate: Int
  /// What is wrong with the stream; nil: nothing so far.
  private var problem: String?
  /// Bytes of a frame of Opus; 0: a packet is one.
  private var frameBytes = 0
  /// A header of MP3 was seen in the stream.
  private var hasHeader = false

  /// - Parameters:
  ///   - format: of the output: `mp3`, `pcm` or `opus`.
  ///   - rate: of the output, in Hz.
  init(_ format: String, rate: Int) {
    codec =
      switch format {
      case "pcm": .pcm
      case "opus": .opus
      default: .mp3
      }
    self.rate = rate
  }

  /// A stream begins.
  func begin(_ parameters: TuyaAudioParameters) {
    hasHeader = false
    problem = mismatch(parameters)
    frameBytes = codec == .opus ? Self.frameBytes(parameters) : 0
  }

  private static func frameBytes(_ parameters: TuyaAudioParameters) -> Int {
    guard parameters.frameBytes == 0 else { return parameters.frameBytes }
    return parameters.bitRate * parameters.frameMilliseconds / 8_000
  }

  /// The frames in a packet. The cloud's are of one size, and nothing stands between them.
  func frames(in bytes: [UInt8]) -> [[UInt8]] {
    guard frameBytes > 0, bytes.count > frameBytes, bytes.count.isMultiple(of: frameBytes) else {
      return [bytes]
    }
    return stride(from: 0, to: bytes.count, by: frameBytes).map { Array(bytes[$0..<$0 + frameBytes]) }
  }

  private func mismatch(_ parameters: TuyaAudioParameters) -> String? {
    guard parameters.codec == codec else {
      let name = parameters.codec.map { "\($0)" } ?? "codec \(parameters.codecNumber)"
      return "the reply is \(name), and \"reply\" is \(codec)"
    }
    // MP3 has its rate in each frame.
    guard codec != .mp3 else { return nil }
    guard parameters.rate == rate else {
      return "the reply has \(parameters.rate) Hz, and \"rate\" is \(rate)"
    }
    guard parameters.channels == 1, codec != .pcm || parameters.bits == 16 else {
      return "the reply has \(parameters.channels) channels of \(parameters.bits) bits, and not one of 16"
    }
    return nil
  }

  /// Why these bytes are discarded, or nil.
  func problem(with bytes: [UInt8]) -> String? {
    if problem == nil { problem = content(bytes) }
    return problem
  }

  private func content(_ bytes: [UInt8]) -> String? {
    switch codec {
    case .mp3:
      hasHeader = hasHeader || bytes.starts(with: "ID3".utf8) || Self.hasHeader(bytes)
      return hasHeader || bytes.count < Self.longestFrame ? nil : "the reply is no MP3"
    case .opus where bytes.count > TuyaResolution.packetBytes:
      return "\(bytes.count) bytes are not an Opus packet"
    default: return nil
    }
  }

  /// True when a frame of layer III may begin in these bytes. Source: ISO/IEC 11172-3, section 2.4.1.3.
  private static func hasHeader(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 4 else { return false }
    return (0...bytes.count - 4).contains { index in
      let (second, third) = (bytes[index + 1], bytes[index + 2])
      return bytes[index] == 0xFF && second & 0xE6 == 0xE2 && second & 0x18 != 0x08
        && third & 0xF0 != 0xF0 && third & 0xF0 != 0 && third & 0x0C != 0x0C
    }
  }
}
