/// L16 (RFC 3551 section 4.5.11): uncompressed samples of 16 bits in network byte order, channels interleaved.
public enum L16: Sendable {
  /// Bytes of a sample.
  public static let bytesPerSample = 2

  /// Writes samples, as many as there are and the target has room for.
  /// - Returns: the number of bytes written.
  public static func encode(
    _ samples: Span<Int16>, into target: inout MutableSpan<UInt8>, at position: Int = 0
  ) -> Int {
    let count = max(0, min(samples.count, (target.count - position) / bytesPerSample))
    for index in 0..<count {
      target.put(UInt16(bitPattern: samples[index]), at: position + index * bytesPerSample)
    }
    return count * bytesPerSample
  }

  /// Reads samples, as many as there are and the target has room for. An odd last byte is ignored.
  /// - Returns: the number of samples written.
  public static func decode(
    _ bytes: Span<UInt8>, into target: inout MutableSpan<Int16>, at position: Int = 0
  ) -> Int {
    let count = max(0, min(bytes.count / bytesPerSample, target.count - position))
    for index in 0..<count {
      target[position + index] = Int16(bitPattern: bytes.uint16(at: index * bytesPerSample))
    }
    return count
  }
}
