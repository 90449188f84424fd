/// Padding by RFC 5652 section 6.3, for protocols that pad although their cipher takes any length. `AESCBC` pads by itself.
///
/// Callable from any thread. Allocates.
public enum PKCS7 {
  /// The length of a block: that of AES.
  public static let blockBytes = 16

  /// Returns a message with padding up to a whole block: 1 to 16 bytes whose value is their number.
  public static func padded(_ message: Span<UInt8>) -> [UInt8] {
    let count = blockBytes - message.count % blockBytes
    return [UInt8](capacity: message.count + count) { output in
      for index in message.indices { output.append(message[index]) }
      output.append(repeating: UInt8(count), count: count)
    }
  }

  /// Returns a message without its padding, which is checked in a time that depends only on the length.
  ///
  /// - Throws: `padding` when the message is empty, is not whole blocks, or does not end in valid padding.
  public static func unpadded(_ padded: Span<UInt8>) throws(CryptoError) -> [UInt8] {
    guard !padded.isEmpty, padded.count.isMultiple(of: blockBytes) else { throw .padding("PKCS#7") }
    let last = padded[padded.count - 1]
    var wrong = mask(last, isAtMost: 0) | mask(UInt8(blockBytes) + 1, isAtMost: last)
    // Every byte of the block counts, whatever the last one says.
    for distance in 1...blockBytes {
      wrong |= mask(UInt8(distance), isAtMost: last) & (padded[padded.count - distance] ^ last)
    }
    guard wrong == 0 else { throw .padding("PKCS#7") }
    let count = padded.count - Int(last)
    return [UInt8](capacity: count) { output in
      for index in 0..<count { output.append(padded[index]) }
    }
  }

  /// All ones when `value` is at most `limit`, otherwise 0, without a branch.
  private static func mask(_ value: UInt8, isAtMost limit: UInt8) -> UInt8 {
    UInt8(truncatingIfNeeded: (Int(value) - Int(limit) - 1) >> (Int.bitWidth - 1))
  }
}
