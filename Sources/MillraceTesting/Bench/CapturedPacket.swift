public import MillraceCore

/// A packet's content and marks as plain values: what a bench collected from an output, or what it is to push.
public struct CapturedPacket: Sendable, Hashable {
  /// Its content.
  public var bytes: [UInt8]
  /// Nanoseconds on the bench's clock.
  public var timestamp: Nanoseconds
  /// Samples since the stream's start.
  public var position: Int64
  /// Samples per channel.
  public var duration: Int
  /// Samples per channel at its beginning that are not to be heard.
  public var trimStart: Int
  /// Samples per channel at its end that are not to be heard.
  public var trimEnd: Int
  /// The reply it belongs to.
  public var generation: UInt32
  /// Its marks.
  public var flags: PacketFlags

  /// A packet to push, or to compare with; what is left out is 0.
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

  /// The content as text; bytes that are not UTF-8 show as U+FFFD.
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

  /// The bytes of samples, in the machine's order.
  static func bytes<S: BitwiseCopyable>(of samples: some Collection<S>) -> [UInt8] {
    let array = Array(samples)
    return unsafe array.withUnsafeBytes { unsafe Array($0) }
  }
}
