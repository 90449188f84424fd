/// A payload that a packetizer has written.
public struct PacketizedPayload: Sendable, Hashable {
  /// Number of bytes written.
  public let byteCount: Int
  /// The marker bit of the RTP packet: true for the last payload of a frame.
  public let marker: Bool
}

/// Sizes of payloads.
public enum PayloadSize {
  /// Bytes of a payload by default: with the heads of IPv6, UDP, TURN, SRTP and header extensions it fits into 1,500 bytes.
  public static let standard = 1_200
  /// What a packetizer accepts as its limit. Below, headers would outweigh the content; above, a datagram of UDP ends.
  public static let range = 16...65_000
}

/// How a run of bytes is cut into the fewest parts of a maximum size, all equally large or one byte apart.
struct EvenCut: Sendable {
  private var left: Int
  private var parts: Int

  /// - Parameters:
  ///   - count: bytes to cut.
  ///   - maximum: bytes of a part, at least 1.
  init(_ count: Int, maximum: Int) {
    left = count
    parts = (count + maximum - 1) / maximum
  }

  /// The size of the next part; 0 after the last.
  mutating func next() -> Int {
    guard parts > 0 else { return 0 }
    let size = (left + parts - 1) / parts
    left -= size
    parts -= 1
    return size
  }

  /// True when no part is left.
  var isDone: Bool { parts == 0 }
}
