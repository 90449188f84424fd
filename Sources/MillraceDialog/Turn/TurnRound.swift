/// Which reply an event of the service concerns: the vendor's `round`, reduced to a number, so that comparing it takes no memory.
public struct TurnRound: Sendable, Hashable {
  /// The service does not say.
  public static let unknown = TurnRound(hash: 0)

  private let hash: UInt64

  private init(hash: UInt64) { self.hash = hash }

  /// The round with this id.
  public init(_ id: String) {
    var hash = Hash()
    for byte in id.utf8 { hash.add(byte) }
    self.init(hash: hash.value)
  }

  /// The round with this id, as it stands in JSON. An id with escapes is another one than the same id without: a service writes each always
  /// in the same way.
  init(_ id: Span<UInt8>) {
    var hash = Hash()
    for index in id.indices { hash.add(id[index]) }
    self.init(hash: hash.value)
  }

  /// FNV-1a with 64 bits, by Fowler, Noll and Vo; 0 is reserved for `unknown`.
  private struct Hash {
    private var state: UInt64 = 0xCBF2_9CE4_8422_2325
    var value: UInt64 { state == 0 ? 1 : state }
    mutating func add(_ byte: UInt8) { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
  }
}

/// The rounds of the reply that is here and of the one before: what arrives late of an older reply must not end a newer one.
struct ReplyRounds: Sendable {
  private var current = TurnRound.unknown
  private var last = TurnRound.unknown
  /// Several replies follow each other without a pause: an event of any of them counts.
  private var isJoined = false

  /// A reply begins.
  mutating func begin(_ round: TurnRound) {
    end()
    current = round
  }

  /// The service announces a reply while one is here: the same again, or the next one.
  mutating func announce(_ round: TurnRound, isNext: Bool) {
    guard !isJoined else { return }
    if isNext || current != .unknown && round != .unknown && round != current {
      isJoined = true
      current = .unknown
    } else if current == .unknown {
      current = round
    }
  }

  /// The reply has ended here.
  mutating func end() {
    if current != .unknown { last = current }
    current = .unknown
    isJoined = false
  }

  /// True when an event with this round belongs to another reply than the one here.
  func isStale(_ round: TurnRound) -> Bool {
    guard round != .unknown else { return false }
    return current == .unknown ? round == last : round != current
  }
}
