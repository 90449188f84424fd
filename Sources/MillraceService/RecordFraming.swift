/// Why a byte stream is not a sequence of records. It cannot be read any further.
public struct FramingProblem: Error, Sendable, Hashable {
  /// True: a record is longer than this side takes. False: the peer violated the protocol.
  public var isTooLarge: Bool
  /// What is wrong, without content.
  public var text: String

  /// Creates a problem; by default the peer violated the protocol.
  public init(_ text: String, isTooLarge: Bool = false) {
    self.isTooLarge = isTooLarge
    self.text = text
  }
}

/// Cuts a byte stream into records, and writes records to one. One value for each connection; bytes may arrive in pieces of any size.
public protocol RecordFraming: Sendable {
  /// Takes bytes as they arrive, and returns the records that are complete, in order.
  ///
  /// Records in front of an invalid place are returned, and the next call throws. So that this does not have to wait for more bytes, call
  /// again without any until there are no records.
  /// - Throws: when the stream is invalid and every record in front of that place was returned; so does every later call.
  mutating func records(in bytes: [UInt8]) throws(FramingProblem) -> [[UInt8]]
  /// The bytes of a record on the stream.
  mutating func bytes(of record: [UInt8]) -> [UInt8]
  /// True when the stream ends in the middle of a record.
  var isInRecord: Bool { get }
}

/// Records behind their length: four bytes, most significant first.
///
/// Memory is bounded by the largest record and what arrives at once; a longer record ends the stream before any of it is kept.
public struct LengthFraming: RecordFraming {
  private static let headBytes = 4

  /// The largest record in bytes.
  public let largest: Int
  private var pending: [UInt8] = []
  /// Why nothing more is read.
  private var problem: FramingProblem?

  /// - Parameter largest: bytes of the largest record.
  public init(largest: Int) { self.largest = max(0, min(largest, Int(Int32.max))) }

  public var isInRecord: Bool { !pending.isEmpty }

  public mutating func records(in bytes: [UInt8]) throws(FramingProblem) -> [[UInt8]] {
    if let problem { throw problem }
    pending += bytes
    var result: [[UInt8]] = []
    var start = 0
    while pending.count - start >= Self.headBytes {
      let count = pending[start..<start + Self.headBytes].reduce(0) { $0 << 8 | Int($1) }
      guard count <= largest else {
        let problem = FramingProblem(
          "a record of \(count) bytes exceeds the limit of \(largest)", isTooLarge: true)
        self.problem = problem
        pending = []
        if result.isEmpty { throw problem }
        return result
      }
      let end = start + Self.headBytes + count
      guard end <= pending.count else { break }
      result.append(Array(pending[start + Self.headBytes..<end]))
      start = end
    }
    pending.removeFirst(start)
    return result
  }

  public mutating func bytes(of record: [UInt8]) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: record.count >> $0) } + record
  }
}
