public import MillraceCore

/// A packet's content and metadata as a plain value: one collected from an output, or one to push.
public struct CapturedPacket: Sendable, Hashable {
  /// The content.
  public var bytes: [UInt8]
  /// Its time on the bench's clock, in nanoseconds.
  public var timestamp: Nanoseconds
  /// Its position, in samples since the stream's start.
  public var position: Int64
  /// Its length in samples per channel.
  public var duration: Int
  /// Samples per channel to discard at its start.
  public var trimStart: Int
  /// Samples per channel to discard at its end.
  public var trimEnd: Int
  /// The reply it belongs to.
  public var generation: UInt32
  /// Its flags.
  public var flags: PacketFlags

  /// Creates a packet to push or to compare with; everything left out is 0.
  public init(
    bytes: [UInt8], timestamp: Nanoseconds = 0, position: Int64 = 0, duration: Int = 0, trimStart: Int = 0,
    trimEnd: Int = 0, generation: UInt32 = 0, flags: PacketFlags = []
  ) {
    self.bytes = bytes
    self.timestamp = timestamp
    self.position = position
    self.duration = duration
    self.trimStart = trimStart
    self.trimEnd = trimEnd
    self.generation = generation
    self.flags = flags
  }

  /// Copies a packet.
  public init(_ packet: borrowing Packet) {
    let content = packet.samples(of: UInt8.self)
    bytes = [UInt8](capacity: content.count) { target in
      for index in content.indices { target.append(content[index]) }
    }
    timestamp = packet.timestamp
    position = packet.position
    duration = packet.duration
    trimStart = packet.trimStart
    trimEnd = packet.trimEnd
    generation = packet.generation
    flags = packet.flags
  }

  /// The content as 16-bit samples.
  public var int16: [Int16] { elements(of: Int16.self) }

  /// The content as float samples.
  public var float: [Float] { elements(of: Float.self) }

  /// The content as text; invalid UTF-8 becomes U+FFFD.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  private func elements<S: BitwiseCopyable>(of type: S.Type) -> [S] {
    let count = bytes.count / MemoryLayout<S>.size
    return unsafe [S](unsafeUninitializedCapacity: count) { target, filled in
      unsafe bytes.withUnsafeBytes { source in
        let whole = unsafe UnsafeRawBufferPointer(rebasing: source[..<(count * MemoryLayout<S>.size)])
        unsafe UnsafeMutableRawBufferPointer(target).copyMemory(from: whole)
      }
      filled = count
    }
  }

  /// The bytes of samples in the machine's byte order.
  static func bytes<S: BitwiseCopyable>(of samples: some Collection<S>) -> [UInt8] {
    let array = Array(samples)
    return unsafe array.withUnsafeBytes { unsafe Array($0) }
  }
}
