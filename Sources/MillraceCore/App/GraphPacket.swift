/// A packet that a program receives from a sink: a copy that holds no memory of the graph.
public struct GraphPacket: Sendable, Hashable {
  /// The format of the content.
  public let format: Format
  /// The content: interleaved PCM in the machine's byte order, one encoded packet or picture, or UTF-8 text.
  public let bytes: [UInt8]
  /// When its first sample was captured or is due, since the graph's start.
  public let time: Duration
  /// Position of its first sample since the stream's start, in samples per channel at the format's rate; 0 for formats without samples.
  public let position: Int64
  /// Length in samples per channel; 0 for formats without samples.
  public let sampleCount: Int
  /// The flags of the packet.
  public let flags: PacketFlags

  /// True for the last packet of an utterance.
  public var endsUtterance: Bool { flags.contains(.endOfUtterance) }
  /// True when media is missing before it.
  public var isDiscontinuous: Bool { flags.contains(.discontinuity) }
  /// True when it stands for lost media; it has no bytes.
  public var isLost: Bool { flags.contains(.lost) }

  /// The content as text; invalid UTF-8 is repaired.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// A copy of the content as samples, such as `Int16` for s16 and `Float` for f32; an incomplete last sample is left out.
  public func samples<Sample: BitwiseCopyable>(of type: Sample.Type) -> [Sample] {
    let count = bytes.count / MemoryLayout<Sample>.stride
    return unsafe [Sample](unsafeUninitializedCapacity: count) { buffer, initialized in
      unsafe bytes.withUnsafeBytes {
        unsafe UnsafeMutableRawBufferPointer(buffer).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: $0[..<(count * MemoryLayout<Sample>.stride)]))
      }
      initialized = count
    }
  }

  /// Copies a packet.
  package init(_ packet: borrowing Packet, format: Format) {
    let content = packet.samples(of: UInt8.self)
    bytes = unsafe [UInt8](unsafeUninitializedCapacity: content.count) { buffer, initialized in
      unsafe content.withUnsafeBytes { unsafe UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0) }
      initialized = content.count
    }
    self.format = format
    time = .nanoseconds(packet.timestamp)
    position = packet.position
    sampleCount = packet.duration
    flags = packet.flags
  }
}
