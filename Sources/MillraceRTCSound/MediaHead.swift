/// The head of a record: plain values.
package protocol MediaHead: BitwiseCopyable {}

extension MediaHead {
  /// Copies a head to the beginning of a record.
  package func store(to bytes: UnsafeMutablePointer<UInt8>) {
    unsafe UnsafeMutableRawPointer(bytes).storeBytes(of: self, as: Self.self)
  }

  /// Reads a head from the beginning of a record, which holds at least its size.
  package static func load(_ bytes: UnsafeBufferPointer<UInt8>) -> Self? {
    guard bytes.count >= MemoryLayout<Self>.size else { return nil }
    return unsafe UnsafeRawBufferPointer(bytes).loadUnaligned(as: Self.self)
  }
}
