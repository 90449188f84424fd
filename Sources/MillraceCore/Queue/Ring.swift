public import Synchronization

/// The shared memory of a ring: slots and the two published indices.
///
/// Both ends hold it; the last one to go frees the memory and any elements left in it.
@usableFromInline
@safe
final class RingStorage<Element: ~Copyable>: @unchecked Sendable {
  @usableFromInline let slots: UnsafeMutablePointer<Element>
  @usableFromInline let written: UnsafeMutablePointer<Atomic<Int>>
  @usableFromInline let read: UnsafeMutablePointer<Atomic<Int>>
  @usableFromInline let mask: Int
  let indices: UnsafeMutableRawPointer

  /// Bytes between the two indices: two 64-byte lines when threads share the ring, because the prefetcher fetches lines in pairs.
  private static func separation(isShared: Bool) -> Int { isShared ? 128 : MemoryLayout<Int>.stride }

  /// The smallest power of two that holds `minimum` elements, limited to the largest one an `Int` holds.
  private static func capacity(for minimum: Int) -> Int {
    let largest = 1 << (Int.bitWidth - 2)
    var capacity = 1
    while capacity < min(minimum, largest) { capacity *= 2 }
    return capacity
  }

  /// Bytes that a ring's slots and indices would take; `Int.max` on overflow.
  static func byteCount(minimumCapacity: Int, isShared: Bool) -> Int {
    capacity(for: minimumCapacity).multipliedClamped(by: MemoryLayout<Element>.stride)
      .addingClamped(2 * separation(isShared: isShared))
  }

  @usableFromInline
  init(minimumCapacity: Int, isShared: Bool) {
    precondition(minimumCapacity > 0, "a ring's capacity must be at least 1")
    let capacity = Self.capacity(for: minimumCapacity)
    mask = capacity - 1
    unsafe slots = .allocate(capacity: capacity)
    // Indices used by two threads are kept apart; with one thread on both ends they share a line.
    let separation = Self.separation(isShared: isShared)
    unsafe indices = .allocate(byteCount: 2 * separation, alignment: separation)
    unsafe written = indices.bindMemory(to: Atomic<Int>.self, capacity: 1)
    unsafe read = (indices + separation).bindMemory(to: Atomic<Int>.self, capacity: 1)
    unsafe written.initialize(to: Atomic(0))
    unsafe read.initialize(to: Atomic(0))
  }

  deinit {
    var next = unsafe read.pointee.load(ordering: .acquiring)
    let end = unsafe written.pointee.load(ordering: .acquiring)
    while next != end {
      unsafe (slots + (next & mask)).deinitialize(count: 1)
      next &+= 1
    }
    unsafe slots.deallocate()
    unsafe indices.deallocate()
  }
}

/// The writing end of a ring. One thread at a time may use it.
///
/// Check `hasRoom` before `push`: a full ring is a normal state, but pushing into it is a programming error and traps.
@safe
public struct RingWriter<Element: ~Copyable>: ~Copyable, @unchecked Sendable {
  @usableFromInline let storage: RingStorage<Element>
  @usableFromInline let written: UnsafeMutablePointer<Atomic<Int>>
  @usableFromInline let read: UnsafeMutablePointer<Atomic<Int>>
  @usableFromInline let slots: UnsafeMutablePointer<Element>
  @usableFromInline let mask: Int
  @usableFromInline var next = 0
  @usableFromInline var seenRead = 0

  @usableFromInline
  init(_ storage: RingStorage<Element>) {
    self.storage = storage
    unsafe written = storage.written
    unsafe read = storage.read
    unsafe slots = storage.slots
    mask = storage.mask
  }

  /// Elements the ring can hold: a power of two, at least the requested minimum.
  @inlinable public var capacity: Int { mask + 1 }

  /// True while at least one element fits. It stays true until this end pushes.
  @inlinable public var hasRoom: Bool {
    mutating get {
      if next &- seenRead <= mask { return true }
      seenRead = unsafe read.pointee.load(ordering: .acquiring)
      return next &- seenRead <= mask
    }
  }

  /// True while fewer than `limit` elements are queued: `hasRoom` with a limit below the capacity.
  @inlinable public mutating func hasRoom(within limit: Int) -> Bool {
    if next &- seenRead < limit { return true }
    seenRead = unsafe read.pointee.load(ordering: .acquiring)
    return next &- seenRead < limit
  }

