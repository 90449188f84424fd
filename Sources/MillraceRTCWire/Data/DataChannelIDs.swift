/// The SCTP streams of the data channels of a connection: which are in use, and which is free for the next channel (RFC 8832 section 6).
///
/// A channel uses the stream of one number in both directions. So that two sides do not choose the same, the DTLS client opens channels
/// on even streams and the server on odd ones. A stream is free again once both directions were reset. Allocates at `init` only.
public struct DataChannelIDs: Sendable {
  /// The part of this side in the DTLS handshake.
  public enum Role: Sendable, Hashable {
    /// Opens even streams.
    case client
    /// Opens odd streams.
    case server

    var parity: UInt16 { self == .client ? 0 : 1 }
  }

  /// The most streams: 65,535 is not a valid number (RFC 8832 section 6).
  public static let maximumLimit = 65_535

  /// Number of streams of the association.
  public let limit: Int
  /// Number of streams in use.
  public private(set) var count = 0
  private let role: Role
  /// A bit for each stream, the lowest first.
  private var used: [UInt64]

  /// - Parameters:
  ///   - role: of this side.
  ///   - limit: streams of the association, the smaller of both directions; at most 65,535.
  public init(role: Role, limit: Int = maximumLimit) {
    self.role = role
    self.limit = min(max(limit, 0), Self.maximumLimit)
    used = Array(repeating: 0, count: (self.limit + 63) / 64)
  }

  /// Takes the lowest free stream of this side; nil: all are in use.
  public mutating func allocate() -> UInt16? {
    let mine: UInt64 = role == .client ? 0x5555_5555_5555_5555 : 0xAAAA_AAAA_AAAA_AAAA
    for index in used.indices {
      let free = ~used[index] & mine
      guard free != 0 else { continue }
      let id = index * 64 + free.trailingZeroBitCount
      guard id < limit else { return nil }
      mark(UInt16(id))
      return UInt16(id)
    }
    return nil
  }

  /// Takes the stream on which the peer opens a channel.
  /// - Throws: when it does not exist, has the parity of this side, or is in use.
  public mutating func accept(_ id: UInt16) throws(DataChannelProblem) {
    guard id % 2 != role.parity else { throw .wrongParity(id) }
    try reserve(id)
  }

  /// Takes a stream that both applications have agreed upon, of either parity.
  /// - Throws: when it does not exist, or is in use.
  public mutating func reserve(_ id: UInt16) throws(DataChannelProblem) {
    guard Int(id) < limit else { throw .streamBeyondLimit(id, limit: limit) }
    guard !isInUse(id) else { throw .streamInUse(id) }
    mark(id)
  }

  /// Returns a stream whose both directions were reset. One that is not in use is ignored.
  public mutating func release(_ id: UInt16) {
    guard isInUse(id) else { return }
    used[Int(id) / 64] &= ~(1 << UInt64(id % 64))
    count -= 1
  }

  /// True when a channel has the stream.
  public func isInUse(_ id: UInt16) -> Bool {
    Int(id) < limit && used[Int(id) / 64] >> UInt64(id % 64) & 1 == 1
  }

  private mutating func mark(_ id: UInt16) {
    used[Int(id) / 64] |= 1 << UInt64(id % 64)
    count += 1
  }
}
