/// Writes RTCP packets one after another into the bytes of a datagram, without a heap request (RFC 3550, section 6).
///
/// The order is the owner's: a compound begins with a report, then the description with the canonical name (RFC 3550,
/// section 6.1); in reduced size any packet may be alone (RFC 5506). A call that throws leaves what was written before.
public struct RTCPWriter: ~Copyable, ~Escapable {
  /// The most blocks of a report, and sources of another packet (RFC 3550, section 6.4.1).
  public static let largestCount = 31

  var bytes: MutableSpan<UInt8>
  /// Bytes written so far.
  public private(set) var count = 0
  /// Where the last packet begins, if it is a report.
  private var report: Int?

  /// Creates a writer that begins at the first byte of a destination.
  @_lifetime(copy bytes)
  public init(_ bytes: consuming MutableSpan<UInt8>) { self.bytes = bytes }

  /// Bytes that remain.
  public var room: Int { bytes.count - count }

  /// Writes a sender report without blocks; `add` adds them.
  public mutating func senderReport(_ info: RTCPSenderInfo) throws(RTCPProblem) {
    let start = try begin(.senderReport, 0, size: RTCPSenderInfo.size)
    bytes.put(info.ssrc, at: start + 4)
    bytes.put(info.time.rawValue, at: start + 8)
    bytes.put(info.timestamp, at: start + 16)
    bytes.put(info.packets, at: start + 20)
    bytes.put(info.octets, at: start + 24)
    report = start
  }

  /// Writes a receiver report without blocks; `add` adds them.
  public mutating func receiverReport(ssrc: UInt32) throws(RTCPProblem) {
    let start = try begin(.receiverReport, 0, size: RTCPReceiverReport.size)
    bytes.put(ssrc, at: start + 4)
    report = start
  }

  /// Adds a block to the report that was written last. At most 31 fit; for more, begin another receiver report.
  public mutating func add(_ block: RTCPReportBlock) throws(RTCPProblem) {
    guard let report, bytes[report] & 0x1F < Self.largestCount else { throw .tooManyBlocks }
    guard RTCPReportBlock.size <= room else { throw .noRoom(needed: RTCPReportBlock.size, room: room) }
    block.write(into: &bytes, at: count)
    count += RTCPReportBlock.size
    bytes[report] += 1
    bytes.put(UInt16((count - report) / 4 - 1), at: report + 2)
  }

  /// Writes a source description with the canonical name of a source, at most 255 bytes in UTF-8 (RFC 3550, section 6.5.1).
  public mutating func sourceDescription(ssrc: UInt32, canonicalName: String) throws(RTCPProblem) {
    let length = canonicalName.utf8.count
    guard length <= 255 else { throw .textTooLong(bytes: length) }
    // Header, source, kind and length, text, and one to four zeros.
    let start = try begin(.sourceDescription, 1, size: (10 + length) / 4 * 4 + 4)
    bytes.put(ssrc, at: start + 4)
    bytes[start + 8] = RTCPSourceItem.canonicalName
    bytes[start + 9] = UInt8(length)
    put(canonicalName, at: start + 10)
  }

  /// Writes that a source leaves, with a reason of at most 255 bytes in UTF-8 (RFC 3550, section 6.6).
  public mutating func goodbye(ssrc: UInt32, reason: String = "") throws(RTCPProblem) {
    let length = reason.utf8.count
    guard length <= 255 else { throw .textTooLong(bytes: length) }
    let start = try begin(.goodbye, 1, size: 8 + (length > 0 ? (length + 4) / 4 * 4 : 0))
    bytes.put(ssrc, at: start + 4)
    guard length > 0 else { return }
    bytes[start + 8] = UInt8(length)
    put(reason, at: start + 9)
  }

  // MARK: Parts

  /// Writes a header and zeros, and gives where the packet begins. The size is a multiple of four.
  mutating func begin(_ type: RTCPType, _ format: UInt8, size: Int) throws(RTCPProblem) -> Int {
    guard size <= room else { throw .noRoom(needed: size, room: room) }
    let start = count
    bytes[start] = 0x80 | format
    bytes[start + 1] = type.rawValue
    bytes.put(UInt16(size / 4 - 1), at: start + 2)
    for index in start + RTCPReader.headerSize..<start + size { bytes[index] = 0 }
    count += size
    report = nil
    return start
  }

  private mutating func put(_ text: String, at offset: Int) {
    var position = offset
    for byte in text.utf8 {
      bytes[position] = byte
      position += 1
    }
  }
}
