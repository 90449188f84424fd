/// A group of cells run by one worker, as links from other threads see it: the target of their wake-ups.
///
/// Only an engine creates one: the class is `open` because the engine's module subclasses it, and its initialiser is internal to
/// the package. `wake` may be called from any thread and must be a read-modify-write that publishes: with a plain load of the
/// state, wake-ups get lost.
open class RemoteWake: @unchecked Sendable {
  /// For subclasses.
  package init() {}
  /// Cell `index` of the group has work. Any thread; no lock, no allocation.
  open func wake(_ index: Int) { fatalError("a subclass must override wake") }
}

/// How one end of a link wakes the cell at the other end.
///
/// Ends on the same worker set a bit. Ends on different workers call the group's `RemoteWake`, either at once, or deferred to
/// the end of the caller's turn: the bit is then set in a word of pending wake-ups of the caller's group.
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

  /// For a cell of another worker that does not need a wake-up per packet: `mark` sets its bit in `word`, and the caller's group
  /// passes the wake-ups on before it sleeps.
  @inlinable
  package init(
    word: UnsafeMutablePointer<UInt64>, bit: UInt64, remote: Unmanaged<RemoteWake>, index: Int
  ) {
    unsafe self.word = unsafe word
    unsafe self.bit = bit
    unsafe self.remote = unsafe remote
    unsafe self.index = index
  }

  /// For a cell of another worker, woken at once.
  @inlinable package init(remote: Unmanaged<RemoteWake>, index: Int) {
    unsafe word = nil
    unsafe bit = 0
    unsafe self.remote = unsafe remote
    unsafe self.index = index
  }

  /// True when the other end belongs to another worker.
  @inlinable package var isRemote: Bool { unsafe remote != nil }

  /// True when `mark` is deferred to the end of the caller's turn.
  @inlinable package var isDeferred: Bool { unsafe word != nil && remote != nil }

  /// Marks the cell ready.
  @inlinable package func mark() {
    if let word = unsafe word {
      unsafe word.pointee |= bit
    } else {
      unsafe markNow()
    }
  }

  /// Marks the cell ready at once, even when wake-ups are deferred.
  @inlinable package func markNow() {
    if let remote = unsafe remote {
      let index = unsafe self.index
      unsafe remote._withUnsafeGuaranteedRef { $0.wake(index) }
    } else {
      unsafe mark()
    }
  }
}

/// Lets threads and tasks outside the graph make the engine call a node's `process`.
///
/// For nodes with drive `itself` that talk to a process, a socket or a device on a thread of their own: exchange data
/// through a `Ring`, then call `wake`. Any thread may call it, even after the graph has stopped, when it has no effect.
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

  /// Has no effect when it is called: for setups without an engine.
  public static let none = Waker()

  /// Requests a call of `process`. No lock, no allocation; a few nanoseconds, or a thread wake-up when the worker sleeps.
  public func wake() {
    group?.wake(index)
  }
}