  /// Elements in the ring now. The reader may lower the number concurrently; only this end raises it.
  @inlinable public var count: Int {
    mutating get {
      seenRead = unsafe read.pointee.load(ordering: .acquiring)
      return next &- seenRead
    }
  }

  /// Appends one element and publishes it. Traps when the ring is full.
  /// - Complexity: constant, no allocation, no read-modify-write.
  @inlinable public mutating func push(_ element: consuming Element) {
    precondition(hasRoom, "push into a full ring")
    unsafe (slots + (next & mask)).initialize(to: element)
    next &+= 1
    unsafe written.pointee.store(next, ordering: .releasing)
  }
}

/// The reading end of a ring. One thread at a time may use it.
@safe
public struct RingReader<Element: ~Copyable>: ~Copyable, @unchecked Sendable {
  @usableFromInline let storage: RingStorage<Element>
  @usableFromInline let written: UnsafeMutablePointer<Atomic<Int>>
  @usableFromInline let read: UnsafeMutablePointer<Atomic<Int>>
  @usableFromInline let slots: UnsafeMutablePointer<Element>
  @usableFromInline let mask: Int
  @usableFromInline var next = 0
  @usableFromInline var seenWritten = 0

  @usableFromInline
  init(_ storage: RingStorage<Element>) {
    self.storage = storage
    unsafe written = storage.written
    unsafe read = storage.read
    unsafe slots = storage.slots
    mask = storage.mask
  }

  /// True when there is nothing to pop. The writer may change that at any time.
  @inlinable public var isEmpty: Bool {
    mutating get {
      if next != seenWritten { return false }
      seenWritten = unsafe written.pointee.load(ordering: .acquiring)
      return next == seenWritten
    }
  }

  /// Elements that can be popped now. The writer may raise the number concurrently; only this end lowers it.
  @inlinable public var count: Int {
    mutating get {
      seenWritten = unsafe written.pointee.load(ordering: .acquiring)
      return seenWritten &- next
    }
  }

  /// Removes and returns the oldest element; nil when the ring is empty.
  /// - Complexity: constant, no allocation, no read-modify-write.
  @inlinable public mutating func pop() -> Element? {
    if isEmpty { return nil }
    let element = unsafe (slots + (next & mask)).move()
    next &+= 1
    unsafe read.pointee.store(next, ordering: .releasing)
    return element
  }

  /// Passes the oldest element to `body` without removing it; nil when the ring is empty.
  @inlinable public mutating func peek<R>(_ body: (borrowing Element) -> R) -> R? {
    if isEmpty { return nil }
    return unsafe body(front.pointee)
  }

  /// The address of the oldest element. Valid only while `isEmpty` is false and until the next `pop`.
  @usableFromInline
  @unsafe
  var front: UnsafeMutablePointer<Element> {
    @inlinable get { unsafe slots + (next & mask) }
  }
}

/// A bounded lock-free queue between exactly one writing and one reading thread.
///
/// What it does *not* do: it never grows, never overwrites, never waits and wakes no thread; more than one thread on either
/// end is undefined. The capacity is rounded up to a power of two. Each end caches the other end's index, so a push or pop
/// touches the other core's cache line only when the ring looks full or empty.
///
/// Separate the ends with `consume ring.writer` and `consume ring.reader`.
@frozen
public struct Ring<Element: ~Copyable>: ~Copyable {
  /// The writing end.
  public var writer: RingWriter<Element>
  /// The reading end.
  public var reader: RingReader<Element>

  /// Creates an empty ring.
  /// - Parameters:
  ///   - minimumCapacity: elements it must hold, at least 1; rounded up to a power of two.
  ///   - isShared: false when one thread uses both ends; the ring then takes less memory.
  @inlinable public init(minimumCapacity: Int, isShared: Bool = true) {
    let storage = RingStorage<Element>(minimumCapacity: minimumCapacity, isShared: isShared)
    writer = RingWriter(storage)
    reader = RingReader(storage)
  }

  /// Restarts an empty ring at its first slot, so that a ring that is empty most of the time stays in one cache line. Has no
  /// effect unless the ring is empty. Only for rings whose ends are used by one thread.
  @inlinable
  public static func rewind(_ writer: inout RingWriter<Element>, _ reader: inout RingReader<Element>) {
    guard writer.next == reader.next else { return }
    writer.next = 0
    writer.seenRead = 0
    reader.next = 0
    reader.seenWritten = 0
    unsafe writer.written.pointee.store(0, ordering: .relaxed)
    unsafe writer.read.pointee.store(0, ordering: .relaxed)
  }
}
