/// A packet as a program gets it from a sink: a value of its own that holds nothing of the graph.
public struct GraphPacket: Sendable, Hashable {
  /// What it carries.
  public let format: Format
  /// The content: PCM interleaved in the machine's byte order, one encoded packet or picture, UTF-8 text.
  public let bytes: [UInt8]
  /// When its first sample was captured or is due, since the graph's start.
  public let time: Duration
  /// Position of its first sample since the stream's start, in samples of each channel at the format's rate. 0 where the format has none.
  public let position: Int64
  /// Samples of each channel it stands for; 0 where the format has none.
  public let sampleCount: Int
  /// Marks.
  public let flags: PacketFlags

  /// Nothing more of this utterance comes.
  public var endsUtterance: Bool { flags.contains(.endOfUtterance) }
  /// Something is missing in front of it.
  public var isDiscontinuous: Bool { flags.contains(.discontinuity) }
  /// It stands for media that was lost, and has no bytes.
  public var isLost: Bool { flags.contains(.lost) }

  /// The content as text; invalid UTF-8 is repaired.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The content as samples of a type, such as `Int16` for s16 and `Float` for f32; a remainder shorter than one is left out. Copies.
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

  /// A copy of a packet.
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
