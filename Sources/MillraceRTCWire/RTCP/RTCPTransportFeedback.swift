/// Transport-wide feedback: which packets of all streams arrived, and when
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1).
public struct RTCPTransportFeedback: ~Escapable {
  /// Nanoseconds of a unit of the reference time.
  public static let referenceUnit: Int64 = 64_000_000
  /// Nanoseconds of a unit of the deltas.
  public static let deltaUnit: Int64 = 250_000
  /// In a list of arrival times: the packet did not arrive.
  public static let notReceived = Int64.min
  /// Bytes before the chunks.
  static let headSize = 20

  /// What is said about one packet.
  public struct Status: Sendable, Equatable {
    /// The transport-wide sequence number.
    public var sequence: UInt16
    /// When the packet arrived, in nanoseconds after the reference time; nil: it did not arrive.
    public var arrival: Int64?

    /// Creates a status.
    public init(sequence: UInt16, arrival: Int64?) {
      self.sequence = sequence
      self.arrival = arrival
    }
  }

  /// The source of the feedback.
  public let sender: UInt32
  /// A source of the transport; which one has no meaning.
  public let media: UInt32
  /// The transport-wide sequence number of the first packet.
  public let base: UInt16
  /// The number of packets, 1 to 65,535.
  public let count: Int
  /// The reference time in units of 64 ms on the receiver's clock, 24 bits. It wraps after 12 days.
  public let reference: UInt32
  /// The number of this feedback, for finding lost ones.
  public let number: UInt8
  private let chunks: Span<UInt8>
  private let deltas: Span<UInt8>

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, at start: Int) throws(RTCPProblem) {
    try RTCPFeedbackHead.check(bytes, content: 8, at: start)
    sender = bytes.uint32(at: 4)
    media = bytes.uint32(at: 8)
    base = bytes.uint16(at: 12)
    count = Int(bytes.uint16(at: 14))
    reference = bytes.uint24(at: 16)
    number = bytes[19]
    guard count > 0 else { throw .contentInvalid(type: bytes[1], at: start) }
    let end = try Self.deltaStart(bytes, count, at: start)
    chunks = bytes.extracting(Self.headSize..<end)
    deltas = bytes.extracting(end...)
  }

  /// Checks chunks and deltas, and gives where the deltas begin.
  private static func deltaStart(
    _ bytes: Span<UInt8>, _ count: Int, at start: Int
  ) throws(RTCPProblem) -> Int {
    var (position, left, needed) = (headSize, count, 0)
    while left > 0 {
      guard position + 2 <= bytes.count else { throw .contentCut(type: bytes[1], at: start) }
      let chunk = TransportChunk(word: bytes.uint16(at: position))
      guard let size = chunk.deltaBytes(first: min(left, chunk.count)) else {
        throw .contentInvalid(type: bytes[1], at: start)
      }
      (position, left, needed) = (position + 2, left - min(left, chunk.count), needed + size)
    }
    guard position + needed <= bytes.count else { throw .contentCut(type: bytes[1], at: start) }
    return position
  }

  /// What is said about each packet, from the first.
  public var statuses: Statuses {
    @_lifetime(copy self) get { Statuses(chunks, deltas, base, count) }
  }

  /// Gives the statuses in the order of the sequence numbers.
  public struct Statuses: ~Escapable {
    private let chunks: Span<UInt8>
    private let deltas: Span<UInt8>
    private var sequence: UInt16
    private var left: Int
    private var chunk = TransportChunk(word: 0)
    private var indexInChunk = 0
    private var chunkOffset = 0
    private var deltaOffset = 0
    private var time: Int64 = 0

    @_lifetime(copy chunks, copy deltas)
    fileprivate init(_ chunks: Span<UInt8>, _ deltas: Span<UInt8>, _ base: UInt16, _ count: Int) {
      self.chunks = chunks
      self.deltas = deltas
      sequence = base
      left = count
    }

    /// The next status; nil: there is no other.
    public mutating func next() -> Status? {
      guard left > 0 else { return nil }
      while indexInChunk == chunk.count {
        guard chunkOffset + 2 <= chunks.count else { return nil }
        chunk = TransportChunk(word: chunks.uint16(at: chunkOffset))
        (chunkOffset, indexInChunk) = (chunkOffset + 2, 0)
      }
      let symbol = chunk.symbol(at: indexInChunk)
      defer { (left, indexInChunk, sequence) = (left - 1, indexInChunk + 1, sequence &+ 1) }
      guard symbol != TransportSymbol.notReceived else { return Status(sequence: sequence, arrival: nil) }
      time += delta(symbol) * RTCPTransportFeedback.deltaUnit
      return Status(sequence: sequence, arrival: time)
    }

    private mutating func delta(_ symbol: UInt8) -> Int64 {
      if symbol == TransportSymbol.small {
        defer { deltaOffset += 1 }
        return Int64(deltas[deltaOffset])
      }
      defer { deltaOffset += 2 }
      return Int64(Int16(bitPattern: deltas.uint16(at: deltaOffset)))
    }
  }
}

/// The symbols of packets in a chunk (section 3.1.1 of the draft).
enum TransportSymbol {
  /// The packet did not arrive.
  static let notReceived: UInt8 = 0
  /// It arrived, its delta has 8 bits without a sign.
  static let small: UInt8 = 1
  /// It arrived, its delta has 16 bits with a sign.
  static let large: UInt8 = 2

  /// Bytes of the delta; nil: the symbol is reserved.
  static func deltaBytes(_ symbol: UInt8) -> Int? { symbol <= large ? Int(symbol) : nil }
}

/// A chunk: 16 bits that hold the symbols of several packets (sections 3.1.3 and 3.1.4 of the draft).
struct TransportChunk {
  /// The longest run.
  static let longestRun = 0x1FFF
  /// Symbols in a vector of one bit each: not received, or small delta.
  static let bits = 14
  /// Symbols in a vector of two bits each.
  static let pairs = 7

  let word: UInt16

  init(word: UInt16) { self.word = word }

  static func run(_ symbol: UInt8, _ count: Int) -> TransportChunk {
    TransportChunk(word: UInt16(symbol) << 13 | UInt16(count))
  }

  private var isRun: Bool { word & 0x8000 == 0 }
  private var hasPairs: Bool { word & 0x4000 != 0 }

  /// The number of symbols; 0: a run without length.
  var count: Int { isRun ? Int(word & 0x1FFF) : hasPairs ? Self.pairs : Self.bits }

  func symbol(at index: Int) -> UInt8 {
    if isRun { return UInt8(word >> 13 & 3) }
    if hasPairs { return UInt8(word >> UInt16(12 - 2 * index) & 3) }
    return UInt8(word >> UInt16(13 - index) & 1)
  }

  /// Bytes of the deltas of the first symbols; nil: one is reserved.
  func deltaBytes(first count: Int) -> Int? {
    if isRun { return TransportSymbol.deltaBytes(symbol(at: 0)).map { $0 * count } }
    var sum = 0
    for index in 0..<count {
      guard let size = TransportSymbol.deltaBytes(symbol(at: index)) else { return nil }
      sum += size
    }
    return sum
  }
}
