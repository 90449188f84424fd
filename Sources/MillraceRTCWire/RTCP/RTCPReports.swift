/// What a receiver says about one source (RFC 3550, section 6.4.1).
public struct RTCPReportBlock: Sendable, Equatable {
  /// Bytes of a block.
  static let size = 24

  /// The source that the block is about.
  public var ssrc: UInt32
  /// Packets lost since the last report, in 1/256 of those expected.
  public var fractionLost: UInt8
  /// Packets lost in all, -8,388,608 to 8,388,607; negative: more came twice than were lost.
  public var lost: Int32
  /// The highest sequence number, with the number of wraps above its 16 bits.
  public var highest: UInt32
  /// The jitter in timestamp units.
  public var jitter: UInt32
  /// LSR: the middle 32 bits of the last sender report's time; 0: none came.
  public var lastReport: UInt32
  /// DLSR: the time since that report came, in 1/65,536 s.
  public var delay: UInt32

  /// Creates a block.
  public init(
    ssrc: UInt32, fractionLost: UInt8 = 0, lost: Int32 = 0, highest: UInt32 = 0, jitter: UInt32 = 0,
    lastReport: UInt32 = 0, delay: UInt32 = 0
  ) {
    self.ssrc = ssrc
    self.fractionLost = fractionLost
    self.lost = lost
    self.highest = highest
    self.jitter = jitter
    self.lastReport = lastReport
    self.delay = delay
  }

  init(_ bytes: Span<UInt8>, at offset: Int) {
    // The count has 24 bits; shifted to the top and back it keeps its sign.
    let lost = Int32(bitPattern: bytes.uint24(at: offset + 5) << 8) >> 8
    self.init(
      ssrc: bytes.uint32(at: offset), fractionLost: bytes[offset + 4], lost: lost,
      highest: bytes.uint32(at: offset + 8), jitter: bytes.uint32(at: offset + 12),
      lastReport: bytes.uint32(at: offset + 16), delay: bytes.uint32(at: offset + 20))
  }

  func write(into bytes: inout MutableSpan<UInt8>, at offset: Int) {
    bytes.put(ssrc, at: offset)
    bytes[offset + 4] = fractionLost
    bytes.put24(UInt32(bitPattern: max(-0x80_0000, min(0x7F_FFFF, lost))), at: offset + 5)
    bytes.put(highest, at: offset + 8)
    bytes.put(jitter, at: offset + 12)
    bytes.put(lastReport, at: offset + 16)
    bytes.put(delay, at: offset + 20)
  }
}

/// What a sender says about itself (RFC 3550, section 6.4.1).
public struct RTCPSenderInfo: Sendable, Equatable {
  /// Bytes of a sender report without blocks.
  static let size = 28

  /// The source.
  public var ssrc: UInt32
  /// The wall-clock time of the report.
  public var time: NTPTime
  /// The RTP timestamp of the same instant.
  public var timestamp: UInt32
  /// Packets sent, modulo 2³².
  public var packets: UInt32
  /// Payload bytes sent, modulo 2³².
  public var octets: UInt32

  /// Creates a sender's information.
  public init(ssrc: UInt32, time: NTPTime, timestamp: UInt32, packets: UInt32, octets: UInt32) {
    self.ssrc = ssrc
    self.time = time
    self.timestamp = timestamp
    self.packets = packets
    self.octets = octets
  }
}

/// SR: a sender's information and its report blocks.
public struct RTCPSenderReport: ~Escapable {
  /// What the sender says about itself.
  public let info: RTCPSenderInfo
  /// The report blocks.
  public let blocks: RTCPReportBlocks

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, _ count: Int, at start: Int) throws(RTCPProblem) {
    let size = RTCPSenderInfo.size
    guard bytes.count >= size else {
      throw .contentCut(type: RTCPType.senderReport.rawValue, at: start)
    }
    info = RTCPSenderInfo(
      ssrc: bytes.uint32(at: 4), time: NTPTime(rawValue: bytes.uint64(at: 8)),
      timestamp: bytes.uint32(at: 16), packets: bytes.uint32(at: 20), octets: bytes.uint32(at: 24))
    blocks = try RTCPReportBlocks(bytes, after: size, count, at: start)
  }
}

/// RR: the report blocks of a receiver (RFC 3550, section 6.4.2).
public struct RTCPReceiverReport: ~Escapable {
  /// Bytes of a receiver report without blocks.
  static let size = 8

  /// The source of the report.
  public let ssrc: UInt32
  /// The report blocks.
  public let blocks: RTCPReportBlocks

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, _ count: Int, at start: Int) throws(RTCPProblem) {
    guard bytes.count >= Self.size else {
      throw .contentCut(type: RTCPType.receiverReport.rawValue, at: start)
    }
    ssrc = bytes.uint32(at: 4)
    blocks = try RTCPReportBlocks(bytes, after: Self.size, count, at: start)
  }
}

/// The blocks of a report, at most 31.
public struct RTCPReportBlocks: ~Escapable {
  private let bytes: Span<UInt8>

  /// Takes the blocks of a report. What follows them is an extension of a profile, and is ignored.
  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, after offset: Int, _ count: Int, at start: Int) throws(RTCPProblem) {
    let end = offset + RTCPReportBlock.size * count
    guard end <= bytes.count else { throw .contentCut(type: bytes[1], at: start) }
    self.bytes = bytes.extracting(offset..<end)
  }

  /// The number of blocks.
  public var count: Int { bytes.count / RTCPReportBlock.size }

  /// The block at an index from 0 to `count` - 1.
  public subscript(index: Int) -> RTCPReportBlock {
    RTCPReportBlock(bytes, at: index * RTCPReportBlock.size)
  }

  /// The first block about a source; nil: there is none.
  public func block(about ssrc: UInt32) -> RTCPReportBlock? {
    for index in 0..<count where bytes.uint32(at: index * RTCPReportBlock.size) == ssrc { return self[index] }
    return nil
  }
}
