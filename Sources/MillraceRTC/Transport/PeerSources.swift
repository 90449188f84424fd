/// The sources of RTP and RTCP of a peer. libsrtp keeps a context for each, so that without a limit a peer could use up the memory.
struct PeerSources {
  /// Sources that a peer may have.
  private static let most = 128

  /// Those whose packets were decrypted.
  private var sources: [UInt32] = []
  /// Those of them that have ended, oldest first.
  private var ended: [UInt32] = []

  var isFull: Bool { sources.count >= Self.most }
  /// There is room, or one that has ended makes room.
  var canTakeAnother: Bool { !isFull || !ended.isEmpty }

  /// By hand, because it is asked for every packet: iterating an array makes a heap request an element in debug builds.
  func contains(_ source: UInt32) -> Bool {
    for index in sources.indices where sources[index] == source { return true }
    return false
  }

  /// Adds a source that is not there yet.
  mutating func insert(_ source: UInt32) { sources.append(source) }

  /// Notes that a source has ended; one that is not there is ignored.
  mutating func end(_ source: UInt32) {
    if sources.contains(source) && !ended.contains(source) { ended.append(source) }
  }

  /// Removes the source that ended first. Nil: none has.
  mutating func removeEnded() -> UInt32? {
    guard !ended.isEmpty else { return nil }
    let oldest = ended.removeFirst()
    sources.removeAll { $0 == oldest }
    return oldest
  }
}
