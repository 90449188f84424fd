internal import MillraceCore
internal import Synchronization

/// A set of a run's nodes, written by the control side and read by workers without a lock.
@safe
final class NodeSet: @unchecked Sendable {
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  private let wordCount: Int

  /// An empty set for the nodes 0 ..< `count`.
  init(count: Int) {
    wordCount = (count + 63) / 64
    unsafe words = .allocate(capacity: max(1, wordCount))
    for index in 0..<wordCount { unsafe (words + index).initialize(to: Atomic(0)) }
  }

  deinit { unsafe words.deallocate() }

  /// Replaces the members. Not atomic as a whole: readers may see part of the change. One thread at a time.
  func replace(with nodes: Set<Int>) {
    for index in 0..<wordCount {
      var word: UInt64 = 0
      for bit in 0..<64 where nodes.contains(64 * index + bit) { word |= 1 << UInt64(bit) }
      unsafe words[index].store(word, ordering: .releasing)
    }
  }

  /// Adds a member. Any thread; not concurrently with `replace`.
  func insert(_ node: Int) {
    unsafe words[node >> 6].bitwiseOr(1 << UInt64(node & 63), ordering: .acquiringAndReleasing)
  }

  /// Any thread; one load.
  func contains(_ node: Int) -> Bool {
    unsafe words[node >> 6].load(ordering: .acquiring) & (1 << UInt64(node & 63)) != 0
  }
}

/// The supervisor's decisions about failed nodes, until their workers take them: one word per node, no lock.
@safe
final class FailureDecisions: @unchecked Sendable {
  /// 0: none; 1: isolate; otherwise the address of the replacing executor, retained.
  private let words: UnsafeMutablePointer<Atomic<UInt>>
  private let count: Int
  private static let isolate: UInt = 1

  /// No decisions, for the nodes 0 ..< `count`.
  init(count: Int) {
    self.count = count
    unsafe words = .allocate(capacity: max(1, count))
    for index in 0..<count { unsafe (words + index).initialize(to: Atomic(0)) }
  }

  deinit {
    clear()
    unsafe words.deallocate()
  }

  /// Posts a decision about a node, replacing one that was not taken. Any thread.
  func put(_ decision: GraphRun.FailureDecision, for node: Int) {
    let word: UInt =
      switch decision {
      case .none: 0
      case .isolate: Self.isolate
      case .replace(let executor): unsafe UInt(bitPattern: executor.toOpaque())
      }
    drop(unsafe words[node].exchange(word, ordering: .acquiringAndReleasing))
  }

  /// Takes the decision about a node, including the reference to its executor. One atomic exchange.
  func take(for node: Int) -> GraphRun.FailureDecision {
    let word = unsafe words[node].exchange(0, ordering: .acquiringAndReleasing)
    if word == 0 { return .none }
    if word == Self.isolate { return .isolate }
    return unsafe Self.executor(word).map { unsafe .replace($0) } ?? .none
  }

  /// Releases all decisions that were not taken.
  func clear() { for index in 0..<count { drop(unsafe words[index].exchange(0, ordering: .acquiring)) } }

  private func drop(_ word: UInt) {
    if word > Self.isolate { unsafe Self.executor(word)?.release() }
  }

  private static func executor(_ word: UInt) -> Unmanaged<AnyExecutor>? {
    unsafe UnsafeRawPointer(bitPattern: word).map { unsafe Unmanaged.fromOpaque($0) }
  }
}
