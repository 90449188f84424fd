/// A group of cells that one worker runs, as seen by links from outside: something that can be told a cell has work.
///
/// Only an engine makes one: it is `open` because the engine's module subclasses it, and its initialiser is for this package.
/// `wake` may be called from any thread and must be a read-modify-write that publishes: a plain
/// load of the state loses wake-ups.
open class RemoteWake: @unchecked Sendable {
  /// For subclasses.
  package init() {}
  /// Cell `index` of the group has work. Any thread; no lock, no allocation.
  open func wake(_ index: Int) { fatalError("a subclass answers wake") }
}

/// How one end of a link tells the cell at the other end that there is work.
///
/// Ends on the same worker set a bit; ends on different workers go through the group's `RemoteWake`, at once, or at the end of
/// the caller's turn: then the bit goes into a word of what the caller's group still has to tell.
@unsafe
@usableFromInline package struct Wake {
  @usableFromInline let word: UnsafeMutablePointer<UInt64>?
  @usableFromInline let bit: UInt64
  @usableFromInline let remote: Unmanaged<RemoteWake>?
  @usableFromInline let index: Int

  /// For a cell of the same worker: its bit in the worker's ready words.
  @inlinable package init(word: UnsafeMutablePointer<UInt64>, bit: UInt64) {
    unsafe self.word = unsafe word
    unsafe self.bit = bit
    unsafe remote = nil
    unsafe index = 0
  }

  /// For a cell of another worker that need not hear of single packets: `mark` notes its bit in `word`, and the caller's group
  /// tells the other one before it rests.
  @inlinable
  package init(
    word: UnsafeMutablePointer<UInt64>, bit: UInt64, remote: Unmanaged<RemoteWake>, index: Int
  ) {
    unsafe self.word = unsafe word
    unsafe self.bit = bit
    unsafe self.remote = unsafe remote
    unsafe self.index = index
  }

  /// For a cell of another worker.
  @inlinable package init(remote: Unmanaged<RemoteWake>, index: Int) {
    unsafe word = nil
    unsafe bit = 0
    unsafe self.remote = unsafe remote
    unsafe self.index = index
  }

  /// True when the other end belongs to another worker.
  @inlinable package var isRemote: Bool { unsafe remote != nil }

  /// True when `mark` waits for the end of the caller's turn.
  @inlinable package var isPatient: Bool { unsafe word != nil && remote != nil }

  /// Marks the cell ready.
  @inlinable package func mark() {
    if let word = unsafe word {
      unsafe word.pointee |= bit
    } else {
      unsafe markNow()
    }
  }

  /// Marks the cell ready without waiting for the end of a turn.
  @inlinable package func markNow() {
    if let remote = unsafe remote {
      let index = unsafe self.index
      unsafe remote._withUnsafeGuaranteedRef { $0.wake(index) }
    } else {
      unsafe mark()
    }
  }
}

/// A way for threads and tasks outside the graph to make the engine call a node's `process`.
///
/// For nodes with drive `itself` that talk to a process, a socket or a device on a thread of their own: exchange data
/// through a `Ring`, then `wake`. Any thread may call it, also after the graph has stopped (then nothing happens).
public struct Waker: Sendable {
  private let group: RemoteWake?
  private let index: Int

  /// Wakes a cell of a group.
  package init(_ group: RemoteWake, index: Int) {
    self.group = group
    self.index = index
  }

  private init() {
    group = nil
    index = 0
  }

  /// Wakes nobody: for setups made by hand.
  public static let none = Waker()

  /// Asks for a call of `process`. No lock, no allocation; a few nanoseconds, or a thread wake-up when the worker sleeps.
  public func wake() {
    group?.wake(index)
  }
}
