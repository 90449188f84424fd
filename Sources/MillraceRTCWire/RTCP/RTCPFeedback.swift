/// The head that all feedback packets have (RFC 4585, section 6.1).
enum RTCPFeedbackHead {
  /// Bytes of the head: header, sender and media source.
  static let size = 12

  static func check(_ bytes: Span<UInt8>, content: Int, at start: Int) throws(RTCPProblem) {
    guard bytes.count >= size + content else { throw .contentCut(type: bytes[1], at: start) }
  }
}

/// Generic NACK: packets that are requested once more (RFC 4585, section 6.2.1).
public struct RTCPNack: ~Escapable {
  /// The source of the feedback.
  public let sender: UInt32
  /// The source whose packets are requested.
  public let media: UInt32
  private let entries: Span<UInt8>

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, at start: Int) throws(RTCPProblem) {
    try RTCPFeedbackHead.check(bytes, content: 4, at: start)
    sender = bytes.uint32(at: 4)
    media = bytes.uint32(at: 8)
    entries = bytes.extracting(RTCPFeedbackHead.size...)
  }

  /// The sequence numbers that are requested, from the first.
  public var sequences: Sequences {
    @_lifetime(copy self) get { Sequences(entries) }
  }

  /// Gives the requested sequence numbers, in the order of the wire. A hostile packet repeats numbers: an answer limits that.
  public struct Sequences: ~Escapable {
    private let entries: Span<UInt8>
    private var offset = 0
    private var base: UInt16 = 0
    /// The packets after the base that are still to be given: bit 0 is the one after it.
    private var rest: UInt16 = 0

    @_lifetime(copy entries)
    fileprivate init(_ entries: Span<UInt8>) { self.entries = entries }

    /// The next sequence number; nil: there is no other.
    public mutating func next() -> UInt16? {
      if rest != 0 {
        let bit = rest.trailingZeroBitCount
        rest &= rest - 1
        return base &+ 1 &+ UInt16(bit)
      }
      guard offset + 4 <= entries.count else { return nil }
      base = entries.uint16(at: offset)
      rest = entries.uint16(at: offset + 2)
      offset += 4
      return base
    }
  }
}

extension RTCPPictureLoss {
  init(_ bytes: Span<UInt8>, at start: Int) throws(RTCPProblem) {
    try RTCPFeedbackHead.check(bytes, content: 0, at: start)
    self.init(sender: bytes.uint32(at: 4), media: bytes.uint32(at: 8))
  }
}

/// FIR: sources that are to send a key frame (RFC 5104, section 4.3.1).
public struct RTCPFullIntraRequest: ~Escapable {
  /// One request. A number that was seen before is a repetition and is not answered again.
  public struct Entry: Sendable, Equatable {
    /// The source that is to send a key frame.
    public var media: UInt32
    /// The number of the request.
    public var number: UInt8

    /// Creates a request.
    public init(media: UInt32, number: UInt8) {
      self.media = media
      self.number = number
    }
  }

  /// Bytes of an entry.
  static let entrySize = 8

  /// The source of the feedback.
  public let sender: UInt32
  private let entries: Span<UInt8>

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, at start: Int) throws(RTCPProblem) {
    try RTCPFeedbackHead.check(bytes, content: Self.entrySize, at: start)
    sender = bytes.uint32(at: 4)
    entries = bytes.extracting(RTCPFeedbackHead.size...)
  }

  /// The number of requests.
  public var count: Int { entries.count / Self.entrySize }

  /// The request at an index from 0 to `count` - 1.
  public subscript(index: Int) -> Entry {
    let offset = index * Self.entrySize
    return Entry(media: entries.uint32(at: offset), number: entries[offset + 4])
  }
}

/// REMB: the bitrate that the receiver estimates for all of these sources together (draft-alvestrand-rmcat-remb-03, section 2.2).
public struct RTCPBitrateEstimate: ~Escapable {
  /// `REMB` in ASCII.
  static let identifier: UInt32 = 0x5245_4D42
  /// Bytes without sources.
  static let size = 20
  /// Bits of the mantissa.
  static let mantissaBits = 18

  /// The source of the feedback.
  public let sender: UInt32
  /// The estimate in bits per second.
  public let bitrate: UInt64
  private let sources: Span<UInt8>

  /// True: this application layer feedback is REMB.
  static func isKind(of bytes: Span<UInt8>) -> Bool {
    bytes.count >= size && bytes.uint32(at: RTCPFeedbackHead.size) == identifier
  }

  /// `isKind(of:)` is true.
  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, at start: Int) throws(RTCPProblem) {
    sender = bytes.uint32(at: 4)
    let end = Self.size + 4 * Int(bytes[16])
    guard end <= bytes.count else { throw .contentCut(type: bytes[1], at: start) }
    let mantissa = UInt64(bytes.uint24(at: 17) & 0x3_FFFF)
    let exponent = Int(bytes[17] >> 2)
    guard mantissa == 0 || exponent <= mantissa.leadingZeroBitCount else {
      throw .contentInvalid(type: bytes[1], at: start)
    }
    bitrate = mantissa << UInt64(exponent)
    sources = bytes.extracting(Self.size..<end)
  }

  /// The number of sources.
  public var count: Int { sources.count / 4 }

  /// The source at an index from 0 to `count` - 1.
  public subscript(index: Int) -> UInt32 { sources.uint32(at: 4 * index) }
}
