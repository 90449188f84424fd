internal import MillraceCore

/// Payloads that came before others that are still missing, by their number. All memory is requested by `init` and touched as far as
/// packets had to wait.
@safe
struct ReorderBuffer: ~Copyable {
  /// Payloads that wait at most; further apart no packets are (`RTPReceiverStatistics.largestMisorder`).
  static let slots: Int64 = 512
  /// Bytes of the largest payload that waits: what a network carries in one piece.
  static let slotBytes = 1_500

  /// What is known of a payload besides its bytes.
  struct Head {
    var number: Int64
    var timestamp: Int64
    var payloadType: UInt8
    var marker: Bool
    /// It begins a key frame.
    var beginsKey: Bool
    var arrival: Nanoseconds
    var count: Int
  }

  private var heads: [Head?]
  private let memory: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init() {
    heads = [Head?](repeating: nil, count: Int(Self.slots))
    unsafe memory = .allocate(byteCount: Int(Self.slots) * Self.slotBytes, alignment: 8)
  }

  deinit { unsafe memory.deallocate() }

  var isEmpty: Bool { count == 0 }

  /// Keeps a payload. False: it is there, or too large. The numbers that are kept lie within `slots`.
  mutating func put(_ payload: Span<UInt8>, _ head: Head) -> Bool {
    let place = Self.place(head.number)
    guard heads[place] == nil, payload.count <= Self.slotBytes else { return false }
    let start = place * Self.slotBytes
    let target = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + Self.slotBytes])
    unsafe payload.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    var head = head
    head.count = payload.count
    heads[place] = head
    count += 1
    return true
  }

  /// The head of a number; nil: it is not there.
  func head(_ number: Int64) -> Head? {
    guard count > 0, let head = heads[Self.place(number)], head.number == number else { return nil }
    return head
  }

  /// The first from a number on; nil: none.
  func first(from number: Int64) -> Head? {
    guard count > 0 else { return nil }
    // A range of Int: iterating one of Int64 makes heap requests in debug builds.
    for step in 0..<Int(Self.slots) {
      if let head = head(number &+ Int64(step)) { return head }
    }
    return nil
  }

  /// Removes a number, and gives its bytes to a closure.
  mutating func remove(_ head: Head, _ body: (Span<UInt8>) -> Void) {
    let place = Self.place(head.number)
    guard let kept = heads[place], kept.number == head.number else { return }
    heads[place] = nil
    count -= 1
    let start = place * Self.slotBytes
    let filled = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + kept.count])
    let bytes = unsafe filled.bindMemory(to: UInt8.self)
    body(unsafe bytes.span)
  }

  mutating func removeAll() {
    guard count > 0 else { return }
    for place in heads.indices { heads[place] = nil }
    count = 0
  }

  private static func place(_ number: Int64) -> Int {
    Int(truncatingIfNeeded: number & (slots - 1))
  }
}
